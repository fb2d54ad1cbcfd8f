package peer

import (
	"strings"

	"turnout/bench/site"
)

// kind is a way to configure what Turnout is compared with.
type kind string

const (
	kindMin      kind = "min"      // the least that proxies and adds X-Forwarded-For
	kindTemplate kind = "template" // as the OpenShift router's template configures it
	kindMapStr   kind = "map_str"  // min with an exact map of hosts: the best HAProxy can do for many routes
	kindSplice   kind = "splice"   // template, told to splice what it passes through
	kindNginx    kind = "nginx"    // not HAProxy: nginx that proxies, pools upstream connections and adds X-Forwarded-For
)

// work is what is counted.
type work int

const (
	workRequests  work = iota // over kept-alive connections
	workHandshake             // full TLS handshakes, each on a connection of its own without a request
	workResumed               // resumed TLS handshakes, each with one request
	workBulk                  // MiB of TLS passed through
)

// unit names one of what is counted.
func (w work) unit() string { return [...]string{"request", "handshake", "request", "MiB"}[w] }

// benchCase is one comparison: what is asked for, and of which HAProxy.
type benchCase struct {
	name   string
	peer   kind
	many   bool // the -routes flag's number of routes instead of 1
	fresh  bool // a URL never asked for before with every request
	few    bool // only fewURLs different URLs
	conns  int  // connections; 0 = the -conns flag
	close  bool // a connection per request
	answer int  // bytes of an answer's body; 0 = load.BodySize
	upload int  // bytes of a request's body
	echo   int  // WebSockets that echo messages of so many bytes; 0 = none
	h2c    bool // pods speak HTTP/2 without TLS
	tls    bool // edge termination
	rules  bool // HSTS and two header actions on top
	h2     multiplex
	work   work
	rsa    bool    // the certificate has an RSA-2048 key instead of one on P-256
	signer bool    // Turnout is built with the tag openssl
	pods   string  // re-encrypt: the protocol that the upstream selects over TLS, "http/1.1" or "h2"
	target float64 // ratio wanted at most; 0 = none stated
}

// fewURLs is the number of different URLs of a case with few.
const fewURLs = 50

// fullWork tells whether both sides do all that the router does to a request: forwarded headers, header
// scrub, sticky cookie. The other cases add X-Forwarded-For in HAProxy, and in Turnout everything but
// the cookie.
func (c benchCase) fullWork() bool { return c.peer == kindTemplate }

func allCases() []benchCase {
	return []benchCase{
		{name: "one-min", peer: kindMin, target: 0.80},
		{name: "h1-512", peer: kindMin, conns: 512, target: 0.70},
		{name: "h1-close", peer: kindMin, close: true},
		{name: "get-64k", peer: kindMin, answer: 64 << 10, target: 0.75},
		{name: "get-1m", peer: kindMin, answer: 1 << 20, target: 0.60},
		{name: "put-64k", peer: kindMin, upload: 64 << 10, target: 0.75},
		{name: "ws-128", peer: kindMin, echo: 128},
		{name: "ws-64k", peer: kindMin, echo: 64 << 10},
		{name: "h1-h2c", peer: kindMin, h2c: true},
		{name: "h2-h2c", peer: kindMin, tls: true, h2c: true, h2: multiplex{conns: 16, streams: 16}},
		{name: "tls-1m", peer: kindMin, tls: true, answer: 1 << 20, target: 0.75},
		{name: "h2-1m", peer: kindMin, tls: true, answer: 1 << 20, h2: multiplex{conns: 16, streams: 1}, target: 0.50},
		{name: "one-template", peer: kindTemplate, target: 0.65},
		{name: "one-policies", peer: kindTemplate, rules: true, target: 0.65},
		{name: "many-new-template", peer: kindTemplate, many: true, fresh: true, target: 0.05},
		{name: "many-new-mapstr", peer: kindMapStr, many: true, fresh: true, target: 0.80},
		{name: "many-few-template", peer: kindTemplate, many: true, few: true},
		{name: "many-few-mapstr", peer: kindMapStr, many: true, few: true, target: 0.80},
		{name: "tls-min", peer: kindMin, tls: true, target: 0.80},
		{name: "tls-template", peer: kindTemplate, tls: true, target: 0.50},
		{name: "handshake-ecdsa", peer: kindMin, tls: true, work: workHandshake, target: 0.90},
		{name: "handshake-rsa", peer: kindMin, tls: true, work: workHandshake, rsa: true},
		{name: "handshake-rsa-openssl", peer: kindMin, tls: true, work: workHandshake, rsa: true, signer: true, target: 1.10},
		{name: "resumed-nginx", peer: kindNginx, tls: true, work: workResumed, target: 0.80},
		{name: "passthrough-template", peer: kindTemplate, work: workBulk, target: 0.40},
		{name: "passthrough-splice", peer: kindSplice, work: workBulk, target: 0.50},
		{name: "h2-16x16-min", peer: kindMin, tls: true, h2: multiplex{conns: 16, streams: 16}, target: 0.85},
		{name: "h2-16x16-template", peer: kindTemplate, tls: true, h2: multiplex{conns: 16, streams: 16}, target: 0.60},
		{name: "h2-64x1-min", peer: kindMin, tls: true, h2: multiplex{conns: 64, streams: 1}, target: 0.85},
		{name: "h2-64x1-template", peer: kindTemplate, tls: true, h2: multiplex{conns: 64, streams: 1}, target: 0.60},
		{name: "reencrypt-min", peer: kindMin, tls: true, pods: "http/1.1"},
		{name: "reencrypt-template", peer: kindTemplate, tls: true, pods: "http/1.1"},
		{name: "reencrypt-h2-min", peer: kindMin, tls: true, pods: "h2", h2: multiplex{conns: 16, streams: 16}},
		{name: "reencrypt-h2-template", peer: kindTemplate, tls: true, pods: "h2", h2: multiplex{conns: 16, streams: 16}},
	}
}

// chooseCases returns the cases that a comma-separated list names, in the order of allCases. A name may
// end in * to mean every case that begins so.
func chooseCases(list string) ([]benchCase, error) {
	return site.Choose(list, ",", allCases(), func(c benchCase) string { return c.name })
}

func caseNames() string {
	var names []string
	for _, c := range allCases() {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}
