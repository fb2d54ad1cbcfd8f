package admit

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"turnout/controller/source"
	"turnout/internal/keyed"
)

// Claim is a route that wants a host. Its host and wildcard policy have been found good
// by Options.Check.
type Claim struct {
	Key         source.Key
	UID         string
	Created     time.Time // decides who is older, then Order, then UID
	Order       string
	Host, Path  string
	Wildcard    bool // wildcardPolicy Subdomain
	TLS         bool // the route has a tls section
	Passthrough bool
}

// older reports whether c wins over d: it was created earlier.
func (c *Claim) older(d *Claim) bool { return c.compare(d) < 0 }

func (c *Claim) compare(d *Claim) int {
	if n := c.Created.Compare(d.Created); n != 0 {
		return n
	}
	return cmp.Or(cmp.Compare(c.Order, d.Order), cmp.Compare(c.UID, d.UID))
}

// Claims holds all claims and settles them. It is made by NewClaims and used by one
// goroutine. A change costs as much as there are routes of the same host and wildcard
// routes of its domain, whatever the number of routes.
type Claims struct {
	options Options
	claims  *keyed.Set[source.Key, claim]
	none    *Verdict // the zero value, which new claims share
	free    *Verdict // what those share that are admitted
	hosts   *keyed.Set[string, host]
	domains map[string]*domain // empty unless wildcards are allowed
	dirty   map[*host]struct{}
	unsure  map[*domain]struct{}
	changed []*claim // set since the last Settle
}

// claim is one claim and what was decided about it.
type claim struct {
	Claim
	verdict *Verdict // read-only, never nil; many claims share one
	ward    string   // wildcard claims: why another route keeps it out, "" if none does
	fresh   bool     // set since the last Settle
}

// host is all claims of one host, oldest first.
type host struct {
	name   string
	claims []*claim
	domain *domain // nil unless wildcards are allowed
	head   *claim  // oldest claim that is not for a wildcard
}

// domain is all hosts with one parent, when wildcards are allowed.
type domain struct {
	name      string
	hosts     map[*host]struct{}
	heads     []*claim       // the heads of the hosts, oldest first
	owners    map[string]int // number of heads by namespace
	wildcards []*claim       // oldest first
	first     Claim          // the oldest wildcard claim that holds; zero = none
}

// NewClaims returns an empty set.
func NewClaims(options Options) *Claims {
	return &Claims{
		options: options,
		claims:  keyed.New(func(c *claim) source.Key { return c.Key }),
		hosts:   keyed.New(func(h *host) string { return h.name }),
		none:    new(Verdict),
		free:    &Verdict{Admitted: true},
		domains: make(map[string]*domain),
		dirty:   make(map[*host]struct{}),
		unsure:  make(map[*domain]struct{}),
	}
}

// Set adds a claim or replaces the one of the same key.
func (s *Claims) Set(c Claim) {
	// A wildcard needs a domain to be a wildcard of.
	c.Wildcard = c.Wildcard && s.options.AllowWildcard && strings.Contains(c.Host, ".")
	old := s.claims.Get(c.Key)
	if old != nil && old.Claim == c {
		return
	}
	next := &claim{Claim: c, verdict: s.none, fresh: true}
	if old != nil {
		s.removeClaim(old)
		if old.UID == c.UID && old.Host == c.Host {
			next.verdict = old.verdict
		}
	}
	s.claims.Put(next)
	s.changed = append(s.changed, next)
	s.insertClaim(next)
}

// Recall tells what was last said about a claim by another process, if nothing was decided about it here yet: the words of a
// rejection stay as long as its reason does, whichever process starts in between. It has no part in the decision itself.
func (s *Claims) Recall(key source.Key, said Verdict) {
	if c := s.claims.Get(key); c != nil && c.fresh && *c.verdict == (Verdict{}) {
		c.verdict = s.kept(said)
	}
}

// Remove takes the claim of a key back. Removing none is no mistake.
func (s *Claims) Remove(key source.Key) {
	if old := s.claims.Delete(key); old != nil {
		s.removeClaim(old)
	}
}

// Verdict returns what was decided about a key by the latest Settle, not to be changed. The bool is false
// when there is no such claim, and the Verdict the zero value then.
func (s *Claims) Verdict(key source.Key) (*Verdict, bool) {
	c := s.claims.Get(key)
	if c == nil {
		return s.none, false
	}
	return c.verdict, true
}

// kept returns v as claims have it.
func (s *Claims) kept(v Verdict) *Verdict {
	switch v {
	case *s.none:
		return s.none
	case *s.free:
		return s.free
	}
	return &v
}

// Len returns the number of claims and of hosts claimed.
func (s *Claims) Len() (claims, hosts int) { return s.claims.Len(), s.hosts.Len() }

// insertClaim enters a claim where it belongs.
func (s *Claims) insertClaim(c *claim) {
	h := s.hosts.Get(c.Host)
	if h == nil {
		h = &host{name: c.Host}
		s.hosts.Put(h)
		if parent, ok := parentOf(c.Host); ok && s.options.AllowWildcard {
			h.domain = s.domain(parent)
			h.domain.hosts[h] = struct{}{}
		}
	}
	h.claims = insert(h.claims, c)
	s.dirty[h] = struct{}{}
	if h.domain == nil {
		return
	}
	s.unsure[h.domain] = struct{}{}
	if c.Wildcard {
		h.domain.wildcards = insert(h.domain.wildcards, c)
	} else {
		h.updateHead()
	}
}

// removeClaim removes a claim from where it is.
func (s *Claims) removeClaim(c *claim) {
	h := s.hosts.Get(c.Host)
	h.claims = without(h.claims, c)
	s.dirty[h] = struct{}{}
	d := h.domain
	if d != nil {
		s.unsure[d] = struct{}{}
		if c.Wildcard {
			d.wildcards = without(d.wildcards, c)
		} else {
			h.updateHead()
		}
	}
	if len(h.claims) > 0 {
		return
	}
	s.hosts.Delete(h.name)
	delete(s.dirty, h)
	if d == nil {
		return
	}
	delete(d.hosts, h)
	if len(d.hosts) == 0 {
		delete(s.domains, d.name)
		delete(s.unsure, d)
	}
}

func (s *Claims) domain(name string) *domain {
	d := s.domains[name]
	if d == nil {
		d = &domain{name: name, hosts: make(map[*host]struct{}), owners: make(map[string]int)}
		s.domains[name] = d
	}
	return d
}

// updateHead finds the oldest claim that is not for a wildcard again.
func (h *host) updateHead() {
	var head *claim
	for _, c := range h.claims {
		if !c.Wildcard {
			head = c
			break
		}
	}
	if head == h.head {
		return
	}
	if h.head != nil {
		h.domain.heads = without(h.domain.heads, h.head)
		ns := h.head.Key.Namespace
		if h.domain.owners[ns]--; h.domain.owners[ns] == 0 {
			delete(h.domain.owners, ns)
		}
	}
	if head != nil {
		h.domain.heads = insert(h.domain.heads, head)
		h.domain.owners[head.Key.Namespace]++
	}
	h.head = head
}

// parentOf returns what follows the first dot of a host.
func parentOf(host string) (string, bool) {
	_, parent, ok := strings.Cut(host, ".")
	return parent, ok
}

// place returns where a claim stands or would stand in a list, oldest first.
func place(list []*claim, c *claim) int {
	i, _ := slices.BinarySearchFunc(list, c, func(e, t *claim) int {
		return cmp.Or(e.compare(&t.Claim), cmp.Compare(e.Key.Namespace, t.Key.Namespace), cmp.Compare(e.Key.Name, t.Key.Name))
	})
	return i
}

func insert(list []*claim, c *claim) []*claim { return slices.Insert(list, place(list, c), c) }

func without(list []*claim, c *claim) []*claim {
	i := place(list, c)
	return slices.Delete(list, i, i+1)
}

// Each calls yield with the key of each claim of a host, oldest first, and whether it is admitted by the latest Settle.
func (s *Claims) Each(hostName string, yield func(key source.Key, admitted bool) bool) {
	h := s.hosts.Get(hostName)
	if h == nil {
		return
	}
	for _, c := range h.claims {
		if !yield(c.Key, c.verdict.Admitted) {
			return
		}
	}
}
