package tlsmux

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
)

// ClientConfig configures a Client. The zero value means the defaults.
type ClientConfig struct {
	// Workers bound the handshakes; nil = workers of its own.
	Workers *Workers
	// Timeout bounds a handshake. Default 10 s.
	Timeout time.Duration
	// Sessions is how many sessions are kept for resumption, per identity. Default 1024.
	Sessions int
}

// Client makes TLS connections to endpoints. It keeps one tls.Config with its sessions per identity (balancer.TLS.Key), so
// connections of different identities never share anything. Any loop may use it.
type Client struct {
	cfg ClientConfig

	mu      sync.RWMutex
	configs map[string]*tls.Config
}

// NewClient checks the configuration.
func NewClient(cfg ClientConfig) (*Client, error) {
	if cfg.Timeout < 0 || cfg.Sessions < 0 {
		return nil, errors.New("cannot make TLS client: Timeout or Sessions is negative")
	}
	if cfg.Workers == nil {
		var err error
		if cfg.Workers, err = NewWorkers(WorkersConfig{}); err != nil {
			return nil, fmt.Errorf("cannot make TLS client: %w", err)
		}
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultHandshakeTimeout
	}
	if cfg.Sessions == 0 {
		cfg.Sessions = 1024
	}
	return &Client{cfg: cfg, configs: map[string]*tls.Config{}}, nil
}

// ClientInfo is what a handshake with an endpoint agreed on.
type ClientInfo struct {
	Protocol    string // negotiated by ALPN; "" = none
	Version     uint16
	CipherSuite uint16
	Resumed     bool
}

// Secure is Handshake for those who do not need the ClientInfo.
func (cl *Client) Secure(c *reactor.Conn, id *balancer.TLS, done func(error)) {
	cl.Handshake(c, id, func(_ ClientInfo, err error) { done(err) })
}

// Handshake starts TLS on c, which has just connected and on which nothing was written. It must be called on the loop of c
// and takes c over until done is called, on the loop, exactly once and not before Handshake has returned. After nil the
// layer is set and done has to set the handler. After an error c is closed or closing and its handler is told nothing; that
// includes c being closed by anybody meanwhile, which is how a handshake is given up.
func (cl *Client) Handshake(c *reactor.Conn, id *balancer.TLS, done func(ClientInfo, error)) {
	layer := newLayer(c)
	layer.tls = tls.Client(&layer.wire, cl.config(id))
	startHandshake(cl.cfg.Workers, c, layer, cl.cfg.Timeout, nil, func(err error) {
		if err != nil {
			done(ClientInfo{}, fmt.Errorf("cannot complete TLS handshake with endpoint: %w", err))
			return
		}
		cs := layer.tls.ConnectionState()
		done(ClientInfo{Protocol: cs.NegotiatedProtocol, Version: cs.Version, CipherSuite: cs.CipherSuite, Resumed: cs.DidResume}, nil)
	})
}

// Sweep forgets the sessions of identities that live says false to.
func (cl *Client) Sweep(live func(key string) bool) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for key := range cl.configs {
		if !live(key) {
			delete(cl.configs, key)
		}
	}
}

func (cl *Client) config(id *balancer.TLS) *tls.Config {
	cl.mu.RLock()
	cfg := cl.configs[id.Key]
	cl.mu.RUnlock()
	if cfg != nil {
		return cfg
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cfg = cl.configs[id.Key]; cfg == nil {
		cfg = clientConfig(id, cl.cfg.Sessions)
		cl.configs[id.Key] = cfg
	}
	return cfg
}

// clientConfig makes the tls.Config of an identity. crypto/tls's own verification is always replaced: it wants the name that
// is sent as SNI, which here is another matter. Sessions are kept by SNI or, without, by the address of the endpoint.
func clientConfig(id *balancer.TLS, sessions int) *tls.Config {
	cfg := &tls.Config{
		ServerName:                  id.SNI,
		NextProtos:                  slices.Clone(id.ALPN),
		ClientSessionCache:          tls.NewLRUClientSessionCache(sessions),
		InsecureSkipVerify:          true, // VerifyConnection does it
		DynamicRecordSizingDisabled: true,
	}
	if id.Verify {
		roots, name := id.RootCAs, id.ServerName
		cfg.VerifyConnection = func(cs tls.ConnectionState) error { return verifyChain(&cs, roots, name) }
	}
	return cfg
}

// verifyChain checks the certificates of an endpoint against roots, and the name unless it is empty. A resumed session was
// verified in this way when it began, and belongs to the same identity; only time can have changed that.
func verifyChain(cs *tls.ConnectionState, roots *x509.CertPool, name string) error {
	if len(cs.PeerCertificates) == 0 {
		return errors.New("the endpoint sent no certificate")
	}
	if roots == nil { // never the roots of the system
		return errors.New("no roots to verify the endpoint with")
	}
	leaf := cs.PeerCertificates[0]
	if now := time.Now(); cs.DidResume && now.Before(leaf.NotAfter) && now.After(leaf.NotBefore) {
		return nil
	}
	opts := x509.VerifyOptions{
		Roots: roots, DNSName: name, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, cert := range cs.PeerCertificates[1:] {
		opts.Intermediates.AddCert(cert)
	}
	_, err := leaf.Verify(opts)
	return err
}
