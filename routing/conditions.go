package routing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"turnout/internal/expression"
	"turnout/internal/wire/field"
)

// View is what rules may ask of a request. All of it belongs to the caller; nothing is kept.
type View struct {
	Secure bool   // the request came over TLS that ends here
	Host   []byte // the Host field or :authority as received: upper case, a port in digits and one trailing dot are allowed for
	Path   []byte // without the query, as received; it is not decoded

	Arrival *Arrival // how the connection came in; nil = by the pair of ports of OpenShift Routes, asked for nothing that a host asks for

	// These are looked at only where a rule of the host asks for them.
	Method []byte
	Query  []byte        // from "?" on, or empty
	Fields []field.Field // names in lower case

	// Matching is also used only there. nil = one is made.
	Matching *Matching

	begun bool // Matching has begun with this request
}

// conditions are what a rule asks of a request besides a stored, prefix or exact path, and its age. They are immutable; nil is
// none.
type conditions struct {
	created int64                  // see RuleSpec.created
	path    *expression.Expression // nil = the path is no expression
	method  string
	headers []valueCondition // names in lower case
	query   []valueCondition
	cookies []valueCondition
}

// valueCondition is a ValueMatch, compiled.
type valueCondition struct {
	name, value string
	expression  *expression.Expression // nil = the value is compared byte by byte
}

// conditions compiles what s asks; nil if it asks nothing and has no age.
func (s *RuleSpec) conditions() (*conditions, error) {
	m := &s.Match
	if m.Path.Kind != PathExpression && m.Method == "" && len(m.Headers) == 0 && len(m.Query) == 0 && len(m.Cookies) == 0 && s.Created.IsZero() {
		return nil, nil
	}
	c := &conditions{created: s.created(), method: m.Method}
	var err error
	if m.Path.Kind == PathExpression {
		if c.path, err = expressionOf(m.Path.Expression, m.Path.Value); err != nil {
			return nil, fmt.Errorf("cannot match by path: %w", err)
		}
	}
	if c.headers, err = values(m.Headers, strings.ToLower); err != nil {
		return nil, fmt.Errorf("cannot match by header: %w", err)
	}
	if c.query, err = values(m.Query, strings.Clone); err != nil {
		return nil, fmt.Errorf("cannot match by query: %w", err)
	}
	if c.cookies, err = values(m.Cookies, strings.Clone); err != nil {
		return nil, fmt.Errorf("cannot match by cookie: %w", err)
	}
	return c, nil
}

// values compiles conditions, of each name the first. spelled gives a name the spelling it is compared in.
func values(matches []ValueMatch, spelled func(string) string) ([]valueCondition, error) {
	var list []valueCondition
	for _, m := range matches {
		c := valueCondition{name: spelled(m.Name), value: m.Value}
		if slices.ContainsFunc(list, func(o valueCondition) bool { return o.name == c.name }) {
			continue
		}
		if m.Expression {
			var err error
			if c.expression, err = expressionOf(m.Compiled, m.Value); err != nil {
				return nil, err
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// expressionOf returns e if it is not nil, otherwise the expression of a text.
func expressionOf(e *expression.Expression, text string) (*expression.Expression, error) {
	if e != nil {
		return e, nil
	}
	return expression.New(text, expression.Whole, expression.Tenant())
}

// asks reports whether there is anything to hold besides the path. c may be nil.
func (c *conditions) asks() bool {
	return c != nil && (c.method != "" || len(c.headers) > 0 || len(c.query) > 0 || len(c.cookies) > 0)
}

// dated reports whether the age is known. c may be nil.
func (c *conditions) dated() bool { return c != nil && c.created != 0 }

// compare says which of two conditions of equal paths is tried first: negative = o is tried before c. Both may be nil.
func (c *conditions) compare(o *conditions) int {
	var none conditions
	if c == nil {
		c = &none
	}
	if o == nil {
		o = &none
	}
	if (c.method != "") != (o.method != "") {
		if c.method != "" {
			return 1
		}
		return -1
	}
	if n := len(c.headers) + len(c.cookies) - len(o.headers) - len(o.cookies); n != 0 {
		return n
	}
	if n := len(c.query) - len(o.query); n != 0 {
		return n
	}
	return cmp.Compare(o.created, c.created)
}

// hold reports whether the request is one that c, which asks for something, lets pass.
func (c *conditions) hold(v *View, m *Matching) expression.Result {
	result, _, _ := c.failing(v, m)
	return result
}

// failing returns the first condition that does not hold or is undecided, nil if all hold.
func (c *conditions) failing(v *View, m *Matching) (result expression.Result, l Lost, which *valueCondition) {
	if c.method != "" && string(v.Method) != c.method {
		return expression.No, LostMethod, nil
	}
	for i := range c.headers {
		if r := m.inFields(&c.headers[i], v.Fields); r != expression.Yes {
			return r, LostHeader, &c.headers[i]
		}
	}
	for i := range c.query {
		if r := m.inQuery(&c.query[i], v.Query); r != expression.Yes {
			return r, LostQuery, &c.query[i]
		}
	}
	for i := range c.cookies {
		if r := m.inCookies(&c.cookies[i], v.Fields); r != expression.Yes {
			return r, LostHeader, &c.cookies[i]
		}
	}
	return expression.Yes, Won, nil
}

// holds compares one value of the name.
func (c *valueCondition) holds(m *Matching, value []byte) expression.Result {
	switch {
	case c.expression != nil:
		return m.matches(c.expression, value)
	case len(value) != len(c.value):
		return expression.No
	case !m.spend(1 + len(value)/comparedWork):
		return expression.Undecided
	case string(value) == c.value:
		return expression.Yes
	}
	return expression.No
}
