package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"
)

var client = netip.MustParseAddr("192.0.2.7")

func on(n int) Limit { return Limit{On: true, N: n} }

// attempts enters k times, gap apart, leaves at once, and tells how many got through.
func attempts(t *Table, at *int64, k int, gap time.Duration, l Limits, http bool) (through int) {
	for range k {
		ticket, ok := t.Enter(client, *at, l, http)
		if ok {
			through++
			ticket.Leave()
		}
		*at += int64(gap)
	}
	return through
}

func TestConcurrent(t *testing.T) {
	tab, l := NewMemory(0).NewTable("ns"), Limits{Concurrent: on(3)}
	a, ok1 := tab.Enter(client, 0, l, true)
	b, ok2 := tab.Enter(client, 0, l, false)
	_, ok3 := tab.Enter(client, 0, l, true)
	if !ok1 || !ok2 || ok3 {
		t.Fatalf("%v %v %v: 3 admits two", ok1, ok2, ok3)
	}
	if _, ok := tab.Enter(netip.MustParseAddr("192.0.2.8"), 0, l, true); !ok {
		t.Error("another address was refused")
	}
	a.Leave()
	a.Leave() // holds nothing any more
	c, ok := tab.Enter(client, 0, l, true)
	if !ok {
		t.Fatal("one left, nobody may enter")
	}
	if _, ok := tab.Enter(netip.MustParseAddr("::ffff:192.0.2.7"), 0, l, true); ok {
		t.Error("the same address, mapped, is another one")
	}
	b.Leave()
	c.Leave()
}

func TestRates(t *testing.T) {
	for _, tc := range []struct {
		name   string
		limits Limits
		http   bool
		k      int
		want   int
	}{
		{"tcp 5 admits 4", Limits{TCP: on(5)}, true, 20, 4},
		{"tcp 3 admits 2", Limits{TCP: on(3)}, true, 6, 2},
		{"tcp of tunnels", Limits{TCP: on(3)}, false, 6, 2},
		{"http 3 admits 3", Limits{HTTP: on(3)}, true, 6, 3},
		{"http does not hold tunnels", Limits{HTTP: on(3)}, false, 6, 6},
		{"zero", Limits{TCP: on(0)}, true, 3, 0},
		{"negative", Limits{Concurrent: on(-1)}, true, 3, 0},
		{"http zero", Limits{HTTP: on(0)}, true, 3, 0},
		{"one connection", Limits{Concurrent: on(1)}, true, 3, 0},
		{"nothing", Limits{}, true, 50, 50},
	} {
		at := int64(time.Hour)
		if got := attempts(NewMemory(0).NewTable("ns"), &at, tc.k, time.Millisecond, tc.limits, tc.http); got != tc.want {
			t.Errorf("%s: %d got through, want %d", tc.name, got, tc.want)
		}
	}
}

// What was measured of the HAProxy router.
func TestRecovery(t *testing.T) {
	at, tab := int64(time.Hour), NewMemory(0).NewTable("ns")
	l := Limits{TCP: on(5)}
	attempts(tab, &at, 20, 10*time.Millisecond, l, true)
	polls := 0
	for ; polls < 20; polls++ {
		at += int64(time.Second)
		if attempts(tab, &at, 1, 0, l, true) == 1 {
			break
		}
	}
	if polls < 4 || polls > 6 {
		t.Errorf("a client that polls once a second recovers after %d s, not 5 or 6", polls)
	}

	at, tab = int64(time.Hour), NewMemory(0).NewTable("ns")
	l = Limits{HTTP: on(5)}
	if n := attempts(tab, &at, 100, 100*time.Millisecond, l, true); n != 5 {
		t.Errorf("%d requests in the first 10 s, want 5", n)
	}
	n := attempts(tab, &at, 400, 100*time.Millisecond, l, true)
	if n < 15 || n > 25 {
		t.Errorf("hammering gets %d requests through in 40 s, want about one in 2 s", n)
	}
}

func addrOf(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

func TestMemoryIsBounded(t *testing.T) {
	tab, l := NewMemory(0).NewTable("ns"), Limits{TCP: on(1000)}
	at := int64(time.Hour)
	kept, _ := tab.Enter(client, at, Limits{Concurrent: on(2)}, true)
	for i := range flood(1_000_000) {
		ticket, _ := tab.Enter(addrOf(i), at, l, true)
		ticket.Leave()
		at += 1000
	}
	if n := tab.Len(); n > MaxAddresses {
		t.Errorf("%d addresses are remembered", n)
	}
	if _, ok := tab.Enter(client, at, Limits{Concurrent: on(2)}, true); ok {
		t.Error("an address with an open connection was forgotten")
	}
	kept.Leave()
	// Silence gives the memory back, as far as somebody asks.
	at += int64(Expiry)
	for range maxEntries * shards {
		attempts(tab, &at, 1, 0, l, true)
		addr := addrOf(1<<23 + rand.IntN(4096))
		ticket, _ := tab.Enter(addr, at, l, true)
		ticket.Leave()
	}
	if n := tab.Len(); n > 4200 {
		t.Errorf("%d addresses are remembered after silence", n)
	}
}

func TestFullOfOpenConnections(t *testing.T) {
	tab, l := NewMemory(0).NewTable("ns"), Limits{Concurrent: on(2)}
	var open []Ticket
	for i := range 3 * MaxAddresses {
		ticket, ok := tab.Enter(addrOf(i), 0, l, true)
		if !ok {
			t.Fatal("a new address was refused")
		}
		open = append(open, ticket)
	}
	if n := tab.Len(); n > MaxAddresses {
		t.Errorf("%d addresses are remembered", n)
	}
	for i := range open {
		open[i].Leave()
	}
	if got := tab.openConnections(); got != 0 {
		t.Errorf("%d connections are counted as open", got)
	}
}

// openConnections sums what all addresses have open.
func (t *Table) openConnections() (n int64) {
	for i := range t.shards {
		for _, e := range t.shards[i].entries {
			n += int64(e.open)
		}
	}
	return n
}

func TestManyLoops(t *testing.T) {
	tab, l := NewMemory(0).NewTable("ns"), Limits{Concurrent: on(1000), TCP: on(1 << 30)}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range 20_000 {
				ticket, ok := tab.Enter(addrOf(rng.IntN(5000)), int64(i)*1e6, l, true)
				if !ok {
					t.Error("refused")
				}
				ticket.Leave()
			}
		})
	}
	all.Wait()
	if got := tab.openConnections(); got != 0 {
		t.Errorf("%d connections are counted as open", got)
	}
}

func TestEnterAllocatesNothing(t *testing.T) {
	tab, l := NewMemory(0).NewTable("ns"), Limits{Concurrent: on(10), TCP: on(1 << 30), HTTP: on(1 << 30)}
	at := int64(0)
	if n := testing.AllocsPerRun(1000, func() { attempts(tab, &at, 1, time.Millisecond, l, true) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEnter(b *testing.B) {
	for _, n := range []int{1, 1_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tab, l := NewMemory(0).NewTable("ns"), Limits{Concurrent: on(10), TCP: on(1 << 30), HTTP: on(1 << 30)}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				ticket, _ := tab.Enter(addrOf(i%n), int64(i)*1000, l, true)
				ticket.Leave()
			}
		})
	}
}
