package admit

import (
	"strings"

	"turnout/controller/source"
)

// Settle decides all claims that changes may have touched, and returns the keys of
// those that were set or whose verdict changed, in no order.
func (s *Claims) Settle() []source.Key {
	for d := range s.unsure {
		s.settleDomain(d)
	}
	s.unsure = emptied(s.unsure)
	var keys []source.Key
	for h := range s.dirty {
		for _, c := range s.settleHost(h) {
			if !c.fresh {
				keys = append(keys, c.Key)
			}
		}
	}
	s.dirty = emptied(s.dirty)
	for _, c := range s.changed {
		c.fresh = false
		if s.claims.Get(c.Key) == c {
			keys = append(keys, c.Key)
		}
	}
	s.changed = nil
	return keys
}

// emptied returns an empty map: m, unless m has grown so much that walking it would
// cost more than making another.
func emptied[K comparable](m map[K]struct{}) map[K]struct{} {
	if len(m) > 64 {
		return make(map[K]struct{})
	}
	clear(m)
	return m
}

// settleDomain decides which wildcard claims of a domain hold, as far as other hosts
// of the domain and other wildcards are concerned.
//
// With ownership, everything younger than the first wildcard that holds must be in its
// namespace, and nothing older may be in another. So one look at the heads of the hosts
// decides: the head of a host is the oldest claim of it and holds unless a wildcard is
// in its way, and the first wildcard has none before it.
func (s *Claims) settleDomain(d *domain) {
	var first *claim
	var held taken
	var oldest, other *claim
	if len(d.wildcards) > 0 && !s.options.DisableOwnership {
		oldest, other = d.rivals()
	}
	for _, w := range d.wildcards {
		before, by := w.ward, (*claim)(nil)
		switch {
		case s.options.DisableOwnership:
		case first == nil:
			by = foreign(w, oldest, other)
		case first.Key.Namespace != w.Key.Namespace:
			by = first
		}
		if by == nil {
			by = held.at(w.Path)
		}
		if by == nil {
			if first == nil {
				first = w
			}
			held.addClaim(w)
			w.ward = ""
		} else {
			w.ward = s.claimWords(w, by)
		}
		if w.ward != before || w.fresh {
			s.dirty[s.hosts.Get(w.Host)] = struct{}{}
		}
	}
	var now Claim
	if first != nil && !s.options.DisableOwnership {
		now = first.Claim
	}
	if now != d.first {
		d.first = now
		for h := range d.hosts {
			s.dirty[h] = struct{}{}
		}
	}
}

// rivals returns the oldest head, and the oldest of another namespace than that one; nil
// where there is none.
func (d *domain) rivals() (first, other *claim) {
	if len(d.heads) == 0 {
		return nil, nil
	}
	first = d.heads[0]
	if len(d.owners) == 1 {
		return first, nil
	}
	for _, e := range d.heads {
		if e.Key.Namespace != first.Key.Namespace {
			return first, e
		}
	}
	return first, nil
}

// foreign returns the one of the rivals that is of another namespace than w and older,
// nil if none is.
func foreign(w, first, other *claim) *claim {
	e := first
	if e != nil && e.Key.Namespace == w.Key.Namespace {
		e = other
	}
	if e == nil || !e.older(&w.Claim) {
		return nil
	}
	return e
}

// settleHost decides all claims of a host and returns those whose verdict changed.
func (s *Claims) settleHost(h *host) []*claim {
	var changed []*claim
	var passed, active taken // past the wildcard rules and not for a wildcard; holding the host
	decide := func(c *claim, v Verdict) {
		if *c.verdict != v {
			c.verdict = s.kept(v)
			changed = append(changed, c)
		}
	}
	for _, c := range h.claims {
		if h.domain != nil {
			if words := s.keptOut(h, c, &passed); words != "" {
				decide(c, rejected(ReasonClaimed, words))
				continue
			}
			if !c.Wildcard {
				passed.addClaim(c)
			}
		}
		if by := s.holder(c, &active); by != nil {
			decide(c, rejected(ReasonClaimed, hostWords(c, by, active.first())))
			continue
		}
		active.addClaim(c)
		decide(c, Verdict{Admitted: true})
	}
	return changed
}

// keptOut returns why the rules for wildcards, which apply to all hosts once wildcards
// are allowed, keep a claim out; "" if they do not. passed holds the older claims of the
// host they let in that are not for a wildcard.
func (s *Claims) keptOut(h *host, c *claim, passed *taken) string {
	if c.Wildcard {
		return c.ward
	}
	first := &h.domain.first
	if first.Host != "" && first.older(&c.Claim) && first.Key.Namespace != c.Key.Namespace {
		return s.claimWords(c, &claim{Claim: *first})
	}
	// With ownership all that passed are of one namespace.
	e := passed.first()
	if e == nil || s.options.DisableOwnership || e.Key.Namespace == c.Key.Namespace {
		e = passed.at(c.Path)
	}
	if e == nil {
		return ""
	}
	return s.claimWords(c, e)
}

// claimWords returns why c must give way to by under the rules for wildcards. A route
// that was served before gets other words than a newer one.
func (s *Claims) claimWords(c, by *claim) string {
	if c.Key.Namespace != by.Key.Namespace {
		return "a route in another namespace holds host " + c.Host
	}
	kind, name := by.called()
	owner := kind + " " + by.Key.Namespace + "/" + name
	newer := owner + " has host " + by.Host
	displaced := newer + ", blocking " + c.Host
	if by.Wildcard {
		parent, _ := parentOf(by.Host)
		newer = "wildcard " + owner + " has host *." + parent + ", blocking " + c.Host
		displaced = "wildcard " + owner + " has host *." + parent + " blocking " + c.Host
	}
	return c.words(newer, displaced)
}

// holder returns the older route that holds the host so that c cannot have a part of
// it, nil if c can.
func (s *Claims) holder(c *claim, active *taken) *claim {
	if e := active.first(); e != nil && !s.options.DisableOwnership && e.Key.Namespace != c.Key.Namespace {
		return e
	}
	return active.collides(c)
}

// hostWords returns why c must give way to by on a host. A route that was served before
// gets other words than a newer one.
func hostWords(c, by, first *claim) string {
	kind, name := by.called()
	newer := kind + " " + name + " already exposes " + c.Host + " and is older"
	if by.Key.Namespace != c.Key.Namespace {
		_, mine := c.called()
		newer = "a route in another namespace holds " + c.Host + " and is older than " + mine
	}
	replaced := "replaced by older " + kind + " " + name
	owns := "namespace " + by.Key.Namespace + " owns hostname " + c.Host
	switch {
	case by.Key.Namespace == c.Key.Namespace || first != by:
		return c.words(newer, replaced)
	case c.said(owns) || !by.fresh && !c.said(replaced):
		// The owner was there before: it came to own the host because another went.
		return c.words(newer, owns)
	}
	return c.words(newer, replaced)
}

// called is what people know a claimant as: a route, or the Ingress that has the rule.
func (c *Claim) called() (kind, name string) {
	if name, _, ok := strings.Cut(c.Key.Name, source.OfIngress); ok {
		return "Ingress", name
	}
	return "route", c.Key.Name
}

// said reports whether message is what was last said about c.
func (c *claim) said(message string) bool {
	return !c.verdict.Admitted && c.verdict.Message == message
}

// words chooses between the words for a newer route and those for a displaced route. The latter
// stays as long as its reason does.
func (c *claim) words(newer, displaced string) string {
	if c.verdict.Admitted || c.said(displaced) {
		return displaced
	}
	return newer
}
