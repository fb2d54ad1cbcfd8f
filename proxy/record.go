package proxy

import (
	"net/netip"
	"time"

	"turnout/balancer"
	"turnout/internal/wire/protocol"
)

// Record is what one finished exchange tells the access log. It is handed over
// once, by the single exit of the pipeline (attempts.finish).
//
// The byte slices are views into the exchange's own memory: they are valid for
// the call only, and a log that keeps them copies them. Durations are -1 when the
// exchange never reached that phase.
type Record struct {
	Start  time.Time      // wall clock at the first byte of the request head
	Client netip.AddrPort // source of the client connection
	Local  netip.AddrPort // the router's own address of that connection
	Secure bool           // the client spoke TLS

	Frontend                string // of the HAProxy router: public, fe_sni, fe_no_sni, or public_ssl for TLS that was passed through
	ServerName              string // of the client's ClientHello, empty when it named none
	TLSVersion, CipherSuite uint16 // of the client's session; 0 without TLS, and for TLS that was passed through
	Negotiated              bool   // the client and the router agreed on Agreed by ALPN
	Agreed                  protocol.Protocol

	Method, Host, Target []byte            // as received; Host is the routed authority
	Minor                int               // minor version of a client of HTTP/1.x; of HTTP/2 it means nothing
	Spoken               protocol.Protocol // by the client: HTTP1 or HTTP2
	UserAgent, Referer   []byte            // as received; nil = there was none

	Namespace, Route string           // empty when no route matched
	Backend          string           // what the HAProxy router puts before them, such as be_http; empty when no route matched
	Pool             *balancer.Pool   // of the route; nil when none matched
	Via              *balancer.Server // the endpoint in that pool; nil when none was chosen
	Server           string           // reference server id of the endpoint, empty when none was chosen
	Endpoint         netip.AddrPort   // zero when none was chosen

	Status   int    // status sent to the client, 0 when the connection closed without one
	Reason   Reason // who ended the exchange and why
	Sticky   Sticky // what the sticky cookie of the request did
	Inserted bool   // the answer sets the sticky cookie
	Detail   string // the rule that a rejected request broke, a stable word of its codec such as "cl-te", or why there was no TLS with an endpoint; empty otherwise
	BytesIn  uint64 // request body bytes taken from the client
	BytesOut uint64 // response body bytes given to the client
	HeadIn   uint64 // size of the request head, see headSize; 0 when it could not be read
	HeadOut  uint64 // the same of the answer's, as the endpoint or the router made it; 0 when there was none
	Retries  int    // attempts after the first
	// Causes says of each of Retries which fault of the attempt before it made it legal.
	Causes [maxRetries]Fault

	Answered      bool              // the endpoint sent a head that is no interim one; the next two are of it
	AnsweredIn    protocol.Protocol // spoken by the endpoint
	AnsweredMinor int               // minor version of an endpoint of HTTP/1.x

	Queue    time.Duration // waiting for an endpoint that may have another request; 0 = none
	Connect  time.Duration // choosing and connecting; 0 for a pooled connection
	Response time.Duration // request sent to response head
	Total    time.Duration // request head to the last byte
	Tunnel   bool          // the exchange ended as a tunnel (101)
	Private  bool          // its upstream connection was private, see PrivateSet

	Trace    TraceRef  // zero when requests are not traced, and for what is no request
	UniqueID []byte    // nil = the request got none
	Captures *Captures // names of what Captured holds; nil = nothing
	Captured [][]byte  // values in the order of Captures.Each, nil where there was none
}

// Sticky says what became of the sticky cookie of a request.
type Sticky uint8

// What a sticky cookie can do.
const (
	StickyOff     Sticky = iota // there is no route, or its answers set none
	StickyMissing               // the request had none
	StickyUsed                  // it chose the server
	StickyAway                  // the server it names was not the one in the end
	StickyUnknown               // no server has this value
)

// AccessLog takes one Record per finished exchange. It is called on an event
// loop: it must not block, and must not keep the Record or its slices.
type AccessLog interface {
	Log(r *Record)
}

// Reason says, in a stable word for logs and metrics, why an exchange ended.
type Reason uint8

// The reasons, in the order of the pipeline. ReasonOK is the zero value.
const (
	ReasonOK             Reason = iota // the endpoint's answer was relayed whole
	ReasonRedirect                     // insecureEdgeTerminationPolicy Redirect
	ReasonNoRoute                      // no route for this host and path
	ReasonNoEndpoint                   // the route has no usable endpoint
	ReasonBadRequest                   // the request broke HTTP's grammar
	ReasonRefused                      // a method or form this proxy does not serve
	ReasonConnect                      // no endpoint could be connected
	ReasonUpstreamReset                // the endpoint broke off before or within its answer
	ReasonUpstreamHead                 // the endpoint's answer broke HTTP's grammar
	ReasonServerTimeout                // the endpoint was silent for the server timeout
	ReasonClientTimeout                // the client was silent in the middle of a request
	ReasonClientGone                   // the client left before the answer was complete
	ReasonTunnelClosed                 // an upgraded connection ended
	ReasonShutdown                     // the router is stopping
	ReasonDenied                       // the route's allow-list does not name the source address
	ReasonRateLimited                  // the source address used the route too much
	ReasonRewrite                      // header actions or rewrite-target asked for more than a message may grow
	ReasonMonitor                      // a load balancer asked whether the router serves; never logged
	ReasonTargetSize                   // the request target was too long (414)
	ReasonHeadSize                     // the request head was too long or had too many fields (431)
	ReasonUnsupported                  // an expectation, transfer coding or version that is not known here (417, 501, 505)
	ReasonMisdirected                  // the request belongs on another connection
	ReasonFlood                        // an HTTP/2 client asked for more than its share
	ReasonUpstreamTLS                  // no TLS session with an endpoint came about
	ReasonQueueTimeout                 // no endpoint could take another request for too long
	ReasonContentSize                  // what frames the request's body is larger than it may be (413)
	ReasonInternal                     // the router itself failed over this message (500)
	ReasonSubject                      // the subject filter does not let the client's certificate in
	ReasonOverload                     // the router has too much to do for new work
	ReasonRouteShare                   // the route has its share of connections, and few are left for others
	ReasonLoop                         // the request had been at this router too often (508)
	ReasonRequestTimeout               // the whole exchange took longer than the route allows (504)
	ReasonPreflight                    // a page of another origin asked what it may do; the router has answered
	ReasonBackend                      // what the rule names for the request's share cannot be used (500)
	ReasonMatchWork                    // rules were not decided or carried out: they exceed the work of one request (431)
	reasonCount
)

var reasonNames = [reasonCount]string{
	"ok", "redirect", "no-route", "no-endpoint", "bad-request", "refused", "connect-failed",
	"upstream-reset", "upstream-malformed", "server-timeout", "client-timeout", "client-gone",
	"tunnel-closed", "shutdown", "denied", "rate-limited", "rewrite-failed",
	"monitor",
	"target-too-long", "head-too-large", "unsupported", "misdirected", "flood", "tls-failed", "queue-timeout", "content-too-large", "internal-error",
	"subject-refused", "overload", "route-share", "loop", "request-timeout", "preflight", "bad-backend", "match-work",
}

// String is the stable word of the reason.
func (r Reason) String() string {
	if r < reasonCount {
		return reasonNames[r]
	}
	return "unknown"
}

// Reasons lists every reason in order, for metrics that want a series each.
func Reasons() []Reason {
	all := make([]Reason, reasonCount)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}
