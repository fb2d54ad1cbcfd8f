package tlsmux

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"runtime"
	"weak"

	"turnout/routing"
	"turnout/tlsmux/clientcert"
)

// SetTrust replaces what certificates of clients are judged by, for handshakes that begin from now on. Sessions that began
// under other authorities are not resumed; those under the same ones are judged again when they are. It fails if clients
// are not asked for certificates.
func (p *Policy) SetTrust(t *clientcert.Trust) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	if p.terms.mode == clientcert.None || t == nil {
		return errors.New("cannot change what clients are trusted by: they are not asked for certificates")
	}
	return p.replace(t)
}

// Trust returns what certificates of clients are judged by now; nil = clients are not asked for them.
func (p *Policy) Trust() *clientcert.Trust { return p.current.Load().trust }

// ShareTickets has session tickets encrypted with keys made from these secrets instead of the policy's own, which only
// this process knows: routers with the same secrets and the same policy resume each other's sessions. New tickets use the
// first secret, the others count as well. Each has 32 bytes or more, and nobody else should ever see them.
func (p *Policy) ShareTickets(secrets [][]byte) error {
	if err := p.tickets.share(secrets); err != nil {
		return err
	}
	p.renewTickets()
	return nil
}

// renewTickets has the configurations in use follow the secrets.
func (p *Policy) renewTickets() {
	p.changing.Lock()
	defer p.changing.Unlock()
	// What fails keeps its keys: not with secrets that have worked for SHA-256 before.
	_ = p.setTickets(p.current.Load())
	p.own.Range(func(_, s any) bool {
		_ = p.setTickets(s.(*snapshot))
		return true
	})
}

// setTickets has the configurations of s follow the secrets.
func (p *Policy) setTickets(s *snapshot) error {
	keys, err := p.tickets.keys(s.terms.fingerprint(s.mode, s.trust))
	if err != nil {
		return err
	}
	s.negotiate.SetSessionTicketKeys(keys)
	s.plain.SetSessionTicketKeys(keys)
	return nil
}

// replace makes the configurations for t, nil = clients are not asked for certificates. The caller holds changing, or is
// alone.
func (p *Policy) replace(t *clientcert.Trust) error {
	s := p.newSnapshot(p.terms.mode, t)
	if err := p.setTickets(s); err != nil {
		return err
	}
	p.current.Store(s)
	return nil
}

// newSnapshot makes the configurations for clients that are asked so and judged by t, with secrets of tickets that nobody knows. The
// caller holds changing, or is alone.
func (p *Policy) newSnapshot(mode clientcert.Mode, t *clientcert.Trust) *snapshot {
	terms := p.terms
	plain := terms.base.Clone()
	switch {
	case mode == clientcert.Unverified:
		plain.ClientAuth = tls.RequestClientCert
	case t != nil: // the handshake verifies the certificate, see judgeClient
		plain.ClientAuth = tls.RequestClientCert
		if mode == clientcert.Required {
			plain.ClientAuth = tls.RequireAnyClientCert
		}
		plain.ClientCAs = t.Bundle().Pool()
	}
	negotiate := plain.Clone()
	negotiate.NextProtos = terms.protocols
	s := &snapshot{terms: &terms, mode: mode, trust: t, negotiate: negotiate, plain: plain}
	bindTickets(plain)
	bindTickets(negotiate)
	return s
}

// snapshotOf returns the configurations for hosts that ask clients for auth. They are kept for as long as auth is.
func (p *Policy) snapshotOf(auth *routing.ClientAuth) *snapshot {
	key := weak.Make(auth)
	if s, ok := p.own.Load(key); ok {
		return s.(*snapshot)
	}
	p.changing.Lock()
	defer p.changing.Unlock()
	if s, ok := p.own.Load(key); ok {
		return s.(*snapshot)
	}
	s := p.newSnapshot(auth.Mode(), auth.Trust())
	_ = p.setTickets(s) // as in renewTickets
	p.own.Store(key, s)
	runtime.AddCleanup(auth, func(key weak.Pointer[routing.ClientAuth]) { p.own.Delete(key) }, key)
	return s
}

// fingerprint names what sessions must have in common to be resumed: whether and by which authorities clients prove who
// they are, the versions and the cipher suites. Revocation lists are none of it, they are looked at again.
func (p *terms) fingerprint(mode clientcert.Mode, t *clientcert.Trust) string {
	h := sha256.New()
	h.Write([]byte{byte(mode)})
	if t != nil {
		digest := t.Bundle().Digest()
		h.Write(digest[:])
	}
	for _, n := range append([]uint16{p.base.MinVersion, p.base.MaxVersion}, p.base.CipherSuites...) {
		h.Write(binary.BigEndian.AppendUint16(nil, n))
	}
	return hex.EncodeToString(h.Sum(nil))
}
