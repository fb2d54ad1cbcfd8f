package routing

import (
	"fmt"
	"slices"
	"strings"
)

// What rules ask, in words: for explanations.

// ListenerState is what is known of a listener of a table.
type ListenerState struct {
	Name, Port, Hostname string      // as ListenerSpec has them
	TLS, Stream          bool        // the same
	Auth                 *ClientAuth // what clients are asked for; nil = as the router is configured
}

func (l *listener) state() ListenerState {
	return ListenerState{Name: l.name, Port: l.port, Hostname: l.hostname, TLS: l.secure, Stream: l.stream, Auth: l.auth}
}

// ListenerFor returns the listener of a port that has a host, in lower case; false if there is none.
func (t *Table) ListenerFor(port string, secure bool, host string) (ListenerState, bool) {
	if l := t.listener(port, secure, []byte(host)); l != nil {
		return l.state(), true
	}
	return ListenerState{}, false
}

// ListenerNamed returns the listener of a name; false if there is none.
func (t *Table) ListenerNamed(name string) (ListenerState, bool) {
	if l := t.listenerOf(name); l != nil {
		return l.state(), true
	}
	return ListenerState{}, false
}

// secretNames are parts of the names of fields and parameters whose values nobody is shown.
var secretNames = []string{"authorization", "cookie", "token", "secret", "password", "credential", "api-key", "apikey"}

// String is a condition for people.
func (c *valueCondition) String() string {
	if slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(strings.ToLower(c.name), part) }) {
		return c.name + " with a value that is not shown"
	}
	if c.expression != nil {
		return fmt.Sprintf("%s matching %s", c.name, c.expression)
	}
	return fmt.Sprintf("%s with the value %q", c.name, c.value)
}

// Asks is what the route asks of requests of its host, for people; nil = nothing.
func (r *Route) Asks() (list []string) {
	switch {
	case r.kind == PathExact:
		list = append(list, "path "+r.path)
	case r.kind == PathExpression:
		list = append(list, "path matching "+r.path)
	case r.path != "":
		list = append(list, "path below "+r.path)
	}
	c := r.conditions
	if c == nil {
		return list
	}
	if c.method != "" {
		list = append(list, "method "+c.method)
	}
	for i := range c.headers {
		list = append(list, "header "+c.headers[i].String())
	}
	for i := range c.query {
		list = append(list, "query parameter "+c.query[i].String())
	}
	for i := range c.cookies {
		list = append(list, fmt.Sprintf("cookie %s with the value %q", c.cookies[i].name, c.cookies[i].value))
	}
	return list
}

// Example is a request that a route asks for.
type Example struct {
	Method string   // "" = any
	Fields []string // "name: value"
	Query  [][2]string
}

// Example returns one, without what the route asks by expressions.
func (r *Route) Example() (e Example) {
	c := r.conditions
	if c == nil {
		return e
	}
	e.Method = c.method
	for i := range c.headers {
		if h := &c.headers[i]; h.expression == nil {
			e.Fields = append(e.Fields, h.name+": "+h.value)
		}
	}
	for i := range c.query {
		if q := &c.query[i]; q.expression == nil {
			e.Query = append(e.Query, [2]string{q.name, q.value})
		}
	}
	for i := range c.cookies {
		if k := &c.cookies[i]; k.expression == nil {
			e.Fields = append(e.Fields, "cookie: "+k.name+"="+k.value)
		}
	}
	return e
}

// Before says why the route is tried before another one of the same host that takes the request too, for people.
func (r *Route) Before(o *Route) string {
	rank := func(k PathKind) int {
		switch k {
		case PathExact:
			return 2
		case PathExpression:
			return 1
		}
		return 0
	}
	var none conditions
	a, b := r.conditions, o.conditions
	if a == nil {
		a = &none
	}
	if b == nil {
		b = &none
	}
	pa, pb := newEntry(r, 0).path, newEntry(o, 0).path
	switch {
	case r.wildcard != o.wildcard || r.host != o.host:
		return "it is for a more specific host name"
	case rank(r.kind) > rank(o.kind):
		return "its kind of path comes first"
	case len(pa) > len(pb):
		return "its path is longer"
	case (a.method != "") != (b.method != ""):
		return "it asks for a method"
	case len(a.headers)+len(a.cookies) != len(b.headers)+len(b.cookies):
		return "it asks for more header fields"
	case len(a.query) != len(b.query):
		return "it asks for more query parameters"
	case a.created != b.created:
		return "it is older"
	}
	return "it comes first by name, or by its place in the object"
}
