package register

import (
	"slices"
	"testing"
)

type conn struct {
	name    string
	links   Links[conn]
	removed int
}

func (c *conn) Links() *Links[conn] { return &c.links }

func (c *conn) Removed() { c.removed++ }

// names are those of all connections, sorted.
func names(r *Register[conn, *conn]) (all []string) {
	for c := range r.All {
		all = append(all, c.name)
	}
	slices.Sort(all)
	return all
}

func TestRegister(t *testing.T) {
	var r Register[conn, *conn]
	conns := map[string]*conn{}
	for _, name := range []string{"a", "b", "c", "d"} {
		conns[name] = &conn{name: name}
		r.Add(conns[name], name == "d")
	}
	want := func(what string, open, secure int64, all ...string) {
		t.Helper()
		if got := names(&r); r.Open(false) != open || r.Open(true) != secure || !slices.Equal(got, all) {
			t.Errorf("%s: %d and %d open, %q; want %d, %d, %q", what, r.Open(false), r.Open(true), got, open, secure, all)
		}
	}
	want("all", 3, 1, "a", "b", "c", "d")
	r.Remove(conns["b"], false)
	want("one from the middle", 2, 1, "a", "c", "d")
	r.Remove(conns["b"], false)
	want("the same again", 2, 1, "a", "c", "d")
	r.Remove(conns["d"], true)
	want("the newest", 2, 0, "a", "c")
	r.Remove(conns["a"], false)
	want("the oldest", 1, 0, "c")
	r.Remove(conns["c"], false)
	want("the last", 0, 0)
	r.Add(conns["b"], false)
	want("one that comes again", 1, 0, "b")
	for c := range r.All {
		r.Remove(c, false)
	}
	want("removed on the way", 0, 0)
	for _, c := range conns {
		if want := map[string]int{"b": 2}[c.name]; c.removed != max(want, 1) {
			t.Errorf("Removed was called %d times for %s", c.removed, c.name)
		}
	}
}

func TestDrain(t *testing.T) {
	var r Register[conn, *conn]
	a, b, late := &conn{name: "a"}, &conn{name: "b"}, &conn{name: "late"}
	r.Add(a, false)
	r.Add(b, true)
	var ended []string
	done := 0
	r.Drain(func() { done++ })
	for c := range r.All {
		ended = append(ended, c.name)
		if c == b {
			r.Remove(b, true)
		}
	}
	slices.Sort(ended)
	if !slices.Equal(ended, []string{"a", "b"}) || done != 0 || !r.Draining() {
		t.Fatalf("ended %q, done %d times, draining %v", ended, done, r.Draining())
	}
	r.Add(late, false)
	r.Remove(a, false)
	if done != 0 {
		t.Fatal("done although one is left")
	}
	r.Remove(late, false)
	r.Add(a, false)
	r.Remove(a, false)
	if done != 1 {
		t.Errorf("done %d times", done)
	}
	var empty Register[conn, *conn]
	if empty.Draining() {
		t.Error("a new one drains")
	}
	empty.Drain(func() { done++ })
	if done != 2 {
		t.Error("not done at once")
	}
}
