package shard

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

func unix(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

// digest is FNV-1a of texts, each with an end of its own.
type digest uint64

func newDigest() digest { return 14695981039346656037 }

func (d digest) text(s string) digest {
	for i := range len(s) {
		d = (d ^ digest(s[i])) * 1099511628211
	}
	return (d ^ 0xff) * 1099511628211
}

func (d digest) number(n int) digest { return d.text(strconv.Itoa(n)) }

func (d digest) list(texts []string) digest {
	d = d.number(len(texts))
	for _, s := range texts {
		d = d.text(s)
	}
	return d
}

// hash is equal for equal views.
func (v *View) hash() uint64 {
	return uint64(newDigest().text(string(v.Phase)).text(v.DNS).text(v.Target).list(v.Routers).list(v.Bound).text(v.Message))
}

// hash is equal for equal statuses.
func (s *RouterStatus) hash() uint64 {
	d := newDigest().text(string(s.Phase)).number(s.ReadyReplicas).number(s.RoutesBound).number(s.Moving).list(s.Addresses)
	for _, c := range s.Conditions {
		d = d.text(c.Type).text(strconv.FormatBool(c.True)).text(c.Reason).text(c.Message)
	}
	return uint64(d)
}

// bindingSays is a hash of what a binding says of its route.
func bindingSays(uid, dns, target string) uint64 {
	return uint64(newDigest().text(uid).text(dns).text(target))
}

// view is what a route is to say.
func (p *Planner) view(r *route) View {
	v := View{Phase: RouteNew, Target: r.target.text(&r.Route)}
	serving := false
	for _, b := range r.bindings {
		if b.version == 0 {
			continue
		}
		v.Bound = append(v.Bound, b.router.Name)
		if !b.leaving {
			v.Phase = RouteScheduled
			serving = serving || b.phase == BindingServing
		}
	}
	for _, b := range r.bindings {
		// While none serves, those that will are named.
		if b.version != 0 && !b.leaving && (b.phase == BindingServing || !serving) {
			v.Routers = append(v.Routers, b.router.Name)
		}
	}
	slices.Sort(v.Bound)
	slices.Sort(v.Routers)
	if v.Phase == RouteScheduled {
		v.DNS = cmp.Or(r.Host, v.Target) // the host that it asks for, or the name that the system has given it
	}
	if r.trouble != nil && r.trouble.reason != ReasonWrite {
		v.Message = r.trouble.message
	}
	return v
}

// status is what a router's status is to say.
func (p *Planner) status(r *router) RouterStatus {
	s := RouterStatus{Phase: RouterPending, ReadyReplicas: r.ready, RoutesBound: r.active(), Moving: r.moves}
	switch {
	case r.lost:
		s.Phase = RouterLost
	case r.drain:
		s.Phase = RouterDraining
	case r.ever:
		s.Phase = RouterReady
	}
	s.Addresses = p.addresses(r)
	available := Condition{Type: "Available", True: r.ready > 0, Reason: "ReplicasReady", Message: "a replica is ready"}
	switch {
	case r.lost:
		available.Reason, available.Message = "Lost", "no replica has said anything for "+p.config.LostAfter.String()
	case r.ready == 0:
		available.Reason, available.Message = "NoReplicaReady", "no replica is ready: look at the pods of the router"
	}
	valid := Condition{Type: "Valid", True: true, Reason: "Valid", Message: "the router can be used"}
	if f := r.fault(); f != (fault{}) {
		valid = Condition{Type: "Valid", Reason: f.reason, Message: f.message}
	}
	s.Conditions = []Condition{available, valid}
	return s
}

// addresses are where clients reach a router. When no replica says anything any more, those stay that were ready last: they may have lost the API server
// and not their clients, and no address would serve nobody.
func (p *Planner) addresses(r *router) []string {
	list := slices.Clone(r.Addresses)
	if len(list) == 0 {
		silent := p.living(r) == 0
		for i := range r.Replicas {
			if (silent || p.alive(r, &r.Replicas[i])) && r.Replicas[i].Ready {
				list = append(list, r.Replicas[i].Addresses...)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
