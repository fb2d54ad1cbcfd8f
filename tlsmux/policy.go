package tlsmux

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// PolicyConfig says what TLS towards clients looks like. The zero value means the defaults.
type PolicyConfig struct {
	// MinVersion and MaxVersion bound the protocol version. Defaults: TLS 1.2, and the newest crypto/tls knows.
	MinVersion, MaxVersion uint16
	// CipherSuites of TLS 1.2 and before; nil = those of crypto/tls. TLS 1.3 has its own, not configurable.
	CipherSuites []uint16
	// Curves are the key exchange groups; nil = those of crypto/tls.
	Curves []tls.CurveID
	// NextProtos are the application protocols in the order they are preferred (RFC 7301). Default: "http/1.1".
	NextProtos []string
	// DisableHTTP2 takes "h2" out of NextProtos.
	DisableHTTP2 bool
}

// Policy holds what has to outlive routing tables for sessions to be resumed: the tls.Configs, with the keys of session
// tickets, which crypto/tls rotates every day. A ticket is bound to the server name it was issued for. A Policy may be
// shared by several Muxes and used by any goroutine.
type Policy struct {
	protocols []string
	negotiate *tls.Config // for clients that offer one of protocols
	plain     *tls.Config // for the others: no ALPN extension is answered
}

// NewPolicy checks the configuration.
func NewPolicy(cfg PolicyConfig) (*Policy, error) {
	if cfg.MinVersion == 0 {
		cfg.MinVersion = tls.VersionTLS12
	}
	if cfg.MaxVersion != 0 && cfg.MaxVersion < cfg.MinVersion {
		return nil, fmt.Errorf("cannot make TLS policy: MaxVersion %#04x is below MinVersion %#04x", cfg.MaxVersion, cfg.MinVersion)
	}
	if cfg.NextProtos == nil {
		cfg.NextProtos = []string{"http/1.1"}
	}
	var protocols []string
	for _, name := range cfg.NextProtos {
		if len(name) == 0 || len(name) > 255 {
			return nil, fmt.Errorf("cannot make TLS policy: %q is no application protocol", name)
		}
		if name != "h2" || !cfg.DisableHTTP2 {
			protocols = append(protocols, name)
		}
	}
	base := &tls.Config{
		MinVersion: cfg.MinVersion, MaxVersion: cfg.MaxVersion,
		CipherSuites:                slices.Clone(cfg.CipherSuites),
		CurvePreferences:            slices.Clone(cfg.Curves),
		GetCertificate:              decidedCertificate,
		DynamicRecordSizingDisabled: true, // bulk gains, and a turn's output is one record
	}
	p := &Policy{protocols: protocols, negotiate: base.Clone(), plain: base}
	p.negotiate.NextProtos = protocols
	bindTickets(p.negotiate)
	bindTickets(p.plain)
	return p, nil
}

// config is the tls.Config for a client. crypto/tls would refuse clients that offer unknown protocols only.
func (p *Policy) config(h *Hello) *tls.Config {
	if slices.ContainsFunc(p.protocols, h.Offers) {
		return p.negotiate
	}
	return p.plain
}

var errNameDiffers = errors.New("crypto/tls reads another server name than the router did")

// decidedCertificate returns the certificate that was decided for the connection before the handshake began.
func decidedCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	w, ok := hello.Conn.(*wire)
	if !ok || !strings.EqualFold(hello.ServerName, w.serverName) {
		return nil, errNameDiffers
	}
	return w.certificate, nil // nil: crypto/tls answers unrecognized_name
}

const ticketTag = "turnout sni "

// bindTickets has c issue tickets that resume sessions of the same server name only: what a session was allowed was
// decided by its name (RFC 6066 section 3 forbids resumption under another).
func bindTickets(c *tls.Config) {
	c.WrapSession = func(cs tls.ConnectionState, s *tls.SessionState) ([]byte, error) {
		s.Extra = slices.DeleteFunc(s.Extra, isTicketTag)
		s.Extra = append(s.Extra, []byte(ticketTag+strings.ToLower(cs.ServerName)))
		return c.EncryptTicket(cs, s)
	}
	c.UnwrapSession = func(ticket []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
		s, err := c.DecryptTicket(ticket, cs)
		if err != nil || s == nil {
			return nil, err
		}
		want := ticketTag + strings.ToLower(cs.ServerName)
		if !slices.ContainsFunc(s.Extra, func(b []byte) bool { return string(b) == want }) {
			return nil, nil // a full handshake follows
		}
		return s, nil
	}
}

func isTicketTag(b []byte) bool { return strings.HasPrefix(string(b), ticketTag) }
