package tlsmux

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"turnout/internal/wire/protocol"
	"turnout/routing"
	"turnout/tlsmux/clientcert"
)

// PolicyConfig says what TLS towards clients looks like. The zero value means the defaults.
type PolicyConfig struct {
	// MinVersion and MaxVersion bound the protocol version. Defaults: TLS 1.2, and the newest crypto/tls knows.
	MinVersion, MaxVersion uint16
	// CipherSuites of TLS 1.2 and before; nil = those of crypto/tls. TLS 1.3 has its own, not configurable.
	CipherSuites []uint16
	// Curves are the key exchange groups; nil = those of crypto/tls.
	Curves []tls.CurveID
	// Protocols are offered by ALPN, in the order they are preferred (RFC 7301). Default: HTTP1.
	Protocols []protocol.Protocol
	// DisableHTTP2 takes HTTP2 out of Protocols.
	DisableHTTP2 bool
	// ClientAuth says whether clients are asked for a certificate, Trust what it is judged by to begin with; see
	// Policy.SetTrust. Trust is required unless ClientAuth is None.
	ClientAuth clientcert.Mode
	Trust      *clientcert.Trust
	// AuthVersion is any number that says which rules about certificates of clients these are; Info of handshakes by them has it.
	AuthVersion uint32
}

// Policy holds what has to outlive routing tables for sessions to be resumed: what they were agreed on under, and the
// secrets that session tickets are encrypted with, which are replaced every 12 hours. A ticket is bound to the server name
// it was issued for. A Policy may be shared by several Muxes and used by any goroutine.
type Policy struct {
	tickets ticketSource

	changing sync.Mutex // of those who replace current or terms, or add to own
	terms    terms      // guarded by changing
	current  atomic.Pointer[snapshot]
	own      sync.Map // of hosts that ask clients for something of their own: *snapshot by weak.Pointer[routing.ClientAuth]
}

// terms are what a PolicyConfig says, but for Trust.
type terms struct {
	protocols []string    // their names in ALPN
	base      *tls.Config // never used itself
	mode      clientcert.Mode
	version   uint32 // AuthVersion
}

// snapshot is what one handshake goes by.
type snapshot struct {
	terms     *terms
	mode      clientcert.Mode
	trust     *clientcert.Trust // nil = clients are not asked for a certificate, or it is not judged
	negotiate *tls.Config       // for clients that offer one of terms.protocols
	plain     *tls.Config       // for the others: no ALPN extension is answered
}

// NewPolicy checks the configuration.
func NewPolicy(cfg PolicyConfig) (*Policy, error) {
	p := &Policy{}
	p.tickets.renew(time.Now())
	if err := p.Configure(cfg); err != nil {
		return nil, fmt.Errorf("cannot make TLS policy: %w", err)
	}
	return p, nil
}

// Configure has handshakes that begin from now on go by cfg. Sessions that began under other versions, cipher suites or authorities, or when
// clients were asked otherwise, are not resumed. It fails, and nothing changes, for the reasons that NewPolicy does. Any goroutine may
// call it.
func (p *Policy) Configure(cfg PolicyConfig) error {
	next, err := newTerms(&cfg)
	if err != nil {
		return err
	}
	if cfg.ClientAuth == clientcert.None {
		cfg.Trust = nil
	} else if cfg.Trust == nil {
		return errors.New("clients are asked for certificates and there is no Trust")
	}
	p.changing.Lock()
	defer p.changing.Unlock()
	before := p.terms
	p.terms = *next
	if err := p.replace(cfg.Trust); err != nil {
		p.terms = before
		return err
	}
	p.own.Clear()
	return nil
}

// newTerms are those of cfg.
func newTerms(cfg *PolicyConfig) (*terms, error) {
	if cfg.MinVersion == 0 {
		cfg.MinVersion = tls.VersionTLS12
	}
	if cfg.MaxVersion != 0 && cfg.MaxVersion < cfg.MinVersion {
		return nil, fmt.Errorf("MaxVersion %#04x is below MinVersion %#04x", cfg.MaxVersion, cfg.MinVersion)
	}
	if cfg.Protocols == nil {
		cfg.Protocols = []protocol.Protocol{protocol.HTTP1}
	}
	var protocols []protocol.Protocol
	for _, p := range cfg.Protocols {
		switch {
		case p != protocol.HTTP1 && p != protocol.HTTP2:
			return nil, fmt.Errorf("%v cannot be agreed on by ALPN", p)
		case p != protocol.HTTP2 || !cfg.DisableHTTP2:
			protocols = append(protocols, p)
		}
	}
	base := &tls.Config{
		MinVersion: cfg.MinVersion, MaxVersion: cfg.MaxVersion,
		CipherSuites:                slices.Clone(cfg.CipherSuites),
		CurvePreferences:            slices.Clone(cfg.Curves),
		GetCertificate:              decidedCertificate,
		DynamicRecordSizingDisabled: true, // bulk gains, and an iteration's output is one record
	}
	return &terms{protocols: protocol.Names(protocols), base: base, mode: cfg.ClientAuth, version: cfg.AuthVersion}, nil
}

// config returns the tls.Config for a client of a host with the client certificate requirement
// auth; nil = the default requirement. negotiates means that ALPN may select a protocol. If the
// client offers unknown protocols only, the configuration has none, because crypto/tls would refuse
// the client. resumes means that the client has a valid ticket, so that the handshake needs no
// private key. s is the source of the configuration.
func (p *Policy) config(h *Hello, auth *routing.ClientAuth, negotiates bool) (c *tls.Config, s *snapshot, resumes bool) {
	if now := time.Now(); now.UnixNano() >= p.tickets.due.Load() && p.tickets.renew(now) {
		p.renewTickets()
	}
	s = p.current.Load()
	if auth != nil {
		s = p.snapshotOf(auth)
	}
	c = s.plain
	if negotiates && slices.ContainsFunc(s.terms.protocols, h.Offers) {
		c = s.negotiate
	}
	if h.ticket != nil && s.mode == clientcert.None {
		session, err := c.UnwrapSession(h.ticket, tls.ConnectionState{ServerName: h.ServerName})
		resumes = err == nil && session != nil
	}
	return c, s, resumes
}

var errNameDiffers = errors.New("crypto/tls reads another server name than the router did")

// decidedCertificate returns the certificate that was decided for the connection before the handshake began.
func decidedCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	w, ok := hello.Conn.(*wire)
	if !ok || !strings.EqualFold(hello.ServerName, w.serverName) {
		return nil, errNameDiffers
	}
	if w.certificate != nil && w.hs != nil && w.hs.steps != nil && !light(w.certificate) {
		return w.hs.lend(w.certificate), nil
	}
	return w.certificate, nil // nil: crypto/tls answers unrecognized_name
}
