package proxy

import (
	"net/netip"
	"time"

	"turnout/balancer"
	"turnout/internal/wire/protocol"
	"turnout/proxy/detached"
	"turnout/proxy/identity"
	"turnout/routing"
)

// Half is what both halves of an exchange have: a message is sent by it, and one that comes from
// its peer is paused. Calls never block and never fail; what goes wrong arrives as an event of the
// Exchange. A half refuses to complete a message whose body has another length than its head
// announces: it closes the connection, or resets the stream.
type Half interface {
	// Body sends body bytes, valid for the call only. True asks the pipeline to pause the other half until
	// Exchange.DownstreamDrained or Exchange.UpstreamDrained.
	Body(p []byte) (congested bool)
	// End completes the message. After that of the response the exchange belongs to nobody.
	End(trailers Section)
	// Abort gives up, because of f; no event follows. The client sees its connection or stream broken off. Of an endpoint FaultTimeout
	// says that it did not answer in time, which says something of a connection that others share; FaultCanceled that its answer is not
	// wanted any more.
	Abort(f Fault)
	// Pause and Resume stop and continue the body that the peer sends.
	Pause()
	Resume()
	// Progress is how many bytes the peer has taken so far, and how many it has yet to: a peer
	// that takes them slowly is waited for, one that takes none is not.
	Progress() (taken uint64, left int)
	// Plain returns the connection to which the kernel may copy body bytes unchanged. The zero
	// value means that Body must be used.
	Plain() detached.Conn
	// Spliced reports that the kernel copied n body bytes to the connection of Plain.
	Spliced(n uint64)
}

// Downstream is the client's half of one exchange as the pipeline drives it: an
// HTTP/1.1 connection or an HTTP/2 stream.
type Downstream interface {
	Half
	// Head sends the final head; end means that no body follows.
	Head(s Section, end bool)
	// Congested reports whether the client does not take its output. Exchange.DownstreamDrained
	// follows when it does.
	Congested() bool
	// Informational sends a 1xx head other than 101.
	Informational(s Section)
	// Upgrade judges a 101, whose connection can be detached, beyond the name of the protocol. nil: the client cannot agree to it.
	Upgrade(h *Head) Joiner
}

// Joiner sends the head of a 101, detaches its connection and joins the client's with it; from then on it owns both. moved is
// called for bytes from and to the client as they go, done at the end, later. end ends the tunnel at once.
type Joiner func(s Section, idle time.Duration, moved func(in, out uint64), done func()) (end func())

// Upstream is the endpoint's half of one attempt.
type Upstream interface {
	Half
	// Head sends the head of the request; end means that no body follows.
	Head(h *Head, end bool)
	// MayRefuse says that the endpoint can still say that it did nothing with the request (FaultUnprocessed), though some of
	// its body has been sent. asked: it has asked for more of the body, so that it hardly will.
	MayRefuse() (may, asked bool)
}

// Upstreams gives the pipeline upstreams of its loop.
type Upstreams interface {
	// Acquire returns a pooled Upstream at once, or nil, and
	// calls ex.UpstreamReady or ex.UpstreamFault later, never inside Acquire.
	// fresh forbids a pooled one.
	Acquire(e *balancer.Endpoint, ex *Exchange, fresh bool) Upstream
	// Cancel forgets an Acquire that has not been answered.
	Cancel(ex *Exchange)
}

// Timer is a one-shot timer of a loop. Reset replaces the deadline; a stopped
// timer may be reset again.
type Timer interface {
	Reset(d time.Duration)
	Stop()
}

// Clock is what the pipeline knows of time, and of the loop it runs on.
type Clock interface {
	// Now is monotonic, in nanoseconds, constant within one iteration of the loop.
	Now() int64
	// Wall is the time of day, for logs.
	Wall() time.Time
	// NewTimer makes a stopped timer that calls fn on the loop. If fn panics, the loop recovers that, has
	// Worker.Interrupted called, and ends the connections that fn may have written to.
	NewTimer(fn func()) Timer
	// Post calls fn on the loop, soon. Any goroutine may call it. False: the loop has
	// ended, and fn is not called. A panic of fn is recovered as that of a timer.
	Post(fn func()) bool
}

// Names are those a certificate is valid for. A host is lower-case, without port and trailing dot.
type Names interface {
	Covers(host []byte) bool
}

// Client is what the pipeline knows of the connection an exchange came in on.
type Client struct {
	Addr   netip.AddrPort    // source
	Local  netip.AddrPort    // the router's own address of this connection
	Secure bool              // TLS ends here
	Agreed protocol.Protocol // on by ALPN; HTTP1 also when nothing was, though a client may speak HTTP/2 by prior knowledge
	// Negotiated says that Agreed was agreed on.
	Negotiated bool
	// Private holds the private connections of the client connection. nil = none is kept for it.
	Private *PrivateSet
	Own     bool // the router's own request, which measures whether the loop responds
	// TTL is the TTL of the packets of a stream or datagram session on arrival; 0 = unknown. See
	// nextTTL.
	TTL uint8

	Arrival *routing.Arrival // for routing.View; nil = by the pair of ports of OpenShift Routes, asked for nothing that a host asks for

	TLSVersion  uint16 // of the session, such as 0x0304 for TLS 1.3; 0 without TLS
	CipherSuite uint16 // of the session, as the registry of TLS numbers it; 0 without TLS

	ServerName string // that the client asked for in its ClientHello, lower-case; "" = none
	Covered    Names  // of the certificate that was served; nil = not known

	Identity    *identity.Identity // who the client is; nil unless TLS ends here and clients are asked for certificates
	AuthVersion uint32             // what Config.AuthVersion was when TLS began
}

// outdated says that the client was let in by rules that count no more.
func (c *Client) outdated(cfg *Config) bool { return c.Secure && c.AuthVersion < cfg.AuthVersion }

// The front ends of the HAProxy router, as its logs name them.
const (
	frontendPlain       = "public"
	frontendNamed       = "fe_sni"    // TLS ends here, and the client named a server
	frontendUnnamed     = "fe_no_sni" // TLS ends here, and it did not
	frontendPassthrough = "public_ssl"
)

func (c *Client) frontend() string {
	switch {
	case !c.Secure:
		return frontendPlain
	case c.ServerName == "":
		return frontendUnnamed
	}
	return frontendNamed
}
