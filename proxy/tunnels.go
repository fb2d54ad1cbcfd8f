package proxy

import (
	"time"

	"turnout/internal/list"
	"turnout/internal/shared"
	"turnout/routing"
)

// TunnelRoute names a route that has open tunnels, in Worker.Tunnels.
type TunnelRoute struct{ Namespace, Name string }

// tunnelRoute is what the tunnels of a route have in common: it is another one with another UID or host.
type tunnelRoute struct {
	key  routing.RouteKey
	host string
}

// tunnels are those of a worker that are open, by route: upgraded requests and connections passed through.
type tunnels struct {
	w     *Worker
	timer Timer // for routes that are gone; nil until there is one

	mu     shared.Mutex // of groups and of how many each has: the scraper of metrics reads them
	groups map[tunnelRoute]*tunnelGroup
}

// tunnelGroup has the tunnels of a route.
type tunnelGroup struct {
	route   tunnelRoute
	running list.List[openTunnel] // those that were not ended
	open    int                   // all
	gone    bool                  // the table has no such route
	since   int64                 // when that was found, of the worker's clock
}

// openTunnel is a tunnel in its group. It belongs to the loop.
type openTunnel struct {
	group *tunnelGroup // nil = it has ended
	end   func()       // ends it at once; nil = it was ended
	node  list.Node[openTunnel]
}

// enter notes a tunnel that has begun; end ends it at once. leave follows.
func (t *tunnels) enter(r *routing.Route, end func()) *openTunnel {
	o := &openTunnel{end: end}
	route := tunnelRoute{r.Key(), r.Host()}
	g := t.groups[route]
	if g == nil {
		g = &tunnelGroup{route: route}
	}
	o.group = g
	g.running.Push(&o.node, o)
	t.count(g, 1)
	if g.open == 1 && t.w.cfg.CloseTunnels > 0 { // the request may have begun with a table of before
		t.look(g, t.w.cfg.Store.Load())
	}
	if g.gone && g.running.Len() == 1 {
		t.rest()
	}
	return o
}

func (t *tunnels) count(g *tunnelGroup, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch g.open += n; g.open {
	case 0:
		delete(t.groups, g.route)
	case n:
		if t.groups == nil {
			t.groups = make(map[tunnelRoute]*tunnelGroup)
		}
		t.groups[g.route] = g
	}
}

// leave notes the end of a tunnel. Only the first call counts; nil is nothing.
func (t *tunnels) leave(o *openTunnel) {
	if o == nil || o.group == nil {
		return
	}
	g := o.group
	o.group = nil
	if o.end != nil {
		o.unlink()
	}
	t.count(g, -1)
}

// unlink takes a tunnel that ends out of its group.
func (o *openTunnel) unlink() {
	o.end = nil
	o.node.Remove()
}

// look finds out whether a table has the route of g; rest follows.
func (t *tunnels) look(g *tunnelGroup, table *routing.Table) {
	r := table.Route(g.route.key)
	gone := r == nil || r.Host() != g.route.host
	if gone == g.gone {
		return
	}
	g.gone, g.since = gone, t.w.cfg.Clock.Now()
}

// tunnelsPerIteration is how many tunnels of routes that are gone end in one iteration of the loop.
const tunnelsPerIteration = 64

// expire ends tunnels of routes that were gone for long enough.
func (t *tunnels) expire() {
	now, left := t.w.cfg.Clock.Now(), tunnelsPerIteration
	for _, g := range t.groups {
		if !g.gone || now-g.since < int64(t.w.cfg.CloseTunnels) {
			continue
		}
		for o := g.running.First(); o != nil && left > 0; o = g.running.First() {
			left--
			end := o.end
			o.unlink()
			end()
		}
	}
	t.rest()
}

// rest sets the timer for what is due next.
func (t *tunnels) rest() {
	const none = time.Duration(-1)
	next, now := none, t.w.cfg.Clock.Now()
	for _, g := range t.groups {
		if g.gone && g.running.Len() > 0 {
			due := max(t.w.cfg.CloseTunnels-time.Duration(now-g.since), time.Millisecond)
			if next == none || due < next {
				next = due
			}
		}
	}
	if next == none {
		return
	}
	if t.timer == nil {
		t.timer = t.w.cfg.Clock.NewTimer(t.expire)
	}
	t.timer.Reset(next)
}

// RoutesChanged tells that a table was published: with Config.CloseTunnels, tunnels of routes it does not have end so long
// after. It is called on the loop.
func (w *Worker) RoutesChanged(table *routing.Table) {
	if w.cfg.CloseTunnels <= 0 {
		return
	}
	for _, g := range w.tunnels.groups {
		w.tunnels.look(g, table)
	}
	w.tunnels.rest()
}

// Tunnels adds the tunnels that are open to sum, by route. Any goroutine may call it.
func (w *Worker) Tunnels(sum map[TunnelRoute]int) {
	t := &w.tunnels
	t.mu.Lock()
	defer t.mu.Unlock()
	for route, g := range t.groups {
		sum[TunnelRoute{route.key.Namespace, route.key.Name}] += g.open
	}
}
