package tlsmux

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/certchain"
	"turnout/internal/share"
	"turnout/tlsmux/clientcert"
)

// A peer's chain costs signature checks, and crypto/tls would make up to a hundred without a pause.
// Therefore the handshake verifies chains itself (internal/certchain). After stepWork units it
// waits in the queue of WorkVerify, which serves namespaces in turn.

// stepWork is the number of units of signature checks in a step of a handshake: about 1 ms. A more
// expensive check has a step of its own, of certchain.MaxKeyCost units at most.
const stepWork = 10

// maxVerifying limits the verifications that have paused and are not complete. Namespaces share
// them, and so do source addresses, see share.Pool. They hold a part of the memory for handshakes.
// Usual chains are verified without a pause.
const maxVerifying = 1024

// verifying counts verifications that have paused. Any goroutine may use it.
type verifying struct {
	mu       sync.Mutex
	byTenant share.Pool
	bySource share.Pool
}

func newVerifying() *verifying {
	return &verifying{byTenant: share.NewPool(maxVerifying), bySource: share.NewPool(maxVerifying)}
}

// begin counts a verification for a tenant and a source. It returns false if either has used up its
// share.
func (v *verifying) begin(tenant string, source netip.Addr) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.byTenant.Take(tenant, 1) {
		return false
	}
	if !v.bySource.Take(source.String(), 1) {
		v.byTenant.Give(tenant, 1)
		return false
	}
	return true
}

// end removes a verification that begin counted.
func (v *verifying) end(tenant string, source netip.Addr) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.byTenant.Give(tenant, 1)
	v.bySource.Give(source.String(), 1)
}

// verification is the part of a handshake that checks the certificates of its peer. It belongs to
// the coroutine, except pausing, which stepped reads while the coroutine is stopped.
type verification struct {
	tenant  string // namespace that pays; "" = the router
	work    int    // units since the last pause
	paused  bool   // it has paused at least once
	pausing bool   // the next step continues with signature checks, without input
}

// judgeClient decides about the certificates of a client. The coroutine calls it. t is nil if any
// certificate is accepted.
func (h *handshake) judgeClient(cs *tls.ConnectionState, t *clientcert.Trust) error {
	if len(cs.PeerCertificates) == 0 {
		return nil
	}
	return h.judge(cs, func(r certchain.Request) error {
		if t == nil {
			return nil
		}
		return t.Verify(r)
	})
}

// judgeEndpoint decides about the certificates of an endpoint. The coroutine calls it.
func (h *handshake) judgeEndpoint(cs *tls.ConnectionState, id *balancer.TLS) error {
	if len(cs.PeerCertificates) == 0 {
		return errNoCertificate
	}
	return h.judge(cs, func(r certchain.Request) error {
		if !id.Verify {
			return nil
		}
		return verifyChain(cs.DidResume, r, id)
	})
}

// judge calls verify for the certificates of the peer, and accounts for the signature checks.
func (h *handshake) judge(cs *tls.ConnectionState, verify func(certchain.Request) error) error {
	defer h.endVerification()
	err := certchain.Check(cs.PeerCertificates[0])
	if err == nil {
		err = verify(certchain.Request{Sent: cs.PeerCertificates, Now: time.Now(), Memory: &h.workers.chains, Spend: h.spend})
	}
	if err == nil && !cs.DidResume { // crypto/tls checks a signature of the peer next
		err = h.spend(certchain.Cost(cs.PeerCertificates[0]))
	}
	if errors.Is(err, certchain.ErrWork) {
		h.workers.bounds.Reached(bound.ChainWork)
	}
	return err
}

// spend accounts for a signature check. It pauses before the check if the step has used up its
// work. The coroutine calls it.
func (h *handshake) spend(units int) error {
	v := &h.verification
	if v.work += units; v.work <= stepWork || h.steps != nil {
		return nil
	}
	if !v.paused {
		if !h.workers.verifying.begin(v.tenant, h.source) {
			return fmt.Errorf("%w: %q or the source address of the peer has too many verifications under way", certchain.ErrWork, v.tenant)
		}
		v.paused = true
	}
	v.pausing = true
	if !h.await() {
		return errGivenUp
	}
	v.work = units
	return nil
}

// endVerification removes the verification from the counters, if spend counted it.
func (h *handshake) endVerification() {
	if v := &h.verification; v.paused {
		h.workers.verifying.end(v.tenant, h.source)
		v.paused = false
	}
}

var errNoCertificate = errors.New("the endpoint sent no certificate")
