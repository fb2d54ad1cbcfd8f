// Package upstream decides which protocol is spoken to an endpoint, and so which connections a request is sent on. It is above
// the packages of the protocols and knows them by what it asks of them; they do not know each other.
package upstream

import (
	"turnout/balancer"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
)

// HTTP1 are the HTTP/1.1 connections of a loop: h1.Pools.
type HTTP1 interface {
	proxy.Upstreams
	// Reuse is Acquire of an idle connection, nil without one.
	Reuse(e *balancer.Endpoint, ex *proxy.Exchange) proxy.Upstream
}

// HTTP2 are the HTTP/2 connections of the same loop: h2.Pools.
type HTTP2 interface {
	// Reuse is a stream of a connection that stands, nil without one that takes more.
	Reuse(e *balancer.Endpoint, ex *proxy.Exchange) proxy.Upstream
	// Await has ex wait for a connection, and opens one if none is coming. What answers is a stream, or, where the endpoint
	// selects HTTP/1.1, whatever h2.PoolsConfig.Adopt makes of the connection. fresh: no request may have used it.
	Await(e *balancer.Endpoint, ex *proxy.Exchange, fresh bool)
	// Cancel forgets an Await that has not been answered, if there is one.
	Cancel(ex *proxy.Exchange)
}

// Pools are the connections of one loop to endpoints of either protocol. They implement proxy.Upstreams; all methods are called
// on the loop.
type Pools struct {
	http1 HTTP1
	http2 HTTP2
}

// New joins the connections of a loop.
func New(http1 HTTP1, http2 HTTP2) *Pools { return &Pools{http1, http2} }

// Acquire implements proxy.Upstreams. An endpoint is spoken to in HTTP/2 if it is configured so, or
// may select it in the TLS handshake; what it will select is known only after the handshake, and
// may change with its next version, so that idle connections of both protocols will do. Upgrades go
// by HTTP/1.1, which alone has them (RFC 9113 section 8.6). So do requests that authenticate their
// connection, unless the endpoint speaks HTTP/2 only.
func (ps *Pools) Acquire(e *balancer.Endpoint, ex *proxy.Exchange, fresh bool) proxy.Upstream {
	if ex.NeedsHTTP1() || e.Protocol() != protocol.HTTP2 && !e.TLS().Offers(protocol.HTTP2) {
		return ps.http1.Acquire(e, ex, fresh)
	}
	if ex.Authenticates() {
		if e.TLS().Offers(protocol.HTTP1) && !ex.GRPC() {
			return ps.http1.Acquire(e, ex, true)
		}
		fresh = true // h2.Pools closes the connection after the response
	}
	if !fresh {
		if up := ps.http2.Reuse(e, ex); up != nil {
			return up
		}
		if e.TLS() != nil {
			if up := ps.http1.Reuse(e, ex); up != nil {
				return up
			}
		}
	}
	ps.http2.Await(e, ex, fresh)
	return nil
}

// Cancel implements proxy.Upstreams: whichever the exchange waits for.
func (ps *Pools) Cancel(ex *proxy.Exchange) {
	ps.http1.Cancel(ex)
	ps.http2.Cancel(ex)
}
