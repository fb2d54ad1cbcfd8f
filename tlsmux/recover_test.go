package tlsmux

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/testkit/testcert"
	"turnout/tlsmux/clientcert"
)

// bad is what these tests panic with.
const bad = "a mistake"

// badKey is a private key that panics while bad is set.
type badKey struct {
	crypto.Signer
	bad atomic.Bool
}

func (k *badKey) Sign(r io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if k.bad.Load() {
		panic(bad)
	}
	return k.Signer.Sign(r, digest, opts)
}

// badlySigned is a certificate for shared.test with such a key.
func badlySigned(t *testing.T) (*tls.Certificate, *badKey) {
	t.Helper()
	own := testcert.Sign(t, &x509.Certificate{DNSNames: []string{"shared.test"}}, nil)
	key := &badKey{Signer: own.Key}
	return &tls.Certificate{Certificate: [][]byte{own.Cert.Raw}, PrivateKey: key, Leaf: own.Cert}, key
}

// keeper offers the first session it got each time.
type keeper struct{ first *tls.ClientSessionState }

func (k *keeper) Get(string) (*tls.ClientSessionState, bool) { return k.first, k.first != nil }

func (k *keeper) Put(_ string, s *tls.ClientSessionState) {
	if k.first == nil {
		k.first = s
	}
}

// badSessions is a cache that panics.
type badSessions struct{ tls.ClientSessionCache }

func (badSessions) Get(string) (*tls.ClientSessionState, bool) { panic(bad) }

// panics counts those that Workers tell of.
type panics struct {
	t *testing.T
	n atomic.Int32
}

func (p *panics) count(v any, stack []byte) {
	if v != bad || !strings.Contains(string(stack), "recover_test.go") {
		p.t.Errorf("notified of %v at %s", v, stack)
	}
	p.n.Add(1)
}

// rounds is how many handshakes panic one after the other: more than may be pending, wait or run.
const rounds = 100

// broken is a service on one worker, in which not much may be pending.
func broken(t *testing.T, cfg Config) (*service, *panics) {
	t.Helper()
	p := &panics{t: t}
	cfg.Workers, cfg.MaxPending = newWorkers(t, WorkersConfig{Handshakes: 1, Panicked: p.count}), 4
	return serve(t, cfg), p
}

// wantPanics has rounds clients come, each of which must end on its own, and then one whose session goes on through all of it.
func wantPanics(t *testing.T, s *service, p *panics, is error, client func() *tls.Conn) {
	t.Helper()
	for i := range rounds {
		if err := client().Handshake(); err == nil {
			t.Fatalf("handshake %d succeeded", i)
		}
		if f := get(t, "Failed", s.failed); is != nil && !errors.Is(f.err, is) {
			t.Fatalf("handshake %d failed by %v", i, f.err)
		}
	}
	if n := p.n.Load(); n != rounds {
		t.Errorf("notified of %d panics, want %d", n, rounds)
	}
	eventually(t, "end of the handshakes", func() bool { return s.mux.Pending() == 0 && s.mux.cfg.Workers.Running() == 0 })
	if n := s.mux.Stats().Failed.Load(); n != rounds {
		t.Errorf("counted %d failures", n)
	}
}

// TestPanicInHandshake: what panics in any part of a handshake costs that one, and handshakes go on as if it had not been.
func TestPanicInHandshake(t *testing.T) {
	t.Run("private key", func(t *testing.T) {
		eachVersion(t, func(t *testing.T, version uint16) {
			s, p := broken(t, Config{})
			cert, key := badlySigned(t)
			s.options.DefaultCertificate = cert
			s.publish(t)
			cfg := &tls.Config{ServerName: "shared.test", MaxVersion: version, InsecureSkipVerify: true}
			before := s.client(t, cfg)
			ask(t, before, "before")
			key.bad.Store(true)
			wantPanics(t, s, p, ErrPanicked, func() *tls.Conn { return s.client(t, cfg) })
			key.bad.Store(false)
			ask(t, s.client(t, cfg), "after")
			ask(t, before, "still there")
		})
	})
	t.Run("private key lent to a loop", func(t *testing.T) {
		s, p := broken(t, Config{})
		cert, key := badlySigned(t)
		s.options.DefaultCertificate = cert
		s.publish(t)
		cache := &keeper{}
		ask(t, s.client(t, badlyOffered(tls.VersionTLS12, cache)), "session")
		key.bad.Store(true)
		wantPanics(t, s, p, nil, func() *tls.Conn { return s.client(t, badlyOffered(tls.VersionTLS13, cache)) })
		key.bad.Store(false)
		ask(t, s.client(t, badlyOffered(tls.VersionTLS13, cache)), "after")
	})
	t.Run("ticket", func(t *testing.T) {
		policy := policyWith(t, PolicyConfig{})
		var active atomic.Bool
		unwrap := policy.current.Load().plain.UnwrapSession
		policy.current.Load().plain.UnwrapSession = func(ticket []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
			if active.Load() {
				panic(bad)
			}
			return unwrap(ticket, cs)
		}
		s, p := broken(t, Config{Policy: policy})
		cfg := &tls.Config{ServerName: "x.own.test", ClientSessionCache: &keeper{}}
		ask(t, s.client(t, cfg), "session")
		active.Store(true)
		wantPanics(t, s, p, ErrPanicked, func() *tls.Conn { return s.client(t, cfg) })
		active.Store(false)
		ask(t, s.client(t, cfg), "after")
	})
	t.Run("step of a loop", func(t *testing.T) {
		policy := policyWith(t, PolicyConfig{})
		var calls, active atomic.Int32 // the first call of a connection decides that the loop computes it
		unwrap := policy.current.Load().plain.UnwrapSession
		policy.current.Load().plain.UnwrapSession = func(ticket []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
			if active.Load() > 0 && calls.Add(1)%2 == 0 {
				panic(bad)
			}
			return unwrap(ticket, cs)
		}
		s, p := broken(t, Config{Policy: policy})
		cfg := &tls.Config{ServerName: "x.own.test", ClientSessionCache: &keeper{}}
		ask(t, s.client(t, cfg), "session")
		before := stepsOf(s.mux.cfg.Workers)
		active.Store(1)
		wantPanics(t, s, p, ErrPanicked, func() *tls.Conn { return s.client(t, cfg) })
		active.Store(0)
		eventually(t, "iterations of the loop", func() bool { return stepsOf(s.mux.cfg.Workers)[WorkResumed]-before[WorkResumed] == rounds })
		ask(t, s.client(t, cfg), "after")
	})
	t.Run("client's certificate", func(t *testing.T) {
		ca := issueClient(t, nil, "authority")
		policy := policyWith(t, PolicyConfig{ClientAuth: clientcert.Optional, Trust: clientcert.NewTrust(bundleOf(t, ca), nil)})
		var active atomic.Bool
		current := policy.current.Load()
		current.plain.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error {
			if active.Load() {
				panic(bad)
			}
			return nil
		}
		s, p := broken(t, Config{Policy: policy})
		client := issueClient(t, ca, "client")
		cfg := &tls.Config{ServerName: "x.own.test", MaxVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{client.Cert.Raw}, PrivateKey: client.Key}}}
		active.Store(true)
		wantPanics(t, s, p, ErrPanicked, func() *tls.Conn { return s.client(t, cfg) })
		active.Store(false)
		ask(t, s.client(t, cfg), "after")
	})
}

// TestPanicInEndpointHandshake is the same towards endpoints.
func TestPanicInEndpointHandshake(t *testing.T) {
	p := &panics{t: t}
	l, cl := startLoop(t), newClient(t, ClientConfig{Workers: newWorkers(t, WorkersConfig{Handshakes: 1, Panicked: p.count})})
	ca := newAuthority(t)
	server := newPod(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "pod.test", time.Now().Add(time.Hour))}})
	good := cl.sessions
	cl.sessions = badSessions{good}
	for range rounds {
		var failed *EndpointError
		if o := dialPod(t, l, cl, server.addr, identity(t, balancer.TLSConfig{SNI: "bad.test"})); !errors.As(o.err, &failed) || !errors.Is(o.err, ErrPanicked) {
			t.Fatalf("error %v", o.err)
		}
	}
	if n := p.n.Load(); n != rounds {
		t.Errorf("notified of %d panics, want %d", n, rounds)
	}
	cl.sessions = good
	if o := dialPod(t, l, cl, server.addr, identity(t, balancer.TLSConfig{SNI: "pod.test"})); o.err != nil || o.text != "welcome ping" {
		t.Errorf("after the panics: %+v", o)
	}
}

// TestPanicAfterHandshake: what is done on the loop with the result belongs to the connection, whether workers or the loop computed it.
func TestPanicAfterHandshake(t *testing.T) {
	var active atomic.Bool
	p := &panics{t: t}
	cfg := Config{Workers: newWorkers(t, WorkersConfig{Handshakes: 1}), MaxPending: 4}
	var s *service
	cfg.Terminated = func(_ *reactor.Conn, i Info) reactor.Handler {
		if active.Load() {
			panic(bad)
		}
		s.infos <- i
		return echo()
	}
	s = newService(t, cfg)
	s.serveOn(t, startLoopWith(t, reactor.Config{Panicked: func(_ *reactor.Loop, v any, stack []byte) { p.count(v, stack) }}))
	client := &tls.Config{ServerName: "x.own.test", ClientSessionCache: &keeper{}, MaxVersion: tls.VersionTLS12}
	ask(t, s.client(t, client), "session")
	active.Store(true)
	for i := range rounds {
		if i == rounds/2 { // the rest needs workers
			client.ClientSessionCache = nil
		}
		if _, err := io.ReadAll(s.client(t, client)); err == nil {
			t.Fatalf("connection %d ended well", i)
		}
	}
	if n := p.n.Load(); n != rounds {
		t.Errorf("notified of %d panics, want %d", n, rounds)
	}
	eventually(t, "end of the handshakes", func() bool { return s.mux.Pending() == 0 && s.mux.cfg.Workers.Running() == 0 })
	active.Store(false)
	ask(t, s.client(t, client), "after")
	if steps := stepsOf(s.mux.cfg.Workers); steps[WorkResumed] < rounds/2 || steps[WorkECDSA] < rounds/2 {
		t.Errorf("steps %v", steps)
	}
}
