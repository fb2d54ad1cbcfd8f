package tlsmux

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/tlsmux/clientcert"
)

// stepsOf returns how often handshakes of each kind computed.
func stepsOf(w *Workers) (steps [Works]uint64) {
	for kind := range Works {
		steps[kind] = w.Stats(kind).Steps.Load()
	}
	return steps
}

// TestResumedIsAKind: who has a good ticket is one of them, who has none, a bad one, or one for another name is not.
func TestResumedIsAKind(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		policy, err := NewPolicy(PolicyConfig{})
		must(t, err)
		s := serve(t, Config{Policy: policy, Workers: newWorkers(t, WorkersConfig{})})
		cache := tls.NewLRUClientSessionCache(1)
		visit := func(what, name string, resumed bool) {
			t.Helper()
			before := stepsOf(s.mux.cfg.Workers)
			c := s.client(t, &tls.Config{ServerName: name, MaxVersion: version, ClientSessionCache: oneKey{cache}, InsecureSkipVerify: true})
			ask(t, c, "hello")
			info := get(t, "Terminated", s.infos)
			after := stepsOf(s.mux.cfg.Workers)
			loop, full := after[WorkResumed]-before[WorkResumed], after[WorkECDSA]-before[WorkECDSA]
			if info.Resumed != resumed || (loop > 0) != resumed || (full > 0) == resumed {
				t.Errorf("%s: resumed %v with %d steps, and %d of full handshakes, want %v", what, info.Resumed, loop, full, resumed)
			}
			c.Close()
		}
		visit("no ticket", "x.own.test", false)
		visit("a good ticket", "x.own.test", true)
		visit("that of another name", "shared.test", false)
		visit("a good ticket again", "shared.test", true)
		must(t, policy.ShareTickets([][]byte{make([]byte, MinTicketSecret)}))
		visit("a ticket of other keys", "shared.test", false)
	})
}

// selfSigned is a certificate for shared.test that signs itself.
func selfSigned(t *testing.T, key crypto.Signer) *tls.Certificate {
	t.Helper()
	form := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"shared.test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	must(t, err)
	leaf, err := x509.ParseCertificate(der)
	must(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// keyOf makes a key: those named first are for loops, the others for threads.
func keyOf(t *testing.T, name string) crypto.Signer {
	t.Helper()
	var key crypto.Signer
	var err error
	switch name {
	case "P-256":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "Ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case "P-384":
		key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "RSA":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	must(t, err)
	return key
}

// onThreads gives the service a default certificate with a key that loops do not compute with.
func (s *service) onThreads(t *testing.T) {
	t.Helper()
	s.useDefault(t, "P-384")
}

// useDefault replaces the default certificate by one with a key of this kind.
func (s *service) useDefault(t *testing.T, key string) {
	t.Helper()
	s.options.DefaultCertificate = selfSigned(t, keyOf(t, key))
	s.roots.AddCert(s.options.DefaultCertificate.Leaf)
	s.publish(t)
}

// eachPlace has handshakes computed where they can be.
func eachPlace(t *testing.T, test func(t *testing.T, s func(*service))) {
	t.Run("on the loop", func(t *testing.T) { test(t, func(*service) {}) })
	t.Run("on threads", func(t *testing.T) { test(t, func(s *service) { s.onThreads(t) }) })
}

// TestWhereHandshakesCompute: what takes no longer than other work of a loop is computed there, and no thread is started for it.
func TestWhereHandshakesCompute(t *testing.T) {
	for key, onLoop := range map[string]bool{"P-256": true, "Ed25519": true, "P-384": false, "RSA": false} {
		t.Run(key, func(t *testing.T) {
			w := newWorkers(t, WorkersConfig{})
			s := serve(t, Config{Workers: w})
			s.useDefault(t, key)
			ask(t, s.client(t, &tls.Config{ServerName: "shared.test"}), "hello")
			if threads := threadsOf(w.pool); (threads == 0) != onLoop {
				t.Errorf("%d threads, want it on the loop: %v", threads, onLoop)
			}
			kind := workOf(s.options.DefaultCertificate)
			eventually(t, "an iteration after the first one is counted", func() bool { return w.Stats(WorkFinish).Steps.Load() > 0 })
			if n := w.Stats(kind).Steps.Load(); n != 1 {
				t.Errorf("%d first flights were counted", n)
			}
		})
	}
	if light(&tls.Certificate{}) {
		t.Error("a certificate that is not known is light")
	}
}

// A client whose ticket is good, but of TLS 1.2, and who gets TLS 1.3 this time, needs a signature after all.
func badlyOffered(version uint16, cache tls.ClientSessionCache) *tls.Config {
	return &tls.Config{ServerName: "shared.test", MaxVersion: version, ClientSessionCache: cache, InsecureSkipVerify: true}
}

// TestLoopLendsHeavyKeys has such clients come, with keys of which a loop does not make signatures.
func TestLoopLendsHeavyKeys(t *testing.T) {
	for key, kind := range map[string]Work{"P-384": WorkECDSA, "RSA": WorkRSA} {
		t.Run(key, func(t *testing.T) {
			s := serve(t, Config{Workers: newWorkers(t, WorkersConfig{})})
			s.useDefault(t, key)
			cache := tls.NewLRUClientSessionCache(1)
			var resumed uint64
			for signatures, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				resumed = stepsOf(s.mux.cfg.Workers)[WorkResumed]
				ask(t, s.client(t, badlyOffered(version, cache)), "hello")
				if info := get(t, "Terminated", s.infos); info.Resumed || info.Version != version {
					t.Fatalf("info %+v", info)
				}
				// A thread counts its step after its connection may go on.
				eventually(t, "the count of a signature", func() bool { return stepsOf(s.mux.cfg.Workers)[kind] == uint64(signatures)+1 })
			}
			if now := stepsOf(s.mux.cfg.Workers); now[WorkResumed] == resumed {
				t.Errorf("steps %v: want some of the loop", now)
			}
		})
	}
}

// TestClientGoesAwayDuringSignature leaves nothing open, and what comes too late is of no use.
func TestClientGoesAwayDuringSignature(t *testing.T) {
	w := newWorkers(t, WorkersConfig{Handshakes: 1})
	m := serveMemory(t, Config{Workers: w})
	m.onThreads(t)
	cache := tls.NewLRUClientSessionCache(1)
	must(t, m.echoTLS(t, badlyOffered(tls.VersionTLS12, cache)))
	letGo := occupy(t, w)
	p := m.net.Connect(m.addr)
	p.Write(clientHello(t, badlyOffered(tls.VersionTLS13, cache)))
	m.net.Run()
	if w.Waiting() != 1 || m.mux.Pending() != 1 {
		t.Fatalf("%d wait, %d pending", w.Waiting(), m.mux.Pending())
	}
	p.Reset()
	m.net.Run()
	if m.mux.Pending() != 0 || w.Running() != 0 {
		t.Errorf("%d pending, %d running", m.mux.Pending(), w.Running())
	}
	letGo()
	eventually(t, "end of the signature", func() bool { return w.Stats(WorkECDSA).Steps.Load() > 1 })
	must(t, m.echoTLS(t, badlyOffered(tls.VersionTLS13, cache)))
}

// TestFloodGoesToThreads: when many wait for a loop already, or others of the kind for a thread, a handshake is not the loop's.
func TestFloodGoesToThreads(t *testing.T) {
	w := newWorkers(t, WorkersConfig{Handshakes: 1})
	m := serveMemory(t, Config{Workers: w})
	steps := w.stepsOf(m.loop)
	var held []*job
	for range stepsMost {
		if !steps.hasCapacity(WorkECDSA) {
			t.Fatalf("no capacity after %d", steps.wait.Load())
		}
		j := timeTaking(WorkECDSA, 0, 0, func() {})
		steps.putJob(j)
		held = append(held, j)
	}
	if steps.hasCapacity(WorkECDSA) || steps.hasCapacity(WorkResumed) {
		t.Error("capacity without end")
	}
	for _, j := range held {
		steps.takeBack(j)
	}
	letGo := occupy(t, w)
	waits := give(w, WorkECDSA, 0, 0, func() {})
	if steps.hasCapacity(WorkECDSA) || !steps.hasCapacity(WorkResumed) {
		t.Errorf("capacity %v for those of whom others wait for a thread, %v for others", steps.hasCapacity(WorkECDSA), steps.hasCapacity(WorkResumed))
	}
	p := m.net.Connect(m.addr)
	p.Write(clientHello(t, &tls.Config{ServerName: "shared.test"}))
	m.net.Run()
	if w.pool.waitingOf(WorkECDSA) != 2 || p.Total() > 0 {
		t.Errorf("%d wait for a thread, want 2", w.pool.waitingOf(WorkECDSA))
	}
	w.pool.takeBack(waits)
	letGo()
	m.await(t, "the answer", func() bool { return p.Total() > 0 })
	if !steps.hasCapacity(WorkECDSA) {
		t.Error("the loop has no capacity when the flood is over")
	}
}

// TestStepsOfALoop: of what waits for a loop the kind that had the least time is next, and what was taken back is not.
func TestStepsOfALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(t, WorkersConfig{})
		net := memnet.New(0)
		loop := reactor.NewOn(net, reactor.Config{})
		steps := w.stepsOf(loop)
		if w.stepsOf(loop) != steps || w.stepsOf(reactor.NewOn(net, reactor.Config{})) == steps {
			t.Fatal("not one for each loop")
		}
		var order []string
		put := func(name string, kind Work, share uint8, cost time.Duration) *job {
			j := timeTaking(kind, share, cost, func() { order = append(order, name) })
			steps.putJob(j)
			return j
		}
		for i := range 3 {
			put("many"+strconv.Itoa(i), WorkECDSA, 3, 2*time.Millisecond)
		}
		gone := put("gone", WorkECDSA, 5, time.Millisecond)
		put("few", WorkECDSA, 9, 2*time.Millisecond)
		put("resumed0", WorkResumed, 3, time.Millisecond)
		put("resumed1", WorkResumed, 3, time.Millisecond)
		if !steps.takeBack(gone) || steps.takeBack(gone) || w.Waiting() != 6 {
			t.Errorf("taken back never or twice, and %d wait, want 6", w.Waiting())
		}
		net.Run()
		if got, want := strings.Join(order, " "), "many0 resumed0 resumed1 few many1 many2"; got != want {
			t.Errorf("the order was %s, want %s", got, want)
		}
		if w.Waiting() != 0 || w.Stats(WorkResumed).Nanos.Load() != uint64(2*time.Millisecond) || w.Stats(WorkECDSA).Steps.Load() != 4 {
			t.Errorf("%d wait, %d ns were counted, %d steps", w.Waiting(), w.Stats(WorkResumed).Nanos.Load(), w.Stats(WorkECDSA).Steps.Load())
		}
		net.Close()
		put("late", WorkECDSA, 0, 0)
		if w.Waiting() != 0 {
			t.Error("who comes when the loop has ended waits for ever")
		}
	})
}

// TestClientCertificatesAreNotJudgedOnTheLoop: verifying chains takes as long as the client wants.
func TestClientCertificatesAreNotJudgedOnTheLoop(t *testing.T) {
	for _, version := range bothVersions {
		ca := issueClient(t, nil, "authority")
		trust := clientcert.NewTrust(bundleOf(t, ca), nil)
		s := serve(t, Config{Policy: policyWith(t, PolicyConfig{ClientAuth: clientcert.Optional, Trust: trust}), Workers: newWorkers(t, WorkersConfig{})})
		on(t, s.loop, func() { s.mux.perLoop(s.loop).steps.run = func() { t.Error("computed on the loop") } })
		cache := tls.NewLRUClientSessionCache(1)
		client := issueClient(t, ca, "client")
		for _, resumed := range []bool{false, true} {
			if info, err := arrive(t, s, version, cache, client); err != nil || info.Resumed != resumed {
				t.Fatalf("resumed %v, %v; want %v", info.Resumed, err, resumed)
			}
		}
	}
}
