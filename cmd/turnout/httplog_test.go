package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"turnout/internal/testkit"
)

// serveLogPod answers raw requests by their path, so that both routers get the very same bytes.
func serveLogPod(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	if first, err := in.Peek(1); err != nil || first[0] == 0x16 { // TLS, which this pod does not speak
		_, _ = io.WriteString(c, "what?")
		return
	}
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		answer := "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nSet-Cookie: session=new; path=/\r\nServer: a|b\r\n\r\nhello"
		switch req.URL.Path {
		case "/chunks":
			answer = "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\nX-A:  b \r\n\r\n5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\n"
		case "/trailers":
			answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nT: value\r\n\r\n"
		case "/reset":
			return
		case "/silent":
			answer = ""
		case "/stream": // for as long as somebody takes it
			answer = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n" + strings.Repeat("x", 64<<10)
			for err == nil {
				_, err = io.WriteString(c, answer)
			}
		case "/half":
			answer = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nbegin"
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

// logService is a service with one pod; name and port are filled in.
const logService = `apiVersion: v1
kind: Service
metadata: {name: NAME, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: NAME-1, namespace: shop, labels: {kubernetes.io/service-name: NAME}}
addressType: IPv4
ports: [{name: http, port: PORT, protocol: TCP}]
endpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]
---
`

// logSite are the manifests of the routes, with APP and DEAD for the ports of the pods.
func logSite() string {
	return strings.NewReplacer("NAME", "app", "PORT", "APP").Replace(logService) +
		strings.NewReplacer("NAME", "dead", "PORT", "DEAD").Replace(logService) + logRoutes
}

const logRoutes = `apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: app, namespace: shop, annotations: {router.openshift.io/cookie_name: stay}}
spec: {host: app.test, to: {kind: Service, name: app}, tls: {termination: edge, insecureEdgeTerminationPolicy: Allow}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: slow, namespace: shop, annotations: {router.openshift.io/cookie_name: stay, haproxy.router.openshift.io/timeout: 500ms}}
spec: {host: slow.test, to: {kind: Service, name: app}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: dead, namespace: shop, annotations: {router.openshift.io/cookie_name: stay}}
spec: {host: dead.test, to: {kind: Service, name: dead}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: redir, namespace: shop}
spec: {host: redir.test, to: {kind: Service, name: app}, tls: {termination: edge, insecureEdgeTerminationPolicy: Redirect}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: pass, namespace: shop}
spec: {host: pass.test, to: {kind: Service, name: app}, tls: {termination: passthrough}}
`

// logHAProxy is the configuration of the HAProxy router, as far as these routes need it.
const logHAProxy = `
global
  log SYSLOG len 4096 local1 info
  log-send-hostname
defaults
  log global
  FORMAT
  option redispatch
  retries 1
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout http-request 10s
frontend public
  mode http
  bind fd@3
  capture cookie session= len 20
  capture request header Host len 8
  capture request header X-Quoted len 30
  capture response header Server len 30
  http-request redirect scheme https code 302 if { hdr(host) redir.test }
  use_backend be_edge_http:shop:app if { hdr(host) app.test }
  use_backend be_http:shop:slow if { hdr(host) slow.test }
  use_backend be_http:shop:dead if { hdr(host) dead.test }
  default_backend openshift_default
frontend fe_sni
  mode http
  bind fd@4 ssl crt DIR/pair.pem alpn h2,http/1.1
  capture cookie session= len 20
  capture request header Host len 8
  capture request header X-Quoted len 30
  capture response header Server len 30
  use_backend be_edge_http:shop:app if { hdr(host) app.test }
  default_backend openshift_default
frontend public_ssl
  mode tcp
  option tcplog
  bind fd@5
  default_backend be_tcp:shop:pass
backend be_http:shop:slow
  mode http
  timeout server 500ms
  cookie stay insert indirect nocache httponly
  server ept:app:http:127.0.0.1:APP 127.0.0.1:APP cookie abc
backend be_edge_http:shop:app
  mode http
  cookie stay insert indirect nocache httponly
  server ept:app:http:127.0.0.1:APP 127.0.0.1:APP cookie abc
backend be_http:shop:dead
  mode http
  cookie stay insert indirect nocache httponly
  server ept:dead:http:127.0.0.1:DEAD 127.0.0.1:DEAD cookie abc
backend be_tcp:shop:pass
  mode tcp
  server ept:app:http:127.0.0.1:APP 127.0.0.1:APP
backend openshift_default
  mode http
`

// logRouter is one of the two routers.
type logRouter struct {
	name         string
	dial         func(front string) (net.Conn, error) // public, tls, pass, or "" for the bytes below tls
	packets      net.PacketConn
	stickyCookie string // that it gave out last
}

// line is the next message.
func (r *logRouter) line(t *testing.T) string {
	t.Helper()
	if err := r.packets.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8<<10)
	n, _, err := r.packets.ReadFrom(buf)
	if err != nil {
		t.Fatalf("%s: no message: %v", r.name, err)
	}
	return strings.TrimSuffix(string(buf[:n]), "\n")
}

// logPatterns take lines apart as pipelines do.
var (
	httpLogPattern = regexp.MustCompile(`^(<142>)\w{3} [ \d]\d \d\d:\d\d:\d\d (\S+) haproxy\[\d+\]: \S+:\d+ \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d\.\d{3}\] (\S+) ([^/ ]+)/(\S+) (-?\d+/-?\d+/-?\d+/-?\d+/\d+) (-?\d+) (\d+) (\S+) (\S+) (\S{4}) \d+/\d+/\d+/\d+/\+?\d+ (\d+/\d+)( \{.*\} \{.*\})? "(.*)"$`)
	tcpLogPattern  = regexp.MustCompile(`^(<142>)\w{3} [ \d]\d \d\d:\d\d:\d\d (\S+) haproxy\[\d+\]: \S+:\d+ \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d\.\d{3}\] (\S+) ([^/ ]+)/(\S+) (-?\d+/-?\d+/\d+) (\d+) (\S\S) \d+/\d+/\d+/\d+/\+?\d+ (\d+/\d+)$`)
	reachedPattern = regexp.MustCompile(`-?\d+`)
)

// logFields are the parts of a line that must be equal: of timers only which phases were reached.
func logFields(t *testing.T, pattern *regexp.Regexp, timers int, line string) []string {
	t.Helper()
	m := pattern.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("this is no line of that format: %s", line)
	}
	m[timers] = reachedPattern.ReplaceAllStringFunc(m[timers], func(s string) string {
		if s == "-1" {
			return s
		}
		return "ms"
	})
	return m[1:]
}

type logCase struct {
	what, front, send string
	cut               bool   // the client resets its connection once the answer has begun
	half              bool   // the client ends its sending
	sticky            string // value of the sticky cookie to send; GIVEN = that of the first answer
	otherBytes        bool   // the two routers have other pages, so the bytes differ
}

const (
	logHead  = " HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n"
	slowHead = " HTTP/1.1\r\nHost: slow.test\r\nConnection: close\r\n\r\n"
)

func logCases() []logCase {
	return []logCase{
		{what: "ok, captured", send: "GET /a?b=1 HTTP/1.1\r\nHost: app.test\r\nX-Quoted: a\"b|c{}#d\r\nCookie: a=b; session=1\r\nConnection: close\r\n\r\n"},
		{what: "ok, valid cookie", send: "GET /a" + logHead, sticky: "GIVEN"},
		{what: "ok, unknown cookie", send: "GET /a" + logHead, sticky: "nobody"},
		{what: "post", send: "POST /a HTTP/1.1\r\nHost: app.test\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"},
		{what: "HTTP/1.0", send: "GET /a HTTP/1.0\r\nHost: app.test\r\n\r\n"},
		{what: "chunks", send: "GET /chunks?x={y}|z" + logHead},
		{what: "trailers", send: "GET /trailers" + logHead},
		{what: "unknown host", send: "GET /a HTTP/1.1\r\nHost: nobody.test\r\nConnection: close\r\n\r\n", otherBytes: true},
		{what: "redirect", send: "GET /a?b HTTP/1.1\r\nHost: redir.test\r\nConnection: close\r\n\r\n"},
		{what: "refused", send: "GET /a HTTP/1.1\r\nHost: dead.test\r\nConnection: close\r\n\r\n", otherBytes: true},
		{what: "no request", send: "GARBAGE\x01\"\r\n\r\n"},
		{what: "half a request", send: "GET /a HTTP/1.1\r\nHost: app", half: true},
		{what: "server timeout", send: "GET /silent" + slowHead, otherBytes: true},
		{what: "server resets", send: "GET /reset" + logHead, otherBytes: true},
		{what: "server timeout within the answer", send: "GET /half" + slowHead},
		{what: "client abort", send: "GET /stream" + logHead, cut: true, otherBytes: true},
		{what: "TLS", front: "tls", send: "GET /b HTTP/1.1\r\nHost: nobody.test\r\nConnection: close\r\n\r\n", otherBytes: true},
	}
}

// ask runs a case through a router.
func (r *logRouter) ask(t *testing.T, tc *logCase) {
	t.Helper()
	front := tc.front
	if front == "" {
		front = "public"
	}
	c, err := r.dial(front)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	send := tc.send
	if tc.sticky != "" {
		send = strings.Replace(send, "\r\nConn", "\r\nCookie: stay="+strings.Replace(tc.sticky, "GIVEN", r.stickyCookie, 1)+"\r\nConn", 1)
	}
	if _, err := io.WriteString(c, send); err != nil {
		t.Fatal(err)
	}
	if tc.half {
		mustLog(t, c.(interface{ CloseWrite() error }).CloseWrite())
	}
	if tc.cut {
		if _, err := io.ReadFull(c, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		return // unread bytes make the close a reset
	}
	answer, _ := io.ReadAll(c) // broken off is an end too
	if _, after, ok := strings.Cut(string(answer), "stay="); ok {
		r.stickyCookie, _, _ = strings.Cut(after, ";")
	}
}

// logRouters are HAProxy and the router with the same routes; format is that of HAProxy, "" for its option httplog.
func logRouters(t *testing.T, format string) []*logRouter {
	t.Helper()
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("needs haproxy, which .ci/run installs")
	}
	pod := testkit.Serve(t, serveLogPod)
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	mustLog(t, err)
	deadAddr := dead.Addr().String()
	dead.Close()
	dir := t.TempDir()
	option := "option httplog"
	if format != "" {
		option = "log-format " + strconv.Quote(format)
	}
	fill := strings.NewReplacer("APP", port(t, pod), "DEAD", port(t, deadAddr), "DIR", dir, "FORMAT", option)
	return []*logRouter{haproxyRouter(t, binary, dir, fill), turnoutRouter(t, fill, format)}
}

// TestLinesAreHAProxys sends the same through HAProxy and the router and compares what pipelines read in their lines.
func TestLinesAreHAProxys(t *testing.T) { //nolint:tparallel // beside other tests; its own parts follow each other
	t.Parallel()
	routers := logRouters(t, "")
	for _, tc := range logCases() {
		t.Run(tc.what, func(t *testing.T) {
			var got [2][]string
			var lines [2]string
			for i, r := range routers {
				r.ask(t, &tc)
				lines[i] = r.line(t)
				got[i] = logFields(t, httpLogPattern, 6, lines[i])
				if tc.otherBytes {
					got[i][7] = "bytes"
				}
			}
			if strings.Join(got[0], "\n") != strings.Join(got[1], "\n") {
				t.Errorf("haproxy: %s\nturnout: %s\n%q\n%q", lines[0], lines[1], got[0], got[1])
			}
		})
	}
	t.Run("passthrough", func(t *testing.T) {
		var got [2][]string
		var lines [2]string
		for i, r := range routers {
			c, err := r.dial("pass")
			mustLog(t, err)
			_ = tls.Client(c, &tls.Config{ServerName: "pass.test", InsecureSkipVerify: true}).Handshake() // the pod speaks something else
			c.Close()
			lines[i] = r.line(t)
			got[i] = logFields(t, tcpLogPattern, 6, lines[i])
		}
		if strings.Join(got[0], "\n") != strings.Join(got[1], "\n") {
			t.Errorf("haproxy: %s\nturnout: %s\n%q\n%q", lines[0], lines[1], got[0], got[1])
		}
	})
}

// logEverything is a format of all that two routers can agree on.
const logEverything = "%f@@%ft@@%b@@%s@@%si@@%sp@@%HM@@%HP@@%HPO@@%HQ@@%HU@@%HV@@%ST@@%B@@%U@@%ts@@%tsc@@%rc@@%sq@@%bq@@%CC@@%CS@@%{+Q}CC@@%{+Q}CS@@%hr@@%hs@@%{+Q}hr@@" +
	"%hrl@@%hsl@@%{+Q}hrl@@%{+Q}r@@%{+E}r@@%ID@@%{+Q}ID@@%sslv@@%sslc@@%{+Q}sslv@@%TR %Td %H@@%ci@@%{+X}ci@@%{+Q}ci@@%{+Q}[src]@@%fi@@%{+Q}ST@@%{+Q}s@@" +
	"%[capture.req.hdr(1)]@@%{+E}[capture.req.hdr(1)]@@%[capture.req.hdr(0),upper]@@%{+Q}[capture.req.hdr(0),lower]@@%[capture.res.hdr(0)]@@" +
	"%[capture.req.uri]@@%[capture.req.method]@@%[capture.req.ver]@@%[ssl_fc]@@%[ssl_fc_protocol]@@%[ssl_fc_cipher]@@%[ssl_fc_sni]@@%[be_name]@@%[fe_name]@@100%%"

// TestVariablesAreHAProxys compares the variables of log formats one by one, over HTTP/1.1, TLS and HTTP/2.
func TestVariablesAreHAProxys(t *testing.T) {
	routers := logRouters(t, logEverything)
	names := strings.Split(logEverything, "@@")
	compare := func(t *testing.T, ask func(r *logRouter), otherBytes bool) {
		t.Helper()
		var got [2][]string
		for i, r := range routers {
			ask(r)
			_, line, _ := strings.Cut(r.line(t), "]: ")
			got[i] = strings.Split(line, "@@")
		}
		if len(got[0]) != len(names) || len(got[1]) != len(names) {
			t.Fatalf("haproxy:\n%q\nturnout:\n%q", got[0], got[1])
		}
		for i := range names {
			if got[0][i] != got[1][i] && !(otherBytes && names[i] == "%B") {
				t.Errorf("%s: haproxy %q, turnout %q", names[i], got[0][i], got[1][i])
			}
		}
	}
	for _, tc := range []logCase{
		{what: "ok", send: "GET /a?b=c HTTP/1.1\r\nHost: app.test\r\nX-Quoted: a\"b|c\r\nCookie: session=1\r\nConnection: close\r\n\r\n"},
		{what: "no captures", send: "POST /chunks/d HTTP/1.1\r\nHost: app.test\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"},
		{what: "absolute", send: "GET http://app.test/a?b=c HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n"},
		{what: "unknown host", send: "GET / HTTP/1.1\r\nHost: nobody.test\r\nConnection: close\r\n\r\n", otherBytes: true},
		{what: "no request", send: "GARBAGE\r\n\r\n"},
		{what: "TLS", front: "tls", send: "GET /a HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n"},
	} {
		t.Run(tc.what, func(t *testing.T) { compare(t, func(r *logRouter) { r.ask(t, &tc) }, tc.otherBytes) })
	}
	t.Run("HTTP/2", func(t *testing.T) {
		compare(t, func(r *logRouter) {
			client := http.Client{Transport: &http.Transport{
				TLSClientConfig: logClient("h2"), ForceAttemptHTTP2: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return r.dial("") },
			}}
			defer client.CloseIdleConnections()
			resp, err := client.Get("https://app.test/a?b=c")
			mustLog(t, err)
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); err != nil || resp.ProtoMajor != 2 {
				t.Errorf("%s: %s, %q, %v", r.name, resp.Proto, body, err)
			}
		}, false)
	})
}

// logClient is a client of TLS that leaves nothing to choose.
func logClient(protocols ...string) *tls.Config {
	return &tls.Config{
		ServerName: "app.test", InsecureSkipVerify: true, NextProtos: protocols, MaxVersion: tls.VersionTLS12,
		CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	}
}

func port(t *testing.T, addr string) string {
	t.Helper()
	_, p, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func listenPackets(t *testing.T) net.PacketConn {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func haproxyRouter(t *testing.T, binary, dir string, fill *strings.Replacer) *logRouter {
	t.Helper()
	cert, key := pemPair(t)
	write(t, dir, "pair.pem", append(append([]byte{}, cert...), key...))
	r := &logRouter{name: "haproxy", packets: listenPackets(t)}
	config := strings.ReplaceAll(fill.Replace(logHAProxy), "SYSLOG", r.packets.LocalAddr().String())
	write(t, dir, "haproxy.cfg", []byte(config))
	cmd := exec.Command(binary, "-db", "-f", filepath.Join(dir, "haproxy.cfg"))
	cmd.Stderr = os.Stderr
	addr := map[string]string{}
	for _, front := range []string{"public", "tls", "pass"} { // descriptors 3, 4 and 5
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		mustLog(t, err)
		f, err := ln.(*net.TCPListener).File()
		mustLog(t, err)
		addr[front] = ln.Addr().String()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		ln.Close()
		defer f.Close()
	}
	mustLog(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	r.dial = func(front string) (net.Conn, error) {
		name := front
		if name == "" {
			name = "tls"
		}
		c, err := net.Dial("tcp", addr[name])
		return overFront(c, err, front)
	}
	return r
}

func turnoutRouter(t *testing.T, fill *strings.Replacer, format string) *logRouter {
	t.Helper()
	r := &logRouter{name: "turnout", packets: listenPackets(t)}
	dir := t.TempDir()
	write(t, dir, "site.yaml", []byte(fill.Replace(logSite())))
	p := startRouter(t, []string{
		"ROUTER_SYSLOG_ADDRESS=" + r.packets.LocalAddr().String(), "ROUTER_LOG_LEVEL=info", "ROUTER_LOG_MAX_LENGTH=4096",
		"ROUTER_SYSLOG_FORMAT=" + format, "ROUTER_CAPTURE_HTTP_COOKIE=session=:20", "ROUTER_CAPTURE_HTTP_REQUEST_HEADERS=Host:8,X-Quoted:30", "ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS=Server:30",
	}, "--manifests", dir)
	r.dial = func(front string) (net.Conn, error) {
		addr := p.http
		if front != "public" {
			addr = p.https
		}
		c, err := net.Dial("tcp", addr)
		return overFront(c, err, front)
	}
	return r
}

func overFront(c net.Conn, err error, front string) (net.Conn, error) {
	if err != nil || front != "tls" {
		return c, err
	}
	return tls.Client(c, logClient()), nil
}

// TestSyslogFormat: the format of an operator, quotes and all, and what of it is not there.
func TestSyslogFormat(t *testing.T) {
	packets := listenPackets(t)
	p := startRouter(t, []string{
		"ROUTER_SYSLOG_ADDRESS=" + packets.LocalAddr().String(), "ROUTER_LOG_LEVEL=info",
		`ROUTER_SYSLOG_FORMAT="%{+Q}HM|%HP|%ST|%[capture.req.hdr(0),lower]|%bi|%b \"x\""`, "ROUTER_CAPTURE_HTTP_REQUEST_HEADERS=Host:99",
	}, "--manifests", t.TempDir())
	if status, _ := get(t, "http://"+p.http+"/x?y", "NOBODY.test"); status != 503 {
		t.Fatal(status)
	}
	r := &logRouter{name: "turnout", packets: packets}
	if line, want := r.line(t), `: "GET"|/x|503|nobody.test|-|openshift_default "x"`; !strings.HasSuffix(line, want) {
		t.Errorf("got %s, want %s", line, want)
	}
	_, warnings, err := parseOptions(nil, envOf("ROUTER_SYSLOG_FORMAT", `"%bi %[capture.req.hdr(3)] %ci"`))
	if err != nil || fmt.Sprint(warnings) != "[--syslog-format (ROUTER_SYSLOG_FORMAT): %bi is not known here and stands as - --syslog-format (ROUTER_SYSLOG_FORMAT): %[capture.req.hdr(3)] is not known here and stands as -]" {
		t.Error(warnings, err)
	}
	if o, warnings, err := parseOptions(nil, envOf("ROUTER_SYSLOG_FORMAT", `"%["`)); err != nil || len(warnings) != 1 || o.logs.Format != "" {
		t.Error(o.logs.Format, warnings, err)
	}
	_, warnings, err = parseOptions([]string{"--syslog-encoding", "json"}, envOf("ROUTER_SYSLOG_FORMAT", "%ci"))
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "has no effect") {
		t.Error(warnings, err)
	}
}

func mustLog(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
