package shard

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// maxClasses is how many combinations of labels are remembered. The routes of most clusters have fewer.
const maxClasses = 1 << 13

// class is what a route is selected by.
type class struct{ route, namespace Labels }

// crowd is routers of some pools that may have a route. Routes whose labels are selected by the same pools share one.
type crowd struct {
	pools  []*pool
	domain bool      // only those with a domain
	open   []*Router // sorted by name; a new slice when it changes
	fresh  bool      // open is as it should be
}

// candidates are routers by selectors, so that those which may have a route are found without asking each.
type candidates struct {
	pools   map[string]*pool
	anchors map[[2]string][]*pool // pools that select no routes without this label, of the route or of its namespace
	general []*pool               // the others
	classes map[class][2]*crowd   // without and with domain
	crowds  map[string]*crowd     // by the texts of their pools
}

func newCandidates() candidates {
	return candidates{
		pools: make(map[string]*pool), anchors: make(map[[2]string][]*pool),
		classes: make(map[class][2]*crowd), crowds: make(map[string]*crowd),
	}
}

// parsePool reads selectors. The pool is a new one.
func parsePool(route, namespaces *metav1.LabelSelector) (*pool, error) {
	r, err := parseSelector(route)
	if err != nil {
		return nil, err
	}
	n, err := parseSelector(namespaces)
	if err != nil {
		return nil, err
	}
	return &pool{text: r.String() + "\x00" + n.String(), route: r, namespaces: n}, nil
}

func parseSelector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// anchor returns the labels of which a route, or its namespace, must have one to be selected; none: no label is needed.
func (p *pool) anchor() [][2]string {
	for i, s := range []labels.Selector{p.route, p.namespaces} {
		requirements, _ := s.Requirements()
		for _, q := range requirements {
			switch q.Operator() {
			case selection.In, selection.Equals, selection.DoubleEquals:
				var list [][2]string
				for _, v := range q.ValuesUnsorted() {
					list = append(list, [2]string{anchorKey(i, q.Key()), v})
				}
				return list
			default:
			}
		}
	}
	return nil
}

// anchorKey tells labels of routes from those of namespaces.
func anchorKey(side int, key string) string {
	if side == 0 {
		return key
	}
	return "\x00" + key
}

// join enters a router by its selectors.
func (c *candidates) join(r *router, parsed *pool) {
	p := c.pools[parsed.text]
	if p == nil {
		p = parsed
		c.pools[p.text] = p
		list := p.anchor()
		for _, a := range list {
			c.anchors[a] = append(c.anchors[a], p)
		}
		if len(list) == 0 {
			c.general = append(c.general, p)
		}
		c.reclass()
	}
	p.add(r)
	r.pool = p
	c.changed(p)
}

// leave takes a router out.
func (c *candidates) leave(r *router) {
	p := r.pool
	if p == nil {
		return
	}
	r.pool = nil
	p.drop(r)
	c.changed(p)
	if len(p.routers) > 0 {
		return
	}
	delete(c.pools, p.text)
	without := func(list []*pool) []*pool {
		return slices.DeleteFunc(list, func(e *pool) bool { return e == p })
	}
	for _, a := range p.anchor() {
		if c.anchors[a] = without(c.anchors[a]); len(c.anchors[a]) == 0 {
			delete(c.anchors, a)
		}
	}
	c.general = without(c.general)
	c.reclass()
}

// reclass forgets which labels are selected by which pools.
func (c *candidates) reclass() {
	c.classes = make(map[class][2]*crowd)
	c.crowds = make(map[string]*crowd)
}

// changed forgets which routers of a pool are open.
func (c *candidates) changed(p *pool) {
	for _, w := range c.crowds {
		if w.fresh && slices.Contains(w.pools, p) {
			w.fresh = false
		}
	}
}

// of returns the routers whose selectors match a route.
func (c *candidates) of(r *Route, domain bool) *crowd {
	i := 0
	if domain {
		i = 1
	}
	k := class{r.Labels, r.NamespaceLabels}
	pair, ok := c.classes[k]
	if !ok {
		if len(c.classes) >= maxClasses {
			c.reclass()
		}
		pools := c.match(r)
		pair = [2]*crowd{c.crowd(pools, false), c.crowd(pools, true)}
		c.classes[k] = pair
	}
	return pair[i]
}

// match returns the pools that select a route, sorted.
func (c *candidates) match(r *Route) []*pool {
	var list []*pool
	add := func(some []*pool) {
		for _, p := range some {
			if p.selects(r) && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	add(c.general)
	if len(c.anchors) > 0 {
		for i, l := range []Labels{r.Labels, r.NamespaceLabels} {
			for key, value := range l.All {
				add(c.anchors[[2]string{anchorKey(i, key), value}])
			}
		}
	}
	slices.SortFunc(list, func(a, b *pool) int { return strings.Compare(a.text, b.text) })
	return list
}

func (c *candidates) crowd(pools []*pool, domain bool) *crowd {
	var b strings.Builder
	if domain {
		b.WriteByte('d')
	}
	for _, p := range pools {
		b.WriteString(p.text)
		b.WriteByte(1)
	}
	w := c.crowds[b.String()]
	if w == nil {
		w = &crowd{pools: pools, domain: domain}
		c.crowds[b.String()] = w
	}
	return w
}

// routers returns those that may have another route.
func (w *crowd) routers() []*Router {
	if w.fresh {
		return w.open
	}
	w.fresh = true
	w.open = nil
	for _, p := range w.pools {
		for _, r := range p.routers {
			if r.open && (!w.domain || r.Domain != "") {
				w.open = append(w.open, &r.Router)
			}
		}
	}
	if len(w.pools) > 1 {
		slices.SortFunc(w.open, func(a, b *Router) int { return strings.Compare(a.Name, b.Name) })
	}
	return w.open
}

// why says why none of the routers may have another route.
func (w *crowd) why() *Error {
	full, domainless := false, false
	some := false
	for _, p := range w.pools {
		for _, r := range p.routers {
			some = true
			switch {
			case w.domain && r.Domain == "":
				domainless = true
			case r.usable() && r.full():
				full = true
			}
		}
	}
	switch {
	case !some:
		return &Error{ReasonNoRouter, "no router selects the labels of the route and of its namespace: label the route, or change the selectors of a router"}
	case full:
		return &Error{ReasonNoCapacity, "every router that selects the route is full or not ready: add a router, or raise a capacity"}
	case domainless:
		return &Error{ReasonNoDomain, "the route has no host, and no router that selects it and is ready has a domain: set spec.host, or spec.dns of a router"}
	}
	return &Error{ReasonNotReady, "no router that selects the route is ready and without taint"}
}

// usable reports whether routes may come to a router, if there is room.
func (r *router) usable() bool {
	return r.known && r.fault() == (fault{}) && !r.taint && !r.lost && r.ready > 0
}

func (r *router) full() bool { return r.Capacity > 0 && r.active() >= r.Capacity }
