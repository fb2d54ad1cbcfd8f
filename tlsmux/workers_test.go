package tlsmux

import (
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync"
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

// TestFloodOfOneKindTakesItsShare: while handshakes with RSA keys come without end, those of another kind that come get
// their turns, and neither gets more time than the other. Time is virtual.
func TestFloodOfOneKindTakesItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(t, WorkersConfig{Handshakes: 1, QueueTimeout: time.Hour})
		var done [Works]atomic.Int64
		stop := time.Now().Add(10 * time.Second)
		var all sync.WaitGroup
		defer all.Wait()
		flood := func(kind Work, cost time.Duration) {
			for range 50 {
				all.Go(func() {
					for time.Now().Before(stop) {
						if w.acquire(kind, nil) != nil {
							return
						}
						since := time.Now()
						elapse(cost)
						w.release(kind, since)
						done[kind].Add(1)
					}
				})
			}
		}
		flood(WorkRSA, 1200*time.Microsecond)
		elapse(5 * time.Second)
		alone := done[WorkRSA].Load()
		flood(WorkECDSA, 200*time.Microsecond)
		elapse(5 * time.Second)
		rsa, ecdsa := done[WorkRSA].Load()-alone, done[WorkECDSA].Load()
		if alone < 4100 {
			t.Errorf("%d turns alone in 5 s of 1.2 ms each", alone)
		}
		if rsa < 2000 || rsa > 2200 || ecdsa < 12_000 || ecdsa > 13_000 {
			t.Errorf("%d turns by RSA and %d by ECDSA, want half of the time each", rsa, ecdsa)
		}
	})
}

// TestTurnsInOrder has one kind wait in the order it came, and the finishing of handshakes before new ones.
func TestTurnsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(t, WorkersConfig{Handshakes: 1, QueueTimeout: time.Hour})
		must(t, w.acquire(WorkEndpoint, nil))
		began := time.Now()
		order := make(chan int, 5)
		for i := range 5 {
			go func() {
				if w.acquire(WorkECDSA, nil) != nil {
					return
				}
				since := time.Now()
				elapse(time.Millisecond)
				order <- i
				w.release(WorkECDSA, since)
			}()
			synctest.Wait()
		}
		if n := w.Waiting(); n != 5 {
			t.Errorf("%d wait, want 5", n)
		}
		elapse(time.Millisecond)
		w.release(WorkEndpoint, began)
		for i := range 5 {
			if got := <-order; got != i {
				t.Errorf("turn %d is that of %d", i, got)
			}
		}
		synctest.Wait()
		s := w.Stats(WorkECDSA)
		if s.Turns.Load() != 5 || s.Nanos.Load() != uint64(5*time.Millisecond) || w.Stats(WorkEndpoint).Nanos.Load() != uint64(time.Millisecond) {
			t.Errorf("counted %d turns of %d ns, and %d ns of the other kind", s.Turns.Load(), s.Nanos.Load(), w.Stats(WorkEndpoint).Nanos.Load())
		}
		if w.Waiting() != 0 || w.free != 1 {
			t.Errorf("in the end %d wait and %d are free", w.Waiting(), w.free)
		}
	})
}

// TestUnusedTimeIsNotSaved: a kind that had nothing to do for long does not make the others wait for as long.
func TestUnusedTimeIsNotSaved(t *testing.T) {
	w := newWorkers(t, WorkersConfig{Handshakes: 1})
	w.spent[WorkRSA] = time.Hour
	w.queues[WorkRSA] = []*waiter{{turn: make(chan struct{})}}
	w.join(WorkECDSA)
	if w.spent[WorkECDSA] != time.Hour {
		t.Errorf("begins with %v, want as much as who waits", w.spent[WorkECDSA])
	}
	w.queues[WorkRSA] = nil
	w.join(WorkRSA)
	if w.spent[WorkRSA] != 0 {
		t.Errorf("begins with %v when nobody waits", w.spent[WorkRSA])
	}
}

func TestTurnsThatDoNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(t, WorkersConfig{Handshakes: 1, QueueTimeout: time.Second})
		must(t, w.acquire(WorkRSA, nil))
		began := time.Now()
		if err := w.acquire(WorkRSA, nil); !errors.Is(err, ErrQueued) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		dead := make(chan struct{})
		time.AfterFunc(time.Millisecond, func() { close(dead) })
		if err := w.acquire(WorkRSA, dead); !errors.Is(err, errGivenUp) {
			t.Errorf("given up: %v", err)
		}
		if n := w.Stats(WorkRSA).Refused.Load(); n != 1 || w.Waiting() != 0 {
			t.Errorf("%d refused, %d wait", n, w.Waiting())
		}
		w.release(WorkRSA, began)
		must(t, w.acquire(WorkECDSA, nil))
		w.release(WorkECDSA, time.Now())
		if w.free != 1 {
			t.Errorf("%d are free", w.free)
		}
	})
}

// TestQueueTimeoutOfMux: a handshake whose turn does not come is refused, counted and told.
func TestQueueTimeoutOfMux(t *testing.T) {
	w := newWorkers(t, WorkersConfig{Handshakes: 1, QueueTimeout: time.Millisecond})
	must(t, w.acquire(WorkFinish, nil))
	m := serveMemory(t, Config{Workers: w})
	p := m.net.Connect(m.addr)
	p.Write(clientHello(t, &tls.Config{ServerName: "shared.test"}))
	m.await(t, "the refusal", func() bool { return m.mux.Stats().Shed.Load() == 1 })
	if got := get(t, "failure", m.failed).err; !errors.Is(got, ErrQueued) {
		t.Errorf("told %v", got)
	}
	w.release(WorkFinish, time.Now())
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
