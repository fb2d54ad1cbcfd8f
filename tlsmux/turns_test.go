package tlsmux

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"testing"
	"time"

	"turnout/tlsmux/clientcert"
)

// turnsOf returns how often handshakes of each kind computed.
func turnsOf(w *Workers) (turns [Works]uint64) {
	for kind := range Works {
		turns[kind] = w.Stats(kind).Turns.Load()
	}
	return turns
}

// TestResumedOnTheLoop: who has a good ticket needs no worker, who has none, a bad one, or one for another name does.
func TestResumedOnTheLoop(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		policy, err := NewPolicy(PolicyConfig{})
		must(t, err)
		s := serve(t, Config{Policy: policy, Workers: newWorkers(t, WorkersConfig{})})
		cache := tls.NewLRUClientSessionCache(1)
		visit := func(what, name string, onLoop bool) {
			t.Helper()
			before := turnsOf(s.mux.cfg.Workers)
			c := s.client(t, &tls.Config{ServerName: name, MaxVersion: version, ClientSessionCache: oneKey{cache}, InsecureSkipVerify: true})
			ask(t, c, "hello")
			info := get(t, "Terminated", s.infos)
			after := turnsOf(s.mux.cfg.Workers)
			loop, workers := after[WorkResumed]-before[WorkResumed], after[WorkECDSA]-before[WorkECDSA]
			if info.Resumed != onLoop || (loop > 0) != onLoop || (workers > 0) == onLoop {
				t.Errorf("%s: resumed %v with %d turns of the loop and %d of workers, want it on the loop: %v", what, info.Resumed, loop, workers, onLoop)
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

// rsaCertificate is one with an RSA key, that signs itself.
func rsaCertificate(t *testing.T) *tls.Certificate {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	form := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"shared.test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	must(t, err)
	leaf, err := x509.ParseCertificate(der)
	must(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// A client whose ticket is good, but of TLS 1.2, and who gets TLS 1.3 this time, needs a signature after all.
func badlyOffered(version uint16, cache tls.ClientSessionCache) *tls.Config {
	return &tls.Config{ServerName: "shared.test", MaxVersion: version, ClientSessionCache: cache, InsecureSkipVerify: true}
}

// TestLoopUsesNoPrivateKey has such clients come, with keys of both kinds.
func TestLoopUsesNoPrivateKey(t *testing.T) {
	for _, kind := range []Work{WorkECDSA, WorkRSA} {
		t.Run(kind.String(), func(t *testing.T) {
			s := serve(t, Config{Workers: newWorkers(t, WorkersConfig{})})
			if kind == WorkRSA {
				s.options.DefaultCertificate = rsaCertificate(t)
				s.publish(t)
			}
			cache := tls.NewLRUClientSessionCache(1)
			var turns [Works]uint64
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				turns = turnsOf(s.mux.cfg.Workers)
				ask(t, s.client(t, badlyOffered(version, cache)), "hello")
				if info := get(t, "Terminated", s.infos); info.Resumed || info.Version != version {
					t.Fatalf("info %+v", info)
				}
			}
			now := turnsOf(s.mux.cfg.Workers)
			if now[WorkResumed] == turns[WorkResumed] || now[kind] != turns[kind]+1 {
				t.Errorf("turns before %v, after %v: want some of the loop and a signature", turns, now)
			}
		})
	}
}

// TestClientGoesAwayDuringSignature leaves nothing behind, and what comes too late is of no use.
func TestClientGoesAwayDuringSignature(t *testing.T) {
	w := newWorkers(t, WorkersConfig{Handshakes: 1})
	m := serveMemory(t, Config{Workers: w})
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
	eventually(t, "end of the signature", func() bool { return w.Stats(WorkECDSA).Turns.Load() > 1 })
	must(t, m.echoTLS(t, badlyOffered(tls.VersionTLS13, cache)))
}

// TestManyResumedTakeTurns: a loop computes a few at a time, and comes to what else it has to do between them.
func TestManyResumedTakeTurns(t *testing.T) {
	m := serveMemory(t, Config{})
	cache := tls.NewLRUClientSessionCache(1)
	cfg := &tls.Config{ServerName: "x.own.test", ClientSessionCache: cache}
	must(t, m.echoTLS(t, cfg))
	hello := clientHello(t, m.trusting(cfg))
	const many = 50
	for range many {
		m.net.Connect(m.addr).Write(hello)
	}
	before := m.loop.Stats().Turns
	stats := m.mux.cfg.Workers.Stats(WorkResumed)
	m.await(t, "all first flights", func() bool { return stats.Turns.Load() == many })
	if turns := m.loop.Stats().Turns - before; turns < 3 {
		t.Errorf("%d handshakes of %v in %d turns of the loop", many, time.Duration(stats.Nanos.Load()), turns)
	}
}

// TestClientCertificatesAreNotJudgedOnTheLoop: verifying chains takes as long as the client wants.
func TestClientCertificatesAreNotJudgedOnTheLoop(t *testing.T) {
	for _, version := range bothVersions {
		ca := issueClient(t, nil, "authority")
		trust := clientcert.NewTrust(bundleOf(t, ca), nil)
		s := serve(t, Config{Policy: policyWith(t, PolicyConfig{ClientAuth: clientcert.Optional, Trust: trust}), Workers: newWorkers(t, WorkersConfig{})})
		cache := tls.NewLRUClientSessionCache(1)
		client := issueClient(t, ca, "client")
		for _, resumed := range []bool{false, true} {
			if info, err := arrive(t, s, version, cache, client); err != nil || info.Resumed != resumed {
				t.Fatalf("resumed %v, %v; want %v", info.Resumed, err, resumed)
			}
		}
		if turns := turnsOf(s.mux.cfg.Workers); turns[WorkResumed] > 0 {
			t.Errorf("%d turns of the loop", turns[WorkResumed])
		}
	}
}
