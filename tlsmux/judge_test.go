package tlsmux

import (
	"crypto/elliptic"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/certchain"
	"turnout/internal/testkit/testcert"
	"turnout/tlsmux/clientcert"
)

// TestChainsOfStrangersAreSteps checks that each expensive signature check is a separate step in
// the queue of verifications. A chain beyond the budget, or with too many certificates, gets none.
func TestChainsOfStrangersAreSteps(t *testing.T) {
	ca := issueClient(t, nil, "ca")
	for _, mode := range []clientcert.Mode{clientcert.Optional, clientcert.Required} {
		counts := new(bound.Counts)
		m := serveMemory(t, Config{
			Policy:  policyWith(t, PolicyConfig{ClientAuth: mode, Trust: clientcert.NewTrust(bundleOf(t, ca), nil)}),
			Workers: newWorkers(t, WorkersConfig{Handshakes: 1, Bounds: counts}),
		})
		for n, steps := range map[int]uint64{90: 0, certchain.MaxIssuers: certchain.MaxWork / 30, 2: 2} {
			before, reached := stepsOf(m.mux.cfg.Workers)[WorkVerify], counts.Of(bound.ChainWork)
			sent := testcert.Strangers(t, ca.Cert, n, elliptic.P521())
			if err := m.echoTLS(t, &tls.Config{ServerName: "x.own.test", Certificates: []tls.Certificate{sent}}); err == nil {
				t.Fatalf("%v, %d authorities: a stranger is accepted", mode, n)
			}
			f := get(t, "Failed", m.failed)
			verified(t, m.mux.cfg.Workers, before+steps)
			if dear := n > 4; errors.Is(f.err, certchain.ErrWork) != dear || counts.Of(bound.ChainWork)-reached != uint64(one(dear)) {
				t.Errorf("%v, %d authorities: %v, counted %d", mode, n, f.err, counts.Of(bound.ChainWork)-reached)
			}
		}
		if got := m.mux.Stats().ClientRefused[clientcert.Costly].Load(); got != 2 {
			t.Errorf("%v: %d chains are counted as too costly, want 2", mode, got)
		}
		if err := m.echoTLS(t, &tls.Config{ServerName: "x.own.test", Certificates: []tls.Certificate{issueClient(t, ca, "client").TLS()}}); err != nil {
			t.Errorf("%v: a client that is trusted: %v", mode, err)
		}
		if v := m.mux.cfg.Workers.verifying; v.byTenant.Used() != 0 || v.bySource.Used() != 0 {
			t.Errorf("%v: %d verifications are held", mode, v.byTenant.Used())
		}
	}
}

// verified waits until the given number of WorkVerify steps is counted, and fails if there are
// more.
func verified(t *testing.T, w *Workers, steps uint64) {
	t.Helper()
	eventually(t, "steps of verifications", func() bool { return stepsOf(w)[WorkVerify] >= steps })
	if got := stepsOf(w)[WorkVerify]; got != steps {
		t.Errorf("%d steps of verifications, want %d", got, steps)
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestChainsOfEndpointsAreSteps checks the same for chains of endpoints.
func TestChainsOfEndpointsAreSteps(t *testing.T) {
	ca := newAuthority(t)
	l, counts := startLoop(t), new(bound.Counts)
	cl := newClient(t, ClientConfig{Workers: newWorkers(t, WorkersConfig{Handshakes: 1, Bounds: counts})})
	for n, steps := range map[int]uint64{90: 0, certchain.MaxIssuers: certchain.MaxWork / 30} {
		before := stepsOf(cl.cfg.Workers)[WorkVerify]
		pod := newPod(t, &tls.Config{Certificates: []tls.Certificate{testcert.Strangers(t, ca.Cert, n, elliptic.P521())}})
		o := dialPod(t, l, cl, pod.addr, identity(t, balancer.TLSConfig{Verify: true, CA: ca.text, ServerName: "a.test"}))
		var failed *EndpointError
		if !errors.Is(o.err, certchain.ErrWork) || !errors.As(o.err, &failed) || failed.Detail() != "tls-certificate" {
			t.Errorf("%d authorities: %v", n, o.err)
		}
		verified(t, cl.cfg.Workers, before+steps)
	}
	if counts.Of(bound.ChainWork) != 2 {
		t.Errorf("counted %d", counts.Of(bound.ChainWork))
	}
}

// TestVerificationEndsWithItsConnection checks that a client that disconnects between two signature
// checks leaves no state behind.
func TestVerificationEndsWithItsConnection(t *testing.T) {
	ca := issueClient(t, nil, "ca")
	w := newWorkers(t, WorkersConfig{Handshakes: 1})
	m := serveMemory(t, Config{
		Policy:  policyWith(t, PolicyConfig{ClientAuth: clientcert.Required, Trust: clientcert.NewTrust(bundleOf(t, ca), nil)}),
		Workers: w,
	})
	sent := testcert.Strangers(t, ca.Cert, certchain.MaxIssuers, elliptic.P521())
	for range 3 {
		p, b := m.net.Connect(m.addr), newBridge()
		ended := make(chan error, 1)
		go func() {
			c := tls.Client(b, m.trusting(&tls.Config{ServerName: "x.own.test", Certificates: []tls.Certificate{sent}}))
			_, err := c.Read(make([]byte, 1))
			ended <- err
		}()
		before := stepsOf(w)[WorkVerify]
		m.await(t, "a signature check", func() bool { b.move(p); return stepsOf(w)[WorkVerify] > before })
		p.Reset()
		m.await(t, "the end of the handshake", func() bool { return w.Running() == 0 })
		b.mu.Lock()
		b.end = true
		b.cond.Broadcast()
		b.mu.Unlock()
		<-ended
	}
	if v := w.verifying; v.byTenant.Used() != 0 || v.bySource.Used() != 0 {
		t.Errorf("%d verifications are held", v.byTenant.Used())
	}
}

// TestTenantsShareVerifications checks that neither a namespace nor a source address uses up the
// verifications of another.
func TestTenantsShareVerifications(t *testing.T) {
	source := func(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", i%250)) }
	v := newVerifying()
	n := 0
	for v.begin("flooded", source(n)) {
		n++
	}
	if n != maxVerifying/2 || !v.begin("other", source(0)) {
		t.Errorf("a namespace may have %d verifications, want %d, and then another may have one", n, maxVerifying/2)
	}
	v = newVerifying()
	for n = 0; v.begin(fmt.Sprint("namespace ", n), source(0)); {
		n++
	}
	if n != maxVerifying/2 || !v.begin("namespace 0", source(1)) {
		t.Errorf("a source may have %d verifications, want %d, and then another may have one", n, maxVerifying/2)
	}
	if held := v.byTenant.Used() - v.bySource.Used(); held != 0 {
		t.Errorf("what was refused holds %d", held)
	}
}

// TestFloodOfOneTenantsChains checks that an endless flood of verifications of one namespace delays
// other handshakes by a few steps only. One of them is of another kind, one is a verification of
// another namespace. Time is virtual.
func TestFloodOfOneTenantsChains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = certchain.MaxKeyCost * 100 * time.Microsecond
		w := newWorkers(t, WorkersConfig{Handshakes: 1})
		flooded, other := w.shareOfTenant("flooded"), uint8(0)
		for i := 0; other == flooded || i == 0; i++ {
			other = w.shareOfTenant(fmt.Sprint("other ", i))
		}
		stop := time.Now().Add(5 * time.Second)
		for range 200 {
			var again func()
			again = func() {
				if time.Now().Before(stop) {
					w.pool.putJob(timeTaking(WorkVerify, flooded, step, again))
				}
			}
			give(w, WorkVerify, flooded, step, again)
		}
		for range 50 {
			elapse(37 * time.Millisecond)
			for _, j := range []struct {
				kind  Work
				share uint8
				cost  time.Duration
			}{{WorkRSA, 3, time.Millisecond}, {WorkFinish, 5, 200 * time.Microsecond}, {WorkEndpoint, 7, time.Millisecond}, {WorkVerify, other, step}} {
				began, done := time.Now(), make(chan struct{})
				give(w, j.kind, j.share, j.cost, func() { close(done) })
				<-done
				if waited := time.Since(began) - j.cost; waited > 3*step {
					t.Errorf("%v waited for %v, want less than three steps of %v", j.kind, waited, step)
				}
			}
		}
		elapse(6 * time.Second)
	})
}
