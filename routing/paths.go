package routing

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// The tables a route is in, as bits of an entry.
const (
	inAny     uint8 = 1 << iota // every route with a host: decides about redirects
	inPlain                     // serves plain HTTP
	inSecure                    // serves HTTP over TLS
	inSwitch                    // takes whole connections: by SNI, or all of a port
	redirects                   // plain HTTP is redirected
	asks                        // has conditions besides the path
	exact                       // matches the whole path only
	expressed                   // the path is an expression of the conditions

	special = asks | exact | expressed // properties that OpenShift Routes never have
)

// tables returns the tables a route is in.
func (r *Route) tables() uint8 {
	in := inAny
	switch {
	case r.termination.Relays():
		if r.path == "" && r.kind != PathExpression && !r.conditions.asks() {
			in |= inSwitch
		}
	case r.termination.terminates():
		in |= inSecure
		if r.insecure == InsecureAllow {
			in |= inPlain
		}
	default:
		in |= inPlain
	}
	if r.insecure == InsecureRedirect {
		in |= redirects
	}
	if r.conditions.asks() {
		in |= asks
	}
	switch r.kind {
	case PathExact:
		in |= exact
	case PathExpression:
		in |= expressed
	}
	return in
}

// entry is one route in the group of its host.
type entry struct {
	path   string // "" for every path that covers everything
	route  *Route
	order  uint64 // place in the spec
	parent int32  // next of the chain: the same path, or the longest shorter prefix; -1 = none
	up     int32  // next of the chain with another path
	same   int32  // next of the chain with the same namespace, in groups with spaces
	tables uint8
}

func newEntry(r *Route, order uint64) entry {
	path := r.path
	switch {
	case r.kind == PathExact:
	case r.kind == PathExpression, strings.Trim(path, "/") == "":
		path = ""
	case r.kind == PathPrefix:
		path = strings.TrimRight(path, "/")
	}
	return entry{path: path, route: r, order: order, parent: -1, up: -1, same: -1, tables: r.tables()}
}

// compare sorts by path, of equal paths those that ask for more or are older come last, and of those the one earlier in the spec, so
// that a search, which goes from back to front, tries it first.
func (e entry) compare(o entry) int {
	if c := strings.Compare(e.path, o.path); c != 0 {
		return c
	}
	if a, b := e.route.conditions, o.route.conditions; a != nil || b != nil {
		if c := a.compare(b); c != 0 {
			return c
		}
		if a.dated() {
			return o.route.key.Compare(e.route.key)
		}
	}
	return cmp.Compare(o.order, e.order)
}

// covers reports whether e serves a request path: "/p" on segment boundaries, "/p/"
// as a prefix.
func (e *entry) covers(path []byte) bool {
	n := len(e.path)
	if n == 0 {
		return true
	}
	if len(path) < n || string(path[:n]) != e.path {
		return false
	}
	return len(path) == n || path[n] == '/' || e.path[n-1] == '/'
}

// coversShared is covers for an entry whose path and the request's have shared bytes in common.
func (e *entry) coversShared(path []byte, shared int) bool {
	n := len(e.path)
	return n <= shared && (n == 0 || len(path) == n || path[n] == '/' || e.path[n-1] == '/')
}

// shared returns the length of the common prefix of a path and the path of the entry i; 0 if i is
// -1. All entries of the chain of parents of i begin with the same bytes, so they are not compared
// again.
func (m *paths) shared(i int, path []byte) int {
	if i < 0 {
		return 0
	}
	p := m.entries[i].path
	most := min(len(p), len(path))
	if p[:most] == string(path[:most]) {
		return most
	}
	return sort.Search(most, func(n int) bool { return p[:n+1] != string(path[:n+1]) })
}

// fewPaths is the number of entries up to which looking at each is cheaper than a
// binary search.
const fewPaths = 8

// search returns the index of the entry with the longest path that covers the
// request path among those in a table, -1 if there is none.
//
// All entries whose path the request path begins with sort at or before it, longer
// ones after shorter ones. Each of them is the last entry not after the request
// path, or one that entry's path begins with; so the chain of parents has them all.
func (m *paths) search(path []byte, table uint8) int {
	if len(m.entries) <= fewPaths {
		for i := len(m.entries) - 1; i >= 0; i-- {
			if e := &m.entries[i]; e.tables&table != 0 && e.covers(path) {
				return i
			}
		}
		return -1
	}
	i := m.last(path)
	return m.climb(i, path, m.shared(i, path), table)
}

// last returns the index of the last entry not after a path, -1 if there is none.
func (m *paths) last(path []byte) int {
	low, high := 0, len(m.entries)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if m.entries[middle].path <= string(path) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low - 1
}

// climb is search in the entry i and its chain of parents. Their paths and the path of the request
// have the first shared bytes in common.
func (m *paths) climb(i int, path []byte, shared int, table uint8) int {
	for i >= 0 {
		e := &m.entries[i]
		switch {
		case !e.coversShared(path, shared):
			i = int(e.up)
		case e.tables&table == 0:
			i = int(e.parent)
		default:
			return i
		}
	}
	return i
}

// arrange puts entries into the order of compare and sets their parents. The first
// sorted of them are in order already. Entries of routes in gone are left out.
func arrange(entries []entry, sorted int, gone map[*Route]struct{}) []entry {
	if len(gone) > 0 {
		kept, n := entries[:0], sorted
		for i := range entries {
			if _, out := gone[entries[i].route]; !out {
				kept = append(kept, entries[i])
			} else if i < n {
				sorted--
			}
		}
		clear(entries[len(kept):])
		entries = kept
	}
	added := entries[sorted:]
	slices.SortFunc(added, entry.compare)
	if sorted > 0 && len(added) > 0 {
		entries = merge(entries[:sorted], added)
	}
	for i := range entries {
		parent := int32(i - 1)
		for parent >= 0 && !strings.HasPrefix(entries[i].path, entries[parent].path) {
			parent = entries[parent].parent
		}
		entries[i].link(entries, parent)
	}
	return entries
}

// link puts e before the entry parent of its chain, which may be -1.
func (e *entry) link(entries []entry, parent int32) {
	if e.parent, e.up = parent, parent; parent >= 0 && entries[parent].path == e.path {
		e.up = entries[parent].up
	}
}

func merge(a, b []entry) []entry {
	out := make([]entry, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].compare(b[0]) < 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}
