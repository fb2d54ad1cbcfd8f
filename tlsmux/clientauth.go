package tlsmux

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"turnout/tlsmux/clientcert"
)

// SetTrust replaces what certificates of clients are judged by, for handshakes that begin from now on. Sessions that began
// under other authorities are not resumed; those under the same ones are judged again when they are. It fails if clients
// are not asked for certificates.
func (p *Policy) SetTrust(t *clientcert.Trust) error {
	if p.mode == clientcert.None || t == nil {
		return errors.New("cannot change what clients are trusted by: they are not asked for certificates")
	}
	p.changing.Lock()
	defer p.changing.Unlock()
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
	s := p.current.Load()
	keys, err := p.tickets.keys(p.fingerprint(s.trust))
	if err != nil {
		return // not with secrets that have worked for SHA-256 before
	}
	s.negotiate.SetSessionTicketKeys(keys)
	s.plain.SetSessionTicketKeys(keys)
}

// replace makes the configurations for t, nil = clients are not asked for certificates. The caller holds changing, or is
// alone.
func (p *Policy) replace(t *clientcert.Trust) error {
	plain := p.base.Clone()
	if t != nil {
		plain.ClientAuth = tls.VerifyClientCertIfGiven
		if p.mode == clientcert.Required {
			plain.ClientAuth = tls.RequireAndVerifyClientCert
		}
		plain.ClientCAs = t.Bundle().Pool()
		plain.VerifyConnection = func(cs tls.ConnectionState) error { return t.Verify(&cs, time.Now()) }
	}
	negotiate := plain.Clone()
	negotiate.NextProtos = p.protocols
	keys, err := p.tickets.keys(p.fingerprint(t))
	if err != nil {
		return err
	}
	for _, c := range []*tls.Config{plain, negotiate} {
		c.SetSessionTicketKeys(keys)
		bindTickets(c)
	}
	p.current.Store(&snapshot{trust: t, negotiate: negotiate, plain: plain})
	return nil
}

// fingerprint names what sessions must have in common to be resumed: whether and by which authorities clients prove who
// they are, the versions and the cipher suites. Revocation lists are none of it, they are looked at again.
func (p *Policy) fingerprint(t *clientcert.Trust) string {
	h := sha256.New()
	h.Write([]byte{byte(p.mode)})
	if t != nil {
		digest := t.Bundle().Digest()
		h.Write(digest[:])
	}
	for _, n := range append([]uint16{p.base.MinVersion, p.base.MaxVersion}, p.base.CipherSuites...) {
		h.Write(binary.BigEndian.AppendUint16(nil, n))
	}
	return hex.EncodeToString(h.Sum(nil))
}
