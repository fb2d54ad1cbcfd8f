package routing

import (
	"cmp"
	"strconv"
	"time"

	"turnout/balancer"
	"turnout/internal/keypair"
	"turnout/internal/ratelimit"
	"turnout/internal/wire/field"
	"turnout/routing/cors"
	"turnout/routing/header"
	"turnout/routing/redirect"
	"turnout/routing/rewrite"
)

// Termination says where TLS of a client ends. The zero value is TermNone.
type Termination uint8

// The terminations.
const (
	TermNone        Termination = iota // no TLS: plain HTTP only
	TermEdge                           // TLS ends here, plain to the endpoint
	TermReencrypt                      // TLS ends here, another TLS to the endpoint
	TermPassthrough                    // TLS ends at the endpoint; chosen by SNI
	TermStream                         // TLS ends here if there is any, and the bytes go on as they come; for listeners that are a Stream
)

// String returns the word of spec.tls.termination, "http" for TermNone.
func (t Termination) String() string {
	switch t {
	case TermNone:
		return "http"
	case TermEdge:
		return "edge"
	case TermReencrypt:
		return "reencrypt"
	case TermPassthrough:
		return "passthrough"
	case TermStream:
		return "stream"
	}
	return "unknown"
}

// Backend returns the prefix the HAProxy router gives the backends of such
// routes: its logs and metrics call a backend "PREFIX:NAMESPACE:NAME".
func (t Termination) Backend() string {
	switch t {
	case TermEdge:
		return "be_edge_http"
	case TermReencrypt:
		return "be_secure"
	case TermPassthrough, TermStream:
		return "be_tcp"
	}
	return "be_http"
}

// Relays reports that bytes of connections go on as they come: there are no requests that could be looked at.
func (t Termination) Relays() bool { return t == TermPassthrough || t == TermStream }

// terminates reports that TLS of clients ends at the router, for requests.
func (t Termination) terminates() bool { return t == TermEdge || t == TermReencrypt }

// InsecurePolicy says what becomes of plain HTTP requests to a route with TLS. The
// zero value is InsecureNone. With TermNone, InsecureRedirect alone has a meaning.
type InsecurePolicy uint8

// The policies.
const (
	InsecureNone     InsecurePolicy = iota // not served
	InsecureAllow                          // served; edge and re-encrypt only
	InsecureRedirect                       // answered with a redirect to https
)

// String returns the word of spec.tls.insecureEdgeTerminationPolicy.
func (p InsecurePolicy) String() string {
	switch p {
	case InsecureNone:
		return "None"
	case InsecureAllow:
		return "Allow"
	case InsecureRedirect:
		return "Redirect"
	}
	return "unknown"
}

// ForwardedPolicy says what is done with Forwarded and X-Forwarded-* of requests.
// The zero value is ForwardedAppend.
type ForwardedPolicy uint8

// The policies.
const (
	ForwardedAppend  ForwardedPolicy = iota // added to what the client sent
	ForwardedReplace                        // what the client sent is replaced
	ForwardedIfNone                         // added if the client sent none
	ForwardedNever                          // left as the client sent them
)

// String returns the word of the set-forwarded-headers annotation.
func (p ForwardedPolicy) String() string {
	switch p {
	case ForwardedAppend:
		return "append"
	case ForwardedReplace:
		return "replace"
	case ForwardedIfNone:
		return "if-none"
	case ForwardedNever:
		return "never"
	}
	return "unknown"
}

// RouteKey is the identity of a route. An object that is deleted and made again has
// another UID and makes other routes.
type RouteKey struct {
	Namespace, Name, UID string
	Rule                 int // among the rules of the object, from 0 on; an OpenShift Route has one
}

// String returns "namespace/name/uid", followed by "/rule" for all rules but the first: the key of the pool of the route.
func (k RouteKey) String() string {
	s := k.Namespace + "/" + k.Name + "/" + k.UID
	if k.Rule > 0 {
		s += "/" + strconv.Itoa(k.Rule)
	}
	return s
}

// Compare orders by namespace, name, UID and rule.
func (k RouteKey) Compare(o RouteKey) int {
	return cmp.Or(cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name), cmp.Compare(k.UID, o.UID), cmp.Compare(k.Rule, o.Rule))
}

// RouteSpec is one OpenShift Route as the configuration wants it; the table has it as a rule, see RuleSpec. Nobody may change its slices once Compile or Apply
// has them: routes may share them, see balancer.Pool.Update.
type RouteSpec struct {
	RouteKey
	Host        string // lower case; "" = the route is known but serves nothing
	Path        string // "" or as stored in the route, matched as it is
	Wildcard    bool   // the route covers all hosts of the domain of Host (the part after its first dot)
	Termination Termination
	Insecure    InsecurePolicy
	Certificate *CertificateSpec // nil = default certificate; looked at with TermEdge and TermReencrypt only
	Policy      Policy
	CookieName  string // of the sticky cookie; "" = no stickiness. It is not in Policy, which many routes have in common
	Balance     balancer.Algorithm
	Limit       int // requests, or passthrough connections, that each server may have at a time; <= 0 = any number
	Targets     []balancer.Target

	Check            time.Duration      // between two checks of a server; 0 = servers are not checked
	HTTPCheck        balancer.HTTPCheck // what servers are asked then; the zero value = nothing, they are connected to
	EjectAfterErrors int                // 5xx answers in a row that eject a server; <= 0 = none do
	SlowStart        time.Duration      // until a server that comes to others has its full share; 0 = at once
}

// Pool returns the configuration of the route's pool. Its limit applies to all rules of the route
// together.
func (s *RouteSpec) Pool() balancer.PoolConfig {
	scope := ""
	if s.Limit > 0 {
		scope = RouteKey{Namespace: s.Namespace, Name: s.Name, UID: s.UID}.String()
	}
	return balancer.PoolConfig{
		Scope:     scope,
		Algorithm: s.Balance, Namespace: s.Namespace, Limit: s.Limit, Check: s.Check, HTTPCheck: s.HTTPCheck,
		EjectAfterErrors: s.EjectAfterErrors, SlowStart: s.SlowStart,
	}
}

// CertificateSpec is a certificate as PEM text.
type CertificateSpec struct {
	Certificate string // the certificate, and possibly its chain
	Key         string // the private key; "" = it stands in Certificate
	CA          string // more of the chain, sent after Certificate

	// Leaf is of the first certificate, if somebody has read the texts and found that handshakes can use them; nobody may change it.
	// nil = they are read when they are compiled.
	Leaf *keypair.Leaf
}

// Equal reports whether the texts of two certificates, which may be nil, are the same.
func (s *CertificateSpec) Equal(o *CertificateSpec) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.Certificate == o.Certificate && s.Key == o.Key && s.CA == o.CA
}

// Policy is how requests of a route are treated. It is plain data; the defaults of
// the router have been applied to it.
type Policy struct {
	ServerTimeout    time.Duration // silence of the endpoint
	TunnelTimeout    time.Duration // silence of both sides of a tunnel
	ConnectTimeout   time.Duration // connecting to an endpoint
	Forwarded        ForwardedPolicy
	AdjustCase       bool             // endpoints get header names in the router's spelling
	NotFound         bool             // no matching rule of the host: 404, see Table.NotFound
	Leaving          bool             // clients reconnect: other routers serve the route now
	ForwardedPort    uint16           // in X-Forwarded-Port; 0 = that of the router's socket
	CookieAttributes string           // appended to the cookie's value, such as "; path=/; HttpOnly"
	Allow            *AllowList       // who may connect; nil = everybody. Equal lists must be one object
	Rates            ratelimit.Limits // per source address
	HSTS             string           // value of Strict-Transport-Security; "" = none

	RequestTimeout time.Duration // from the head of the request to the end of the answer, all attempts included; 0 = no limit. Before the answer begins: 504
	AttemptTimeout time.Duration // of one attempt, from the request sent to the head of the answer; 0 = ServerTimeout alone. 504, unless Retry has it tried again
	Retry          *RetrySpec    // besides what the router tries again anyway; nil = nothing. Equal ones must be one object
	CORS           *cors.Rule    // who of other origins may read answers; nil = the endpoint says that
	SessionTimeout time.Duration // for how long the sticky cookie is heeded, from the first answer on; 0 = without an end. The time is part of its value
	// SessionHeader is the field of requests and responses that carries the session instead of a
	// cookie. RouteSpec.CookieName is its text then. The zero value means a cookie.
	SessionHeader field.CarriedName

	// What is compiled is made once per content, so that two policies are the same
	// if they are ==.
	RequestActions  *header.Actions // of the route; nil = none
	ResponseActions *header.Actions // of the route; nil = none
	Rewrite         *rewrite.Rule   // of path and host; nil = they stay
	Redirect        *redirect.Rule  // requests are answered with it; nil = they are sent to an endpoint
}

// Rejection says why a route is not served. Other routes are not affected.
type Rejection struct {
	Key     RouteKey
	Reason  string // stable, such as ReasonCertificate
	Message string // for people

	LongChain bool // the certificate chain is longer than keypair.MaxChain
}

// ReasonCertificate is the reason of a Rejection for a certificate or key that
// cannot be used.
const ReasonCertificate = "ExtendedValidationFailed"

// ReasonClientAuth is the reason of a Rejection for authorities or a filter of clients that cannot be used.
const ReasonClientAuth = "InvalidClientAuth"

// ReasonBackends is the reason of a Rejection for backends or mirrors that cannot be distinguished.
const ReasonBackends = "InvalidBackends"

// ReasonMatch is the reason of a Rejection for an expression that cannot be used.
const ReasonMatch = "UnsupportedValue"
