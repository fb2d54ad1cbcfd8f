package balancer

import (
	"iter"
	"net/netip"
	"testing"

	"turnout/internal/testkit/testaddr"
	"turnout/internal/wire/protocol"
)

func addrFrom16(b [16]byte) netip.Addr { return netip.AddrFrom16(b) }

// nothing yields no pool to Sweep.
func nothing(func(*Pool) bool) {}

// everything yields all pools of r to Sweep.
func (r *Registry) everything(yield func(*Pool) bool) { r.pools.All()(yield) }

// only yields the pool of a key to Sweep.
func (r *Registry) only(key string) iter.Seq[*Pool] {
	return func(yield func(*Pool) bool) { yield(r.pools.Get(key)) }
}

func ids(p *Pool) map[uint32]bool {
	out := make(map[uint32]bool)
	for _, s := range p.Servers() {
		out[s.Endpoint().ID()] = true
	}
	return out
}

func TestPoolsAreInterned(t *testing.T) {
	r := NewRegistry()
	a := r.Pool("a")
	if a != r.Pool("a") || r.Pool("a") == r.Pool("b") || r.Pool("a").Key() != "a" {
		t.Error("a key is not one pool")
	}
}

func TestEndpointsAreInternedByFullIdentity(t *testing.T) {
	verify, err := NewTLS(TLSConfig{Verify: true, CA: caA})
	if err != nil {
		t.Fatal(err)
	}
	again, err := NewTLS(TLSConfig{Verify: true, CA: caA})
	if err != nil {
		t.Fatal(err)
	}
	r := NewRegistry()
	a, b := r.Pool("a"), r.Pool("b")
	base := aTarget("x", 1)
	variants := func(tls *TLS) []Target {
		v := []Target{base, base, base, base}
		v[1].Protocol, v[2].TLS = protocol.HTTP2, tls
		v[3].Addr = testaddr.Of(netip.AddrPortFrom(base.Addr.AddrPort().Addr(), 9))
		for i := range v {
			v[i].ID = v[i].ID + string(rune('0'+i))
		}
		return v
	}
	a.Update(PoolConfig{}, variants(verify))
	b.Update(PoolConfig{}, variants(again))
	if n := len(ids(a)); n != 4 {
		t.Fatalf("%d endpoints for 4 identities", n)
	}
	for i, s := range a.Servers() {
		if s.Endpoint() != b.Servers()[i].Endpoint() {
			t.Errorf("identity %d has two endpoints", i)
		}
		if s == b.Servers()[i] {
			t.Errorf("server %d is shared by two pools", i)
		}
	}
	if s := a.Servers()[2].Endpoint(); s.TLS() != verify || s.Addr() != base.Addr.AddrPort() {
		t.Error("the endpoint does not say how it is reached")
	}
}

// TestNamespacesShareNoEndpoint: the same address of routes of two namespaces is two endpoints, whose connections and checks are
// kept apart.
func TestNamespacesShareNoEndpoint(t *testing.T) {
	r := NewRegistry()
	pool := func(key, namespace string) *Pool {
		p := r.Pool(key)
		p.Update(PoolConfig{Algorithm: RoundRobin, Namespace: namespace, Check: checkEvery}, targets(1, 1))
		return p
	}
	a, again, b := pool("a", "one"), pool("again", "one"), pool("b", "two")
	for i := range 2 {
		ea, eb := a.Servers()[i].Endpoint(), b.Servers()[i].Endpoint()
		if ea == eb || ea.ID() == eb.ID() || ea.Addr() != eb.Addr() || ea.Namespace() != "one" || eb.Namespace() != "two" {
			t.Errorf("server %d: %v and %v are one endpoint", i, ea.Addr(), eb.Addr())
		}
		if ea != again.Servers()[i].Endpoint() {
			t.Errorf("server %d: two endpoints in one namespace", i)
		}
		if a.Servers()[i].Check() == nil || a.Servers()[i].Check() == b.Servers()[i].Check() {
			t.Errorf("server %d: one tenant's checks are another's", i)
		}
	}
	r.SetDown(a.Servers()[0].Check(), true)
	if a.Servers()[0].Usable() || again.Servers()[0].Usable() || !b.Servers()[0].Usable() || !b.Servers()[1].Usable() {
		t.Error("what a check found is not true for its namespace alone")
	}
	if _, n := r.Len(); n != 4 {
		t.Errorf("%d endpoints", n)
	}
	// The namespace that came first leaves.
	r.Sweep(r.only("b"))
	if _, n := r.Len(); n != 2 {
		t.Errorf("%d endpoints are left", n)
	}
	before := b.Servers()[0]
	b.Update(PoolConfig{Algorithm: RoundRobin, Namespace: "three", Check: checkEvery}, targets(1, 1))
	if after := b.Servers()[0]; after == before || after.Endpoint() == before.Endpoint() {
		t.Error("a pool of another namespace kept its endpoints")
	}
}

func TestEndpointNumbers(t *testing.T) {
	r := NewRegistry()
	p := r.Pool("a")
	p.Update(PoolConfig{}, targets(1, 1, 1))
	first := ids(p)
	for id := range first {
		if id > 2 {
			t.Errorf("three endpoints have the number %d", id)
		}
	}
	p.Update(PoolConfig{}, []Target{aTarget("x", 1), aTarget("y", 1)})
	for id := range ids(p) {
		if first[id] {
			t.Fatalf("number %d was given away without a sweep", id)
		}
	}
	r.Sweep(r.everything)
	p.Update(PoolConfig{}, []Target{aTarget("z", 1)})
	for id := range ids(p) {
		if first[id] {
			t.Fatalf("number %d was given away right after the sweep that retired it", id)
		}
	}
	r.Sweep(r.everything)
	p.Update(PoolConfig{}, []Target{aTarget("u", 1), aTarget("v", 1), aTarget("w", 1)})
	for id := range ids(p) {
		if !first[id] {
			t.Errorf("new number %d, though smaller ones are free", id)
		}
	}
}

func TestSweepRetiresUnused(t *testing.T) {
	r := NewRegistry()
	a, b := r.Pool("a"), r.Pool("b")
	a.Update(PoolConfig{}, targets(1, 1))
	b.Update(PoolConfig{}, targets(1)) // shares s0
	shared, own := a.Servers()[0].Endpoint(), a.Servers()[1].Endpoint()
	r.Sweep(r.only("b"))
	if shared.Retired() || !own.Retired() {
		t.Error("not exactly the endpoint of no pool is retired")
	}
	if pools, endpoints := r.Len(); pools != 1 || endpoints != 1 {
		t.Errorf("%d pools and %d endpoints are left", pools, endpoints)
	}
	if r.Pool("a") == a {
		t.Error("the dropped pool came back")
	}
	// Requests on an old table still get an answer, updates are over.
	if pick(a, Pick{}) == "" {
		t.Error("a dropped pool has no servers")
	}
	a.Update(PoolConfig{}, []Target{aTarget("x", 1)})
	if _, endpoints := r.Len(); endpoints != 1 || a.Len() != 2 {
		t.Error("a dropped pool was updated")
	}
}

func TestSweepSparesLeased(t *testing.T) {
	r := NewRegistry()
	p := r.Pool("a")
	p.Update(PoolConfig{}, targets(1))
	l, _ := p.Pick(Pick{})
	e := l.Endpoint()
	p.Update(PoolConfig{}, nil)
	r.Sweep(r.everything)
	if e.Retired() {
		t.Error("an endpoint with a lease is retired")
	}
	p.Update(PoolConfig{}, targets(1))
	if p.Servers()[0].Endpoint() != e {
		t.Error("an endpoint that is not retired did not come back")
	}
	l.Release()
	r.Sweep(r.everything)
	if e.Retired() {
		t.Error("an endpoint in use is retired")
	}
	p.Update(PoolConfig{}, nil)
	r.Sweep(r.everything)
	if !e.Retired() {
		t.Error("an unused endpoint is not retired")
	}
	p.Update(PoolConfig{}, targets(1))
	if p.Servers()[0].Endpoint() == e {
		t.Error("a retired endpoint came back")
	}
}

// TestDraftsAreUnseen: a pool that was not entered is nobody's, and of several drafts of a key one is entered.
func TestDraftsAreUnseen(t *testing.T) {
	r := NewRegistry()
	one, two := r.Draft("a"), r.Draft("a")
	if pools, _ := r.Len(); pools != 0 || one.Len() != 0 {
		t.Errorf("%d pools after a draft", pools)
	}
	if one.Enter() != one || two.Enter() != one || one.Enter() != one || r.Draft("a") != one || r.Pool("a") != one {
		t.Error("a key has several pools")
	}
	r.Sweep(nothing)
	next := one.Enter()
	if next == one || r.Pool("a") != next {
		t.Error("a dropped pool came back")
	}
}
