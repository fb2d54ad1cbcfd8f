package ratelimit

import (
	"context"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"
)

// heap is what is in use after a collection, in bytes.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one found to be unused is swept by the second
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// visit has n addresses from the first-th on make one request each, within so many seconds.
func visit(tab *Table, first, n int, at *int64, within time.Duration, l Limits) {
	gap := int64(within) / int64(n)
	for i := range n {
		ticket, _ := tab.Enter(addrOf(first+i), *at, l, true)
		ticket.Leave()
		*at += gap
	}
}

// flood is n, or a fifth of it in short tests.
func flood(n int) int {
	if testing.Short() {
		return n / 5
	}
	return n
}

// bytesPerAddress is what one may cost at most, with its part of the index.
const bytesPerAddress = 160

// TestAMillionAddresses prints what docs/lab/reliability.md says of them.
func TestAMillionAddresses(t *testing.T) {
	m, l := NewMemory(0), Limits{Concurrent: on(10), TCP: on(100), HTTP: on(100)}
	before, at := heap(), int64(time.Hour)
	one := m.NewTable("ns")
	visit(one, 0, flood(1_000_000), &at, 10*time.Second, l)
	used := heap() - before
	t.Logf("%d addresses in 10 s on one route: %d are remembered in %.1f MiB, %d bytes each", flood(1_000_000), one.Len(), float64(used)/(1<<20), used/int64(one.Len()))
	if limit := int64(MaxAddresses * bytesPerAddress); used > limit || one.Len() > MaxAddresses {
		t.Errorf("%d addresses in %d bytes, more than %d", one.Len(), used, limit)
	}
	many := make([]*Table, 100)
	if testing.Short() {
		many = many[:40] // still twice what all tables together may remember
	}
	for i := range many {
		many[i] = m.NewTable("ns")
		visit(many[i], 0, flood(100_000), &at, 100*time.Millisecond, l)
		if i%10 == 0 {
			m.Sweep() // which is every second
		}
	}
	m.Sweep()
	used = heap() - before
	t.Logf("%d addresses on each of %d more routes: %d are remembered in %.1f MiB", flood(100_000), len(many), m.Addresses(), float64(used)/(1<<20))
	if limit := int64(2 * DefaultAddresses * bytesPerAddress); used > limit {
		t.Errorf("%d bytes, more than %d", used, limit)
	}
	for i, tab := range append(many, one) {
		if tab.Len() < shards*leastShare/2 {
			t.Errorf("table %d remembers only %d addresses", i, tab.Len())
		}
	}
	runtime.KeepAlive(many)
}

// TestAFloodFreesNobody: an address that is refused stays so, whatever other addresses come. It is not asked before the flood is over, so
// that nothing keeps it but what it did before.
func TestAFloodFreesNobody(t *testing.T) {
	for name, tc := range map[string]struct {
		limits Limits
		http   bool
		before int // requests it makes
	}{
		"refused connections":       {Limits{TCP: on(5)}, false, 9},
		"refused requests":          {Limits{HTTP: on(5)}, true, 9},
		"more than half of allowed": {Limits{HTTP: on(5)}, true, 5},
	} {
		m := NewMemory(0)
		tab, at := m.NewTable("ns"), int64(time.Hour)
		attempts(tab, &at, tc.before, time.Microsecond, tc.limits, tc.http)
		visit(tab, 0, flood(1_000_000), &at, time.Second, tc.limits)
		if n := attempts(tab, &at, 3, time.Microsecond, tc.limits, tc.http); n != 0 {
			t.Errorf("%s: %d of 3 got through after the flood", name, n)
		}
		// Nor when memory gets short for other reasons.
		for range 10 {
			visit(m.NewTable("ns"), 0, flood(100_000), &at, 10*time.Millisecond, tc.limits)
		}
		m.Sweep()
		if n := attempts(tab, &at, 3, time.Microsecond, tc.limits, tc.http); n != 0 {
			t.Errorf("%s: %d of 3 got through after other routes were flooded", name, n)
		}
	}
}

// TestConspicuousAddressesAreBounded: should all addresses be refused, others are still remembered.
func TestConspicuousAddressesAreBounded(t *testing.T) {
	tab, at, l := NewMemory(0).NewTable("ns"), int64(time.Hour), Limits{TCP: on(1)}
	visit(tab, 0, 3*MaxAddresses, &at, time.Second, l)
	for i := range tab.shards {
		if n := tab.shards[i].lists[conspicuous].len; n != maxEntries/8*7 {
			t.Fatalf("%d conspicuous addresses in a shard", n)
		}
	}
	visit(tab, 1<<23, 500, &at, time.Millisecond, Limits{TCP: on(1000)})
	for i := range 500 {
		addr := key(addrOf(1<<23 + i).As16())
		if _, ok := tab.shard(addr).index[addr]; !ok {
			t.Fatalf("address %d is not remembered", i)
		}
	}
}

// TestMemoryComesBack: nobody need come for what has expired.
func TestMemoryComesBack(t *testing.T) {
	m, at, l := NewMemory(0), int64(time.Hour), Limits{Concurrent: on(9)}
	tab := m.NewTable("ns")
	visit(tab, 0, 50_000, &at, time.Second, l)
	stays, _ := tab.Enter(client, at, l, false)
	for range quietSweeps {
		if tab.Len() != 50_001 {
			t.Fatalf("%d addresses are remembered", tab.Len())
		}
		m.Sweep()
	}
	if n := tab.Len(); n != 1 || m.Addresses() != 1 {
		t.Errorf("%d addresses are remembered, there is memory for %d", n, m.Addresses())
	}
	stays.Leave()
	for range quietSweeps {
		m.Sweep()
	}
	if n := tab.Len(); n != 0 || m.Addresses() != 0 || len(m.tables) != 0 {
		t.Errorf("%d addresses are remembered, there is memory for %d, %d tables are known", n, m.Addresses(), len(m.tables))
	}
	visit(tab, 0, 10, &at, time.Second, l)
	if len(m.tables) != 1 {
		t.Errorf("%d tables are known", len(m.tables))
	}
}

// TestShrinkKeepsOrder: what was seen last is what stays, in the order it was seen.
func TestShrinkKeepsOrder(t *testing.T) {
	m, at, l := NewMemory(0), int64(time.Hour), Limits{TCP: on(1000)}
	tab := m.NewTable("ns")
	visit(tab, 0, 10_000, &at, 10*time.Second, l)
	s := &tab.shards[7]
	var want []netip.Addr
	for i := s.lists[ordinary].first; len(want) < 20; i = s.entries[i].next {
		want = append(want, netip.AddrFrom16(s.entries[i].addr))
	}
	used := m.Addresses() - int64(cap(s.entries))
	s.shrink(m, 20)
	if cap(s.entries) != 20 || m.Addresses() != used+20 {
		t.Fatalf("memory for %d, and for %d in all, want %d", cap(s.entries), m.Addresses(), used+20)
	}
	i := s.lists[ordinary].first
	for n, addr := range want {
		if i == none || netip.AddrFrom16(s.entries[i].addr) != addr {
			t.Fatalf("address %d is another one", n)
		}
		i = s.entries[i].next
	}
}

func TestSweepWhileLoopsEnter(t *testing.T) {
	m := NewMemory(2000)
	tables := []*Table{m.NewTable("ns"), m.NewTable("ns"), m.NewTable("ns")}
	ctx, cancel := context.WithCancel(t.Context())
	var loops, sweeper sync.WaitGroup
	sweeper.Go(func() {
		for ctx.Err() == nil {
			m.Sweep()
		}
	})
	for g, tab := range tables {
		loops.Go(func() {
			for i := range 30_000 {
				ticket, ok := tab.Enter(addrOf(i*(g+1)), int64(i)*1e6, Limits{Concurrent: on(1 << 20)}, true)
				if !ok {
					t.Error("refused")
				}
				ticket.Leave()
			}
		})
	}
	loops.Wait()
	cancel()
	sweeper.Wait()
	m.Sweep()
	for _, tab := range tables {
		if n := tab.openConnections(); n != 0 {
			t.Errorf("%d connections are counted as open", n)
		}
	}
	if n := m.Addresses(); n > 2000+int64(len(tables)*shards*leastShare) {
		t.Errorf("memory for %d addresses", n)
	}
}
