package peer

import (
	"strings"

	"turnout/bench/report"
	"turnout/bench/site"
	"turnout/internal/opensslkey"
)

// kind is a way to configure what Turnout is compared with.
type kind string

const (
	kindLeast    kind = report.Least    // the least HAProxy that proxies and adds X-Forwarded-For; with many routes an exact map of hosts
	kindTemplate kind = report.Template // HAProxy as the OpenShift router's template configures it
	kindNginx    kind = report.Nginx    // nginx that proxies, pools upstream connections and adds X-Forwarded-For
	kindSplice   kind = "splicing"      // template, configured to splice what it passes through
	kindOther    kind = "other"         // another Turnout
	kindFloor    kind = "floor"         // a program that makes the system calls and nothing else
)

// work is what is counted.
type work int

const (
	workRequests  work = iota // of an HTTP client
	workHandshake             // full TLS handshakes, each on a connection of its own
	workResumed               // resumed ones
	workBulk                  // MiB of TLS passed through
)

// benchCase is one comparison: what is asked for, and of whom.
type benchCase struct {
	name, about string
	unit        string // of what is counted; "" = request
	peers       []kind
	quick       bool    // one of the main ones
	wanted      float64 // ratio to the cheaper of least and nginx, at most; 0 = none is stated
	chart       string  // of which it is a point, and where
	at          float64

	work   work
	routes int  // 0 = 1
	fresh  bool // a URL never asked for before with every request
	few    bool // only fewURLs different URLs
	conns  int  // keep-alive connections; 0 = the -conns flag
	close  bool // a connection per request
	answer int  // bytes of an answer's body; 0 = load.BodySize
	upload int  // bytes of a request's body
	echo   int  // WebSockets that echo messages of so many bytes; 0 = none
	h2     multiplex
	tls    bool   // edge termination
	ask    bool   // a request behind each handshake
	rsa    bool   // the certificate has an RSA-2048 key instead of one on P-256
	signer bool   // Turnout is built with the tag openssl
	rules  bool   // HSTS and two header actions on top
	h2c    bool   // pods speak HTTP/2 without TLS
	pods   string // re-encrypt: the protocol that the upstream selects over TLS, "http/1.1" or "h2"
}

// bare reports whether the case is one whose pods speak HTTP/1.1 without TLS, and which has the floor sign as Turnout does: what the floor
// does. To it many routes are one.
func (c *benchCase) bare() bool {
	return !c.h2c && !c.rules && (!c.signer || opensslkey.Library() != "") && c.pods == "" && c.work != workBulk
}

// fewURLs is the number of different URLs of a case with few.
const fewURLs = 64

// The charts that cases are points of.
const (
	chartConns  = report.ChartConnections
	chartRoutes = report.ChartRoutes
	chartBody   = report.ChartBody
)

func allCases() []benchCase {
	every := []kind{kindLeast, kindTemplate, kindNginx}
	haproxy, cheap := []kind{kindLeast, kindTemplate}, []kind{kindLeast, kindNginx}
	wide, single := multiplex{conns: 16, streams: 16}, multiplex{conns: 64, streams: 1}
	return []benchCase{
		{name: "h1-1", about: "HTTP/1.1, 1 connection", peers: every, conns: 1, wanted: 0.80, chart: chartConns, at: 1},
		{name: "h1-64", about: "HTTP/1.1, 64 connections", peers: every, conns: 64, quick: true, wanted: 0.80, chart: chartConns, at: 64},
		{name: "h1-512", about: "HTTP/1.1, 512 connections", peers: every, conns: 512, quick: true, wanted: 0.70, chart: chartConns, at: 512},
		{name: "h1-4096", about: "HTTP/1.1, 4,096 connections", peers: every, conns: 4096, chart: chartConns, at: 4096},
		{name: "h1-close", about: "HTTP/1.1, a connection per request", peers: every, close: true, quick: true, wanted: 0.85},
		{name: "h1-policies", about: "HTTP/1.1, HSTS and header actions", peers: []kind{kindTemplate}, rules: true},
		{name: "get-4k", about: "answers of 4 KiB", peers: every, answer: 4 << 10, chart: chartBody, at: 4 << 10},
		{name: "get-64k", about: "answers of 64 KiB", peers: every, answer: 64 << 10, quick: true, wanted: 0.75, chart: chartBody, at: 64 << 10},
		{name: "get-1m", about: "answers of 1 MiB", peers: every, answer: 1 << 20, quick: true, wanted: 0.60, chart: chartBody, at: 1 << 20},
		{name: "put-64k", about: "uploads of 64 KiB", peers: every, upload: 64 << 10, quick: true, wanted: 0.75},
		{name: "routes-100", about: "100 routes, each URL new", peers: every, routes: 100, fresh: true, chart: chartRoutes, at: 100},
		{name: "routes-10k", about: "10,000 routes, each URL new", peers: every, routes: 10_000, fresh: true, quick: true, wanted: 0.65, chart: chartRoutes, at: 10_000},
		{name: "routes-10k-few", about: "10,000 routes, 64 URLs", peers: every, routes: 10_000, few: true, wanted: 0.65},
		{name: "routes-100k", about: "100,000 routes, each URL new", peers: cheap, routes: 100_000, fresh: true, chart: chartRoutes, at: 100_000},
		{name: "tls-64", about: "TLS, 64 connections", peers: every, tls: true, quick: true, wanted: 0.70},
		{name: "tls-1m", about: "TLS, answers of 1 MiB", peers: every, tls: true, answer: 1 << 20, wanted: 0.75},
		{name: "tls-close", about: "TLS, a connection per request", peers: every, tls: true, work: workHandshake, ask: true, wanted: 0.60},
		{name: "handshake-ecdsa", about: "full handshakes, ECDSA P-256", unit: "handshake", peers: every, tls: true, work: workHandshake, quick: true, wanted: 0.65},
		{name: "handshake-resumed", about: "resumed handshakes", unit: "handshake", peers: every, tls: true, work: workResumed, quick: true, wanted: 0.75},
		{name: "handshake-rsa", about: "full handshakes, RSA-2048", unit: "handshake", peers: cheap, tls: true, work: workHandshake, rsa: true},
		{name: "handshake-rsa-openssl", about: "the same, signed by libcrypto", unit: "handshake", peers: cheap, tls: true, work: workHandshake, rsa: true, signer: true, wanted: 1.10},
		{name: "h2-16x16", about: "HTTP/2, 16 connections of 16 streams", peers: every, tls: true, h2: wide, quick: true, wanted: 0.75},
		{name: "h2-64x1", about: "HTTP/2, 64 connections of 1 stream", peers: every, tls: true, h2: single, wanted: 0.70},
		{name: "h2-1m", about: "HTTP/2, answers of 1 MiB", peers: every, tls: true, h2: multiplex{conns: 16, streams: 1}, answer: 1 << 20, wanted: 0.50},
		{name: "h2-h2c", about: "HTTP/2 16×16 to pods of h2c", peers: haproxy, tls: true, h2: wide, h2c: true},
		{name: "h1-h2c", about: "HTTP/1.1 to pods of h2c", peers: haproxy, h2c: true},
		{name: "ws-128", about: "WebSocket messages of 128 B", unit: "message", peers: every, echo: 128},
		{name: "ws-64k", about: "WebSocket messages of 64 KiB", unit: "message", peers: every, echo: 64 << 10},
		{name: "passthrough", about: "TLS passed through", unit: "MiB", peers: []kind{kindTemplate, kindSplice}, work: workBulk},
		{name: "reencrypt", about: "re-encrypt, HTTP/1.1", peers: haproxy, tls: true, pods: "http/1.1"},
		{name: "reencrypt-h2", about: "re-encrypt, HTTP/2 16×16 on both sides", peers: haproxy, tls: true, h2: wide, pods: "h2"},
	}
}

// chooseCases returns the cases that a comma-separated list names, in the order of allCases. A name may
// end in * to mean every case that begins so, and quick means the main ones.
func chooseCases(list string) ([]benchCase, error) {
	if list == "quick" {
		var main []benchCase
		for _, c := range allCases() {
			if c.quick {
				main = append(main, c)
			}
		}
		return main, nil
	}
	return site.Choose(list, ",", allCases(), func(c benchCase) string { return c.name })
}

func caseNames() string {
	var names []string
	for _, c := range allCases() {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}
