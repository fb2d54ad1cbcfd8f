package gateway

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/expansion"
	"turnout/controller/turns"
	"turnout/internal/bound"
)

// costGone is the cost of a deleted route for each rule that it had; see Begin.
const costGone = 64

// Begin sets the budget for judging routes again until the next Begin, in the unit of
// expansion.Size.Bytes. Routes beyond it wait by namespace for later calls. stamp marks the
// changes from now on, see turns.Queue.Add. Without Begin there is no budget and no wait.
func (j *Judge) Begin(budget turns.Budget, stamp uint64) { j.budget, j.stamp = budget, stamp }

// Waiting returns the number of routes that wait for later calls of Judge.
func (j *Judge) Waiting() int { return j.waiting.Len() }

// Oldest returns the smallest stamp of the routes that wait, if there are any.
func (j *Judge) Oldest() (stamp uint64, ok bool) { return j.waiting.Oldest() }

// costOf returns the cost of a waiting route. Each batch calls it for the first route of each
// namespace; it costs no more than reading the text of the route.
func (j *Judge) costOf(o *Objects, ref Ref) int {
	cost := 1 << 10
	if before := j.result.Routes[ref]; before != nil {
		cost += costGone * before.rules.len()
	}
	r := o.route(ref)
	if r == nil {
		return cost
	}
	trial := judged{route: r, parents: j.parentsOf(o, r)}
	size := r.size(trial.places(), expansion.Rough)
	if size.Check() != "" {
		return cost + size.Text
	}
	return cost + size.Bytes()
}

// attach records the parents of a route and counts its expansion there. before is the earlier state
// of the route, nil for none.
func (j *Judge) attach(o *Objects, r *route, before *judged) {
	out := &judged{route: r}
	j.routes[r.ref] = out
	for i := range r.parents {
		j.byParent.add(r.parentKey(&r.parents[i]), r.ref)
	}
	if out.parents = j.parentsOf(o, r); len(out.parents) == 0 {
		return
	}
	if before != nil && before.source > 0 && before.object == r.object {
		out.source = before.source
	} else {
		out.source = expansion.Source(r.object)
	}
	size := r.size(out.places(), expansion.Exact)
	size.Source = out.source
	if out.refused = size.Check(); out.refused == "" {
		j.ledger.Set(r.ref, size)
		return
	}
	if before == nil || before.refused == "" {
		j.cfg.Bounds.Reached(bound.ObjectExpansion)
	}
}

// places returns the number of host names of a route at all its listeners.
func (r *judged) places() (n int) {
	seen := make(map[*listener]struct{})
	for _, p := range r.parents {
		for _, a := range p.at {
			if _, twice := seen[a.listener]; !twice {
				seen[a.listener] = struct{}{}
				n += len(a.hosts)
			}
		}
	}
	return n
}

// compileJudged compiles a route. A route that expands to too much gets no rules.
func (j *Judge) compileJudged(o *Objects, r *judged) {
	why := r.refused
	if why == "" {
		if why = j.ledger.Refused(r.ref); why != "" {
			j.cfg.Bounds.Reached(bound.NamespaceExpansion)
		}
	}
	if why != "" {
		r.compiled = &compiled{reason: gatewayv1.RouteReasonUnsupportedValue, message: "The route " + why}
		return
	}
	if !j.guard(r.ref, func() { r.compiled = j.compile(o, r.route) }) {
		r.compiled = brokenRoute()
	}
}
