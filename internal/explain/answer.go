package explain

import (
	"time"

	"turnout/controller"
)

// Answer is what would become of one request. It is the value of /explain, and what `turnout explain -o json` prints. Members are added in the
// course of time, and none is renamed or removed.
type Answer struct {
	Request    Request     `json:"request"`    // as it was understood
	Generation uint64      `json:"generation"` // of the table that was asked
	Outcome    Outcome     `json:"outcome"`
	Findings   []Finding   `json:"findings"` // what is wrong, or may be, the most important first
	Listener   Listener    `json:"listener"`
	TLS        *TLS        `json:"tls,omitempty"`        // nil = the request is plain HTTP
	Candidates []Candidate `json:"candidates"`           // routes that could have got it, in the order in which they are asked
	MatchWork  int         `json:"matchWork,omitempty"`  // routing.MatchWork; 0 = paths decide
	More       int         `json:"more,omitempty"`       // candidates that are left out because there are too many
	Route      *Route      `json:"route,omitempty"`      // that gets it; nil = none
	Access     *Access     `json:"access,omitempty"`     // nil = the route restricts nobody
	Forwarded  *HeadChange `json:"forwarded,omitempty"`  // what the pod gets, compared with what the client sends; nil = no pod gets it
	Answered   *HeadChange `json:"answered,omitempty"`   // what the client gets, compared with the head of an answer 200 without fields; or the router's own answer
	Endpoints  []Endpoint  `json:"endpoints,omitempty"`  // of the route
	MoreOf     int         `json:"moreOf,omitempty"`     // endpoints that are left out because there are too many
	Algorithm  string      `json:"algorithm,omitempty"`  // by which one is chosen
	Cookie     *Cookie     `json:"cookie,omitempty"`     // nil = the route is not sticky
	Recent     []Story     `json:"recent,omitempty"`     // requests of this route that failed lately, the last one first
	Assumed    []string    `json:"assumed,omitempty"`    // what was not said of the request, and is taken to be so
	Took       Duration    `json:"took,omitempty"`       // to find out
	Explained  time.Time   `json:"explained,omitzero"`   // when that was
	Change     *Answer     `json:"change,omitempty"`     // the same with the objects of --with; nil = there are none
	Difference []string    `json:"difference,omitempty"` // what the change changes, in words
}

// Request is the request that is explained.
type Request struct {
	URL        string   `json:"url"`
	Method     string   `json:"method"`
	Fields     []string `json:"fields,omitempty"` // as the client sends them, "name: value"; secrets are replaced
	Client     string   `json:"client"`           // its address
	Protocol   string   `json:"protocol"`         // "HTTP/1.1" or "HTTP/2"
	ServerName string   `json:"serverName,omitempty"`
}

// Who answers.
const (
	ByEndpoint = "endpoint" // a pod
	ByRouter   = "router"   // the router itself, or nobody: it closes the connection
)

// Outcome is how the request ends.
type Outcome struct {
	By       string `json:"by"`               // ByEndpoint or ByRouter
	Status   int    `json:"status"`           // that is answered; 0 = the pod decides, or, ByRouter, the connection ends without an answer
	Reason   string `json:"reason"`           // the word of the access log; ByEndpoint it is "ok", or for connections that are passed through "tunnel-closed"
	Detail   string `json:"detail,omitempty"` // that of the access log
	Location string `json:"location,omitempty"`
	Text     string `json:"text"` // the same in a sentence
}

// Finding is something that is wrong with a route, a certificate, a pod, or the request.
type Finding struct {
	Reason string `json:"reason"` // one of Reasons
	Text   string `json:"text"`
	Help   string `json:"help"` // where docs/troubleshooting.md says more
}

// Listener is the port that the request comes to.
type Listener struct {
	Scheme      string `json:"scheme"`            // http, https, tls, tcp or udp
	Address     string `json:"address,omitempty"` // where it listens; "" = not known
	Termination string `json:"termination"`       // where TLS ends: none, router, endpoint (passed through)

	// These are of ports of Gateways.
	Gateway   string   `json:"gateway,omitempty"`   // NAMESPACE/NAME; "" = the port is one of those of OpenShift Routes
	Port      int32    `json:"port,omitempty"`      // as the Gateway has it
	Protocol  string   `json:"protocol,omitempty"`  // HTTP, TLS, TCP or UDP
	Addresses []string `json:"addresses,omitempty"` // of the Gateway
	Name      string   `json:"name,omitempty"`      // KIND/NAMESPACE/NAME/LISTENER, of the one that has the host, or the server name; "" = none has
	Hostname  string   `json:"hostname,omitempty"`  // of the listener; "" = any
}

// TLS is what the client sees before there is a request.
type TLS struct {
	ServerName  string       `json:"serverName"` // "" = the client names none
	Passthrough bool         `json:"passthrough,omitempty"`
	Certificate *Certificate `json:"certificate,omitempty"` // nil = none: the handshake fails, or is the pod's
	Why         string       `json:"why"`                   // why this one
	Refused     bool         `json:"refused,omitempty"`     // the handshake fails
	Clients     string       `json:"clients,omitempty"`     // what is asked of clients' certificates; "" = nothing
}

// Certificate is a certificate as clients see it.
type Certificate struct {
	Subject   string    `json:"subject"`
	Issuer    string    `json:"issuer"`
	Names     []string  `json:"names"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
	Own       bool      `json:"own"`    // it is that of a route; otherwise the default one
	Covers    bool      `json:"covers"` // it is valid for the server name
}

// Candidate is a route for the host of the request.
type Candidate struct {
	Kind        string     `json:"kind,omitempty"`     // such as HTTPRoute; "" = Route
	Listener    string     `json:"listener,omitempty"` // as Listener.Name
	Asks        []string   `json:"asks,omitempty"`     // of requests of its host, for rules of the Gateway API
	Namespace   string     `json:"namespace"`
	Name        string     `json:"name"`
	Host        string     `json:"host"`
	Path        string     `json:"path,omitempty"`
	Wildcard    bool       `json:"wildcard,omitempty"`
	Termination string     `json:"termination,omitempty"`
	Created     *time.Time `json:"created,omitempty"`
	Won         bool       `json:"won"`              // it gets the request, or redirects it
	Reason      string     `json:"reason,omitempty"` // why it does not get it: one of Reasons
	Text        string     `json:"text,omitempty"`   // the same in a sentence
	Origin      string     `json:"origin,omitempty"` // where it comes from, such as a file
	DNS         *DNS       `json:"dns,omitempty"`    // how clients find it; nil = it is not bound to a Router, or that is not known
}

// DNS is how clients find a route that is bound to Routers.
type DNS struct {
	Name    string      `json:"name"`             // by which they ask for it
	Target  string      `json:"target,omitempty"` // what it has to be a CNAME of; "" = the name is the system's own
	Routers []DNSRouter `json:"routers"`          // that this leads to
}

// DNSRouter is a Router that a name leads to.
type DNSRouter struct {
	Name      string   `json:"name"`
	Addresses []string `json:"addresses,omitempty"` // none = no replica is ready, or they may not be read
}

// Route is the route that gets the request.
type Route struct {
	Kind        string   `json:"kind,omitempty"` // such as HTTPRoute; "" = Route
	Namespace   string   `json:"namespace"`
	Name        string   `json:"name"`
	Host        string   `json:"host"`
	Path        string   `json:"path,omitempty"`
	Wildcard    bool     `json:"wildcard,omitempty"`
	Termination string   `json:"termination"`
	Insecure    string   `json:"insecure,omitempty"` // what becomes of plain HTTP
	Rewrite     string   `json:"rewrite,omitempty"`  // the path that the pod gets, if it is another one
	HSTS        string   `json:"hsts,omitempty"`
	Forwarded   string   `json:"forwarded"` // policy of X-Forwarded-* and Forwarded
	Timeouts    Timeouts `json:"timeouts"`
	Origin      string   `json:"origin,omitempty"`
	Notes       []string `json:"notes,omitempty"` // what of it has no effect
	// Settings are those in effect, with where each comes from.
	Settings []controller.Setting `json:"settings,omitempty"`

	// These are of rules of the Gateway API.
	Asks     []string  `json:"asks,omitempty"`     // of requests of its host
	Filters  []string  `json:"filters,omitempty"`  // what it does besides sending requests to backends, for people
	Backends []Backend `json:"backends,omitempty"` // that share the requests; none = Endpoints are all there is
	Mirrors  []string  `json:"mirrors,omitempty"`  // where copies go
	Retry    *Retry    `json:"retry,omitempty"`    // nil = what the router tries again anyway
}

// Backend is one of several that share the requests of a route.
type Backend struct {
	Name      string `json:"name"` // of its Service, with the port
	Weight    int    `json:"weight"`
	Share     string `json:"share,omitempty"`  // of the requests, such as "50%"
	Status    int    `json:"status,omitempty"` // that its requests are answered with; 0 = they go to its endpoints
	Endpoints int    `json:"endpoints"`
}

// Retry is which requests are sent again.
type Retry struct {
	Codes    []int    `json:"codes,omitempty"`
	Attempts int      `json:"attempts"` // after the first
	Backoff  Duration `json:"backoff"`
}

// Timeouts are those of a route.
type Timeouts struct {
	Server  Duration `json:"server"`
	Tunnel  Duration `json:"tunnel"`
	Connect Duration `json:"connect"`
	Request Duration `json:"request,omitzero"` // of the whole exchange; 0 = no limit
	Attempt Duration `json:"attempt,omitzero"` // of one attempt; 0 = Server alone
}

// Access is the verdict about the address of the client.
type Access struct {
	AllowList   bool  `json:"allowList"`             // there is one
	Allowed     bool  `json:"allowed"`               // it has the address, or there is none
	Limited     bool  `json:"limited"`               // requests of an address are limited
	Exceeded    bool  `json:"exceeded"`              // this request would be too many
	Open        int64 `json:"open,omitempty"`        // connections of the address, this one included, and from how many on it is refused
	OpenLimit   int   `json:"openLimit,omitempty"`   //
	Connections int64 `json:"connections,omitempty"` // within 3 s
	ConnLimit   int   `json:"connectionsLimit,omitempty"`
	Requests    int64 `json:"requests,omitempty"` // within 10 s, this one not included
	ReqLimit    int   `json:"requestsLimit,omitempty"`
}

// HeadChange is a head, and what makes it another one than what came in.
type HeadChange struct {
	Line    string   `json:"line"`              // method and target, or the status
	Was     string   `json:"was,omitempty"`     // the same before; "" = as it is
	Kept    []string `json:"kept,omitempty"`    // fields that stay, "name: value"; secrets are replaced
	Added   []string `json:"added,omitempty"`   // fields that are new, or have another value
	Removed []string `json:"removed,omitempty"` // fields that are gone, or have another value now
}

// The states of an Endpoint.
const (
	StateUp      = "up"       // nothing is known that speaks against it
	StateDown    = "down"     // its health checks fail
	StateEjected = "ejected"  // requests to it have failed
	StateIdle    = "weight-0" // it gets what a sticky cookie brings, and nothing else
)

// Endpoint is a server of the route.
type Endpoint struct {
	Address  string `json:"address"`
	Backend  string `json:"backend,omitempty"` // that it is of, if several share the requests
	Pod      string `json:"pod,omitempty"`
	Service  string `json:"service,omitempty"`
	Weight   int    `json:"weight"`
	Share    string `json:"share,omitempty"` // of new requests, by weight, such as "50%"
	State    string `json:"state"`           // one of those above
	Checked  bool   `json:"checked"`         // it has health checks
	Sessions int64  `json:"sessions"`        // requests that are under way
	Private  int64  `json:"private"`         // connections kept for one client connection each
	Requests uint64 `json:"requests"`        // so far
	Failures uint64 `json:"failures"`        // times it could not be connected so far
	Protocol string `json:"protocol"`
	TLS      string `json:"tls,omitempty"` // how it is verified; "" = it is plain
	Picked   bool   `json:"picked"`        // this request would go there; with some algorithms the next one may go elsewhere
}

// Cookie is the sticky cookie.
type Cookie struct {
	Name   string   `json:"name"`
	Header bool     `json:"header,omitempty"` // it is a field of that name, and no cookie
	Lasts  Duration `json:"lasts,omitzero"`   // from the first answer on; 0 = without an end
	Used   bool     `json:"used"`             // the request has it, and it chose the endpoint
	Sent   bool     `json:"sent"`             // the answer sets it
}

// Duration is written as Go writes it, such as "1.5s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}
