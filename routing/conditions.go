package routing

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

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
}

// conditions are what a rule asks of a request besides a stored, prefix or exact path, and its age. They are immutable; nil is
// none.
type conditions struct {
	created int64          // see RuleSpec.created
	path    *regexp.Regexp // nil = the path is no expression
	method  string
	headers []valueCondition // names in lower case
	query   []valueCondition
}

// valueCondition is a ValueMatch, compiled.
type valueCondition struct {
	name, value string
	expression  *regexp.Regexp // nil = the value is compared
}

// conditions compiles what s asks; nil if it asks nothing and has no age.
func (s *RuleSpec) conditions() (*conditions, error) {
	m := &s.Match
	if m.Path.Kind != PathExpression && m.Method == "" && len(m.Headers) == 0 && len(m.Query) == 0 && s.Created.IsZero() {
		return nil, nil
	}
	c := &conditions{created: s.created(), method: m.Method}
	var err error
	if m.Path.Kind == PathExpression {
		if c.path, err = whole(m.Path.Value); err != nil {
			return nil, fmt.Errorf("cannot match by path: %w", err)
		}
	}
	if c.headers, err = values(m.Headers, strings.ToLower); err != nil {
		return nil, fmt.Errorf("cannot match by header: %w", err)
	}
	if c.query, err = values(m.Query, strings.Clone); err != nil {
		return nil, fmt.Errorf("cannot match by query: %w", err)
	}
	return c, nil
}

// What whole puts around an expression.
const (
	wholeBegin = `(?s)\A(?:`
	wholeEnd   = `)\z`
)

// whole compiles an expression for a whole text.
func whole(text string) (*regexp.Regexp, error) {
	return regexp.Compile(wholeBegin + text + wholeEnd)
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
			if c.expression, err = whole(m.Value); err != nil {
				return nil, err
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// asks reports whether there is anything to hold besides the path. c may be nil.
func (c *conditions) asks() bool {
	return c != nil && (c.method != "" || len(c.headers) > 0 || len(c.query) > 0)
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
	if n := len(c.headers) - len(o.headers); n != 0 {
		return n
	}
	if n := len(c.query) - len(o.query); n != 0 {
		return n
	}
	return cmp.Compare(o.created, c.created)
}

// hold reports whether the request is one that c, which asks for something, lets pass.
func (c *conditions) hold(v *View) bool {
	if c.method != "" && string(v.Method) != c.method {
		return false
	}
	for i := range c.headers {
		if !c.headers[i].inFields(v.Fields) {
			return false
		}
	}
	for i := range c.query {
		if !c.query[i].inQuery(v.Query) {
			return false
		}
	}
	return true
}

func (c *valueCondition) holds(value []byte) bool {
	if c.expression != nil {
		return c.expression.Match(value)
	}
	return string(value) == c.value
}

func (c *valueCondition) inFields(fields []field.Field) bool {
	for i := range fields {
		if f := &fields[i]; string(f.Name) == c.name && c.holds(f.Value) {
			return true
		}
	}
	return false
}

// inQuery looks at the first parameter of the name (the form of application/x-www-form-urlencoded).
func (c *valueCondition) inQuery(query []byte) bool {
	rest := bytes.TrimPrefix(query, []byte("?"))
	var name, value [128]byte // longer ones that are encoded cost an allocation
	for len(rest) > 0 {
		var pair []byte
		pair, rest, _ = bytes.Cut(rest, []byte("&"))
		if len(pair) == 0 {
			continue
		}
		k, v, _ := bytes.Cut(pair, []byte("="))
		if string(decoded(name[:0], k)) == c.name {
			return c.holds(decoded(value[:0], v))
		}
	}
	return false
}

// decoded returns b with "+" and percent-encoded octets (RFC 3986 section 2.1) decoded, appended to dst, or b itself if there are
// none. A percent sign without two digits stands for itself.
func decoded(dst, b []byte) []byte {
	if bytes.IndexByte(b, '%') < 0 && bytes.IndexByte(b, '+') < 0 {
		return b
	}
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '+':
			dst = append(dst, ' ')
		case b[i] == '%' && i+2 < len(b) && digit(b[i+1]) >= 0 && digit(b[i+2]) >= 0:
			dst = append(dst, byte(digit(b[i+1])<<4|digit(b[i+2])))
			i += 2
		default:
			dst = append(dst, b[i])
		}
	}
	return dst
}

// digit returns the value of a hexadecimal digit, -1 if c is none.
func digit(c byte) int {
	switch {
	case c-'0' <= 9:
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
