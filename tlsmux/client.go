package tlsmux

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/wire/protocol"
)

// ClientConfig configures a Client. The zero value means the defaults.
type ClientConfig struct {
	// Workers bound the handshakes; nil = workers of its own.
	Workers *Workers
	// Timeout bounds a handshake. Default 10 s.
	Timeout time.Duration
	// Sessions is how many sessions are kept for resumption, of all identities together. Default 8192.
	Sessions int
}

// Client makes TLS connections to endpoints. What it knows it keeps per identity (balancer.TLS.Key), so connections of
// different identities never share anything. Any loop may use it.
type Client struct {
	cfg      ClientConfig
	timeout  atomic.Int64 // of a handshake, in nanoseconds
	sessions tls.ClientSessionCache

	// Configurations by identity, those used lately and those that were lately: what is not asked for while recent fills
	// up is forgotten. Their sessions are kept apart and end in their own time.
	mu            sync.Mutex
	recent, older map[string]*identityConfigs
}

// identityConfigs is how TLS is done to the endpoints of a balancer.TLS.
type identityConfigs struct {
	offered *tls.Config // with its whole ALPN
	http1   *tls.Config // without h2
}

// maxIdentities bounds each of Client.recent and Client.older.
const maxIdentities = 8192

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
	if cfg.Sessions == 0 {
		cfg.Sessions = 8192
	}
	cl := &Client{cfg: cfg, sessions: tls.NewLRUClientSessionCache(cfg.Sessions), recent: map[string]*identityConfigs{}}
	cl.SetTimeout(cfg.Timeout)
	return cl, nil
}

// SetTimeout bounds handshakes that begin from now on; 0 is the default of ClientConfig.
func (cl *Client) SetTimeout(d time.Duration) {
	cl.timeout.Store(int64(cmp.Or(d, defaultHandshakeTimeout)))
}

// ClientInfo is what a handshake with an endpoint agreed on.
type ClientInfo struct {
	Protocol    protocol.Protocol // agreed on by ALPN; HTTP1 without
	Version     uint16
	CipherSuite uint16
	Resumed     bool
}

// Secure is Handshake for HTTP/1.1: HTTP/2 is not offered, whatever the identity says.
func (cl *Client) Secure(c *reactor.Conn, id *balancer.TLS, done func(error)) {
	cl.handshake(c, id, cl.identity(id).http1, func(_ ClientInfo, err error) { done(err) })
}

// Negotiate is Handshake for those who ask only which protocol the endpoint selected.
func (cl *Client) Negotiate(c *reactor.Conn, id *balancer.TLS, done func(spoken protocol.Protocol, err error)) {
	cl.Handshake(c, id, func(i ClientInfo, err error) { done(i.Protocol, err) })
}

// Handshake starts TLS on c, which has just connected and on which nothing was written. It must be called on the loop of c
// and takes c over until done is called, on the loop, exactly once and not before Handshake has returned. After nil the
// layer is set and done has to set the handler. After an error, an *EndpointError, c is closed or closing and its handler is
// not notified; that includes c being closed by anybody meanwhile, which is how a handshake is given up.
func (cl *Client) Handshake(c *reactor.Conn, id *balancer.TLS, done func(ClientInfo, error)) {
	cl.handshake(c, id, cl.identity(id).offered, done)
}

func (cl *Client) handshake(c *reactor.Conn, id *balancer.TLS, cfg *tls.Config, done func(ClientInfo, error)) {
	layer := newLayer(c, cl.cfg.Workers)
	cfg = cfg.Clone()
	cfg.VerifyConnection = func(cs tls.ConnectionState) error { return layer.wire.hs.judgeEndpoint(&cs, id) }
	layer.tls = tls.Client(&layer.wire, cfg)
	h := startHandshake(handshakeConfig{
		workers: cl.cfg.Workers, work: WorkEndpoint, conn: c, layer: layer, timeout: time.Duration(cl.timeout.Load()), most: maxEndpointFlight,
		tenant: "endpoints with " + id.Key,
		done: func(err error) {
			if err != nil {
				done(ClientInfo{}, &EndpointError{err})
				return
			}
			cs := layer.tls.ConnectionState()
			done(ClientInfo{Protocol: protocol.Agreed(cs.NegotiatedProtocol), Version: cs.Version, CipherSuite: cs.CipherSuite, Resumed: cs.DidResume}, nil)
		},
	})
	c.SetHandler(h)
}

// identity finds or makes what belongs to id.
func (cl *Client) identity(id *balancer.TLS) *identityConfigs {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	known := cl.recent[id.Key]
	if known != nil {
		return known
	}
	if known = cl.older[id.Key]; known == nil {
		known = newIdentity(id, cl.sessions)
	}
	if len(cl.recent) >= maxIdentities {
		cl.recent, cl.older = map[string]*identityConfigs{}, cl.recent
	}
	cl.recent[id.Key] = known
	return known
}

// endpointSuites are the cipher suites of TLS 1.2 that endpoints are offered, in the order of crypto/tls, which has those with
// ephemeral keys first: more than clients get, because the pods of a cluster are older than its clients. RC4 and triple DES,
// which OpenSSL does not offer by default either, are not among them.
func endpointSuites() []uint16 {
	var ids []uint16
	for _, s := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if !strings.Contains(s.Name, "_RC4_") && !strings.Contains(s.Name, "_3DES_") {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// newIdentity makes the tls.Configs of an identity. crypto/tls's own verification is always replaced: it wants the name
// that is sent as SNI, which here is another matter.
func newIdentity(id *balancer.TLS, sessions tls.ClientSessionCache) *identityConfigs {
	cfg := &tls.Config{
		ServerName:                  id.SNI,
		NextProtos:                  protocol.Names(id.ALPN),
		ClientSessionCache:          ownSessions{sessions, id.Key},
		CipherSuites:                endpointSuites(),
		InsecureSkipVerify:          true, // VerifyConnection verifies it, see handshake
		DynamicRecordSizingDisabled: true,
	}
	if id.Certificate != nil {
		cfg.Certificates = []tls.Certificate{*id.Certificate}
	}
	if !id.Offers(protocol.HTTP2) {
		return &identityConfigs{cfg, cfg}
	}
	http1 := cfg.Clone()
	http1.NextProtos = protocol.Names(slices.DeleteFunc(slices.Clone(id.ALPN), func(p protocol.Protocol) bool { return p == protocol.HTTP2 }))
	return &identityConfigs{cfg, http1}
}

// ownSessions are the sessions of one identity among all. Within it they are kept by SNI or, without, by the address of the
// endpoint. A session says nothing about the protocol on top of it, so all offers of the identity share them.
type ownSessions struct {
	all tls.ClientSessionCache
	key string
}

// Get implements tls.ClientSessionCache.
func (s ownSessions) Get(key string) (*tls.ClientSessionState, bool) {
	return s.all.Get(s.key + "\x00" + key)
}

// Put implements tls.ClientSessionCache.
func (s ownSessions) Put(key string, cs *tls.ClientSessionState) { s.all.Put(s.key+"\x00"+key, cs) }
