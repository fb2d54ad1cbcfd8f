package ratelimit

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// TestPeek: what Peek says is what Enter does then, and Peek alone changes nothing.
func TestPeek(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	table, limits := NewMemory(0).NewTable("ns"), Limits{Concurrent: on(6), TCP: on(20), HTTP: on(15)}
	var open []Ticket
	refused := 0
	for at := int64(0); at < int64(3*time.Minute); at += rng.Int64N(int64(800 * time.Millisecond)) {
		source, http := netip.AddrFrom4([4]byte{192, 0, 2, byte(rng.IntN(3))}), rng.IntN(4) > 0
		before := table.Len()
		first, says := table.Peek(source, at, limits, http)
		if second, again := table.Peek(source, at, limits, http); first != second || says != again || table.Len() != before {
			t.Fatalf("at %v: Peek has changed something: %+v %v, then %+v %v", time.Duration(at), first, says, second, again)
		}
		ticket, ok := table.Enter(source, at, limits, http)
		if ok != says {
			t.Fatalf("at %v: Peek says %v with %+v, and Enter %v", time.Duration(at), says, first, ok)
		}
		if !ok {
			refused++
		} else {
			open = append(open, ticket)
		}
		for len(open) > 0 && rng.IntN(3) > 0 {
			open[0].Leave()
			open = open[1:]
		}
	}
	if refused == 0 {
		t.Error("nobody was refused")
	}
}
