package tlsmux

import (
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func newWorkers(t *testing.T, cfg WorkersConfig) *Workers {
	t.Helper()
	w, err := NewWorkers(cfg)
	must(t, err)
	return w
}

// timeTaking is a job that takes its time.
func timeTaking(kind Work, share uint8, cost time.Duration, done func()) *job {
	return &job{kind: kind, share: share, use: func() {
		elapse(cost)
		done()
	}}
}

// give has the workers compute for a while. What done does belongs to their thread.
func give(w *Workers, kind Work, share uint8, cost time.Duration, done func()) *job {
	j := timeTaking(kind, share, cost, done)
	w.pool.putJob(j)
	return j
}

// occupy keeps one thread for clients busy until letGo is called.
func occupy(t *testing.T, w *Workers) (letGo func()) {
	t.Helper()
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	give(w, WorkFinish, 0, 0, func() { close(begun); <-end; close(ended) })
	get(t, "a thread", begun)
	return func() { close(end); get(t, "its end", ended) }
}

// TestFloodOfOneKindTakesItsShare: while handshakes with RSA keys come without end, those of another kind that come get
// their turns, and neither gets more time than the other. Time is virtual.
func TestFloodOfOneKindTakesItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(t, WorkersConfig{Handshakes: 1})
		var done [Works]atomic.Int64
		stop := time.Now().Add(10 * time.Second)
		flood := func(kind Work, cost time.Duration) {
			var again func()
			again = func() {
				done[kind].Add(1)
				if time.Now().Before(stop) {
					give(w, kind, 0, cost, again)
				}
			}
			for range 50 {
				give(w, kind, 0, cost, again)
			}
		}
		flood(WorkRSA, 1200*time.Microsecond)
		elapse(5 * time.Second)
		alone := done[WorkRSA].Load()
		flood(WorkECDSA, 200*time.Microsecond)
		elapse(5 * time.Second)
		rsa, ecdsa := done[WorkRSA].Load()-alone, done[WorkECDSA].Load()
		elapse(2 * threadIdle)
		if alone < 4100 {
			t.Errorf("%d steps alone in 5 s of 1.2 ms each", alone)
		}
		if rsa < 2000 || rsa > 2200 || ecdsa < 12_000 || ecdsa > 13_000 {
			t.Errorf("%d steps by RSA and %d by ECDSA, want half of the time each", rsa, ecdsa)
		}
	})
}

// TestTurnsInOrder has one kind wait in the order it came, addresses in turn, and another kind for its part of the time.
func TestTurnsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(t, WorkersConfig{Handshakes: 1})
		letGo := occupy(t, w)
		var order []string
		compute := func(name string, kind Work, share uint8) {
			give(w, kind, share, time.Millisecond, func() { order = append(order, name) })
		}
		for i := range 5 {
			compute("many"+strconv.Itoa(i), WorkECDSA, 3)
		}
		compute("few0", WorkECDSA, 9)
		compute("few1", WorkECDSA, 9)
		compute("rsa", WorkRSA, 3)
		if n := w.Waiting(); n != 8 {
			t.Errorf("%d wait, want 8", n)
		}
		letGo()
		elapse(2 * threadIdle)
		synctest.Wait()
		if got, want := strings.Join(order, " "), "many0 rsa few0 many1 few1 many2 many3 many4"; got != want {
			t.Errorf("the order was %s, want %s", got, want)
		}
		s := w.Stats(WorkECDSA)
		if s.Steps.Load() != 7 || s.Nanos.Load() != uint64(7*time.Millisecond) {
			t.Errorf("counted %d steps of %d ns", s.Steps.Load(), s.Nanos.Load())
		}
		if w.Waiting() != 0 {
			t.Errorf("in the end %d wait", w.Waiting())
		}
	})
}

// TestUnusedTimeIsNotSaved: a kind that had nothing to do for long does not make the others wait for as long.
func TestUnusedTimeIsNotSaved(t *testing.T) {
	p := &newWorkers(t, WorkersConfig{Handshakes: 1}).pool.backlog
	p.spent[WorkRSA] = time.Hour
	p.count[WorkRSA] = 1
	p.join(WorkECDSA)
	if p.spent[WorkECDSA] != time.Hour {
		t.Errorf("begins with %v, want as much as who waits", p.spent[WorkECDSA])
	}
	p.count[WorkRSA] = 0
	p.join(WorkRSA)
	if p.spent[WorkRSA] != 0 {
		t.Errorf("begins with %v when nobody waits", p.spent[WorkRSA])
	}
}

// threadsOf returns how many threads a pool has.
func threadsOf(p *pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.threads
}

// TestThreads: there are no more than allowed, for clients and endpoints together, and without work they end.
func TestThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(t, WorkersConfig{Handshakes: 2})
		var done atomic.Int64
		most := 0
		for i := range 20 {
			kind := []Work{WorkECDSA, WorkRSA, WorkFinish, WorkEndpoint}[i%4]
			give(w, kind, uint8(i%shares), time.Millisecond, func() { done.Add(1) })
		}
		for range 40 {
			most = max(most, threadsOf(w.pool))
			elapse(time.Millisecond)
		}
		if most != 2 || done.Load() != 20 {
			t.Errorf("%d threads did %d jobs, want 2 and 20", most, done.Load())
		}
		elapse(2 * threadIdle)
		if threadsOf(w.pool) != 0 {
			t.Errorf("%d threads are left", threadsOf(w.pool))
		}
	})
}

func TestJobsCanBeTakenBack(t *testing.T) {
	w := newWorkers(t, WorkersConfig{Handshakes: 1})
	letGo := occupy(t, w)
	defer letGo()
	p := w.pool
	first, second := give(w, WorkRSA, 1, 0, nil), give(w, WorkRSA, 1, 0, nil)
	for _, j := range []*job{first, second} {
		if !p.takeBack(j) || p.takeBack(j) {
			t.Error("taken back never, or twice")
		}
	}
	if w.Waiting() != 0 || p.backlog.queues[WorkRSA].first() != nil {
		t.Errorf("%d wait", w.Waiting())
	}
}

// TestSharesOfAddresses: the addresses of one IPv6 network are one, others are likely to be several.
func TestSharesOfAddresses(t *testing.T) {
	w := newWorkers(t, WorkersConfig{})
	seen := map[uint8]bool{}
	for i := range 100 {
		ip := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
		share := w.shareOf(ip)
		if seen[share] = true; share >= shares || w.shareOf(ip) != share {
			t.Fatal("the share of an address changes, or is none of those there are")
		}
	}
	if len(seen) < shares/2 {
		t.Errorf("100 addresses have %d shares", len(seen))
	}
	if sourceOf(netip.MustParseAddr("2001:db8::1")) != sourceOf(netip.MustParseAddr("2001:db8::ffff:1")) {
		t.Error("two addresses of one network have two shares")
	}
	w.shareOf(netip.Addr{})
}

// TestQueueTimeoutOfMux: a handshake whose turn does not come is refused, counted and reported.
func TestQueueTimeoutOfMux(t *testing.T) {
	w := newWorkers(t, WorkersConfig{Handshakes: 1, QueueTimeout: time.Second})
	letGo := occupy(t, w)
	m := serveMemory(t, Config{Workers: w})
	m.onThreads(t)
	p := m.net.Connect(m.addr)
	p.Write(clientHello(t, &tls.Config{ServerName: "shared.test"}))
	m.net.Run()
	if m.net.Advance(900 * time.Millisecond); m.mux.Pending() != 1 || w.Waiting() != 1 {
		t.Fatalf("%d pending, %d wait", m.mux.Pending(), w.Waiting())
	}
	m.net.Advance(200 * time.Millisecond)
	if got := get(t, "failure", m.failed).err; !errors.Is(got, ErrQueued) || m.mux.Stats().Shed.Load() != 1 {
		t.Errorf("reported %v", got)
	}
	if n := w.Stats(WorkECDSA).Refused.Load(); n != 1 || w.Running() != 0 || w.Waiting() != 0 {
		t.Errorf("%d refused, %d running, %d wait", n, w.Running(), w.Waiting())
	}
	letGo()
	if err := m.echoTLS(t, &tls.Config{}); err != nil {
		t.Error(err)
	}
}

func TestWorkOf(t *testing.T) {
	for want, cert := range map[Work]*tls.Certificate{
		WorkRSA:   {Leaf: &x509.Certificate{PublicKey: &rsa.PublicKey{}}},
		WorkECDSA: {Leaf: &x509.Certificate{PublicKey: ed25519.PublicKey{}}},
	} {
		if got := workOf(cert); got != want {
			t.Errorf("%T is %v, want %v", cert.Leaf.PublicKey, got, want)
		}
	}
	own, err := SelfSigned("", time.Now())
	must(t, err)
	if got := workOf(own); got != WorkECDSA {
		t.Errorf("ECDSA is %v", got)
	}
	if got := workOf(&tls.Certificate{}); got != WorkRSA {
		t.Errorf("an unknown one is %v", got)
	}
	for w := range Works + 1 {
		if w.String() == "" {
			t.Errorf("kind %d has no word", w)
		}
	}
}

// elapse lets virtual time pass.
func elapse(d time.Duration) { <-time.NewTimer(d).C }
