package proxy

import (
	"strings"
	"testing"

	"turnout/internal/share"
	"turnout/routing"
)

// refuser is an Upstream that may refuse.
type refuser struct{ Upstream }

func (refuser) MayRefuse() (may, asked bool) { return true, false }

// TestKeptBodiesAllocateNothing: once as many are in use as there will be, bodies are kept in memory that was used before.
func TestKeptBodiesAllocateNothing(t *testing.T) {
	w := &Worker{}
	w.bodies.share = share.NewPool(4 * DefaultKeptBodies)
	route := new(routing.Route)
	var all []*Exchange
	for range 50 {
		all = append(all, &Exchange{attempts: attempts{w: w}})
	}
	head := &Head{ContentLength: -1}
	p := []byte(strings.Repeat("x", 1500))
	once := func() {
		for i, ex := range all {
			ex.exchangeState = exchangeState{up: refuser{}, req: head}
			ex.route, ex.bytesIn = route, 0
			for range 1 + i%20 { // up to 30,000 bytes: some grow twice
				ex.keep(p)
				ex.bytesIn += uint64(len(p))
			}
			if len(ex.kept()) != 1500*(1+i%20) || !ex.repeatable() {
				t.Fatalf("%d bytes are kept", len(ex.kept()))
			}
		}
		for i := range all {
			all[(i*7)%len(all)].forgetBody() // in another order
		}
	}
	once()
	if n := testing.AllocsPerRun(100, once); n > 0 {
		t.Errorf("%v allocations for 50 requests", n)
	}
	if w.Kept() != 0 {
		t.Errorf("%d bytes are kept", w.Kept())
	}
	spare := func() (n int) {
		for i := range w.bodies.free {
			n += w.bodies.free[i].Len()
		}
		return n
	}
	if n := spare(); n == 0 || n > 150 {
		t.Errorf("there is memory for %d bodies, 50 were kept at a time", n)
	}
	for range 3 {
		w.bodies.trim()
	}
	if n := spare(); n != 0 {
		t.Errorf("there is memory for %d bodies that nobody keeps", n)
	}
}
