package adversary

import (
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/proxy"
)

// longest is longer than whatever may still be waited for when nobody does anything any more: a keep-alive time, a tunnel's
// silence, idle connections of pools.
const longest = 30 * time.Minute

// settle lets time pass and looks that nothing is left of anything.
func (w *world) settle() {
	w.net.Advance(longest)
	for _, a := range w.asks {
		if !a.done {
			w.failf("%v: never answered", a)
		}
	}
	var sums proxy.Totals
	for i, l := range w.path.Loops() {
		perLoop := w.path.PerLoop(l)
		perLoop.Worker.Totals(&sums)
		open1, open2 := perLoop.HTTP1.Open(false), perLoop.HTTP2.Open(false)
		buffers, conns := l.Stats().Buffers, l.Conns()
		if open1+open2 != 0 || perLoop.Pools1.Idle() != 0 || perLoop.Pools2.Open() != 0 || conns != 0 {
			w.failf("loop %d: %d connections are open: %d of HTTP/1.1 and %d of HTTP/2 of clients, %d and %d idle to pods", i, conns, open1, open2, perLoop.Pools1.Idle(), perLoop.Pools2.Open())
		}
		if kept := perLoop.Worker.Kept(); buffers != 0 || perLoop.Worker.Compressing() != 0 || kept != 0 {
			w.failf("loop %d: %d buffers, %d compressors and %d bytes of bodies were not given back", i, buffers, perLoop.Worker.Compressing(), kept)
		}
	}
	for i, l := range w.path.Loops() {
		for what := range reactor.Helds {
			if n := l.HeldBytes(what); n != 0 && what != reactor.HeldSpare {
				w.failf("loop %d: %d bytes are held for %v", i, n, what)
			}
		}
	}
	ended := uint64(0)
	for _, n := range sums.Reasons {
		ended += n
	}
	if sums.Active != 0 || ended != sums.Requests {
		w.failf("%d exchanges are still active; %d began, %d ended", sums.Active, sums.Requests, ended)
	}
	if n := sums.Reasons[proxy.ReasonInternal]; n > 0 {
		w.failf("%d requests ended as internal-error", n)
	}
	if sums.Private != 0 {
		w.failf("%d private connections are left", sums.Private)
	}
	w.pools()
	w.compile(nil)
	if pools, endpoints := w.registry.Len(); pools+endpoints != 0 {
		w.failf("without routes there are %d pools and %d endpoints", pools, endpoints)
	}
	w.net.Close()
}

// pools looks for leases and waiters.
func (w *world) pools() {
	for _, host := range w.hosts {
		pool := w.registry.Pool(w.routes[host].RouteKey.String())
		if n := pool.Queue().Length; n != 0 {
			w.failf("%s: %d requests are queued", host, n)
		}
		for _, s := range pool.Servers() {
			if n, all := s.InFlight(), s.Endpoint().InFlight(); n != 0 || all != 0 {
				w.failf("%s: %d requests are with %s, %d with its endpoint", host, n, s.ID(), all)
			}
		}
	}
}

var _ balancer.Clock = clock{}

// Now implements balancer.Clock.
func (c clock) Now() time.Time { return time.Unix(0, c.net.Now()) }

// AfterFunc implements balancer.Clock.
func (c clock) AfterFunc(d time.Duration, fn func()) { c.net.After(d, fn) }
