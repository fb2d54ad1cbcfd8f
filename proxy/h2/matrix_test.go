package h2

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

// message is a request or an answer in no protocol.
type message struct {
	method, path string
	status       int
	fields       []string // pairs
	body         string
	length       bool // declare Content-Length
	trailers     []string
	interim      []string // pairs of a 103 before the response; nil = none
	broken       bool     // breaks off after the body
	silent       bool     // never comes
}

// cross is one combination of client and endpoint protocol.
type cross struct {
	*rig
	front, back string
	secure      bool      // the endpoint speaks TLS and selects its protocol
	got         []message // at the endpoint
}

// matrix runs a behaviour in all four combinations, with an endpoint whose protocol is known before and with one that
// selects it in the TLS handshake.
func matrix(t *testing.T, serve func(q message) message, run func(t *testing.T, x *cross), change ...func(*proxy.Config)) {
	for _, front := range []string{"h1", "h2"} {
		for _, back := range []string{"h1", "h2"} {
			for _, secure := range []bool{false, true} {
				t.Run(front+" to "+back+map[bool]string{true: " over TLS"}[secure], func(t *testing.T) {
					x := &cross{rig: newRigOn(t, memnet.New(1), change...), front: front, back: back, secure: secure}
					x.tls.selects = func(netip.AddrPort) (string, error) {
						return map[string]string{"h1": "http/1.1", "h2": "h2"}[back], nil
					}
					x.start(serve)
					run(t, x)
					x.wantQuiet()
				})
			}
		}
	}
}

// reach says in a spec how the endpoint is reached.
func (x *cross) reach(s *routing.RouteSpec) {
	switch {
	case x.secure:
		reencrypt(s)
	case x.back == "h2":
		h2c(s)
	}
}

// start starts the endpoint and its route.
func (x *cross) start(serve func(q message) message) {
	keep := func(q message) message { x.got = append(x.got, q); return serve(q) }
	if x.back == "h2" {
		p := x.pod2(1, func(c *podConn, q *podRequest) {
			part := strings.Fields(q.line)
			c.answer(q.id, keep(message{method: part[0], path: part[1], body: string(q.body), fields: pairs(q.fields), trailers: pairs(q.trailers)}))
		})
		x.route("app", "app.test", x.reach, p.addr)
		return
	}
	p := x.pod(1, func(_ int, raw string) string {
		q, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
		if err != nil {
			x.t.Fatal(err)
		}
		body, err := io.ReadAll(q.Body)
		if err != nil {
			x.t.Fatal(err)
		}
		return appendAnswer(keep(message{method: q.Method, path: q.URL.RequestURI(), body: string(body), fields: headerPairs(q.Header), trailers: headerPairs(q.Trailer)}), q.Method)
	})
	p.After = func(peer *memnet.Peer, _ int) {
		if serve(x.got[len(x.got)-1]).broken {
			peer.Close()
		}
	}
	x.route("app", "app.test", x.reach, p.Addr)
}

// answer sends m by HTTP/2.
func (c *podConn) answer(id uint32, m message) {
	if m.silent {
		return
	}
	if m.interim != nil {
		c.headers(id, false, append([]string{":status", "103"}, m.interim...)...)
	}
	fields := append([]string{":status", strconv.Itoa(m.status)}, m.fields...)
	if m.length {
		fields = append(fields, "content-length", strconv.Itoa(len(m.body)))
	}
	end := m.body == "" && m.trailers == nil && !m.broken
	c.headers(id, end, fields...)
	for rest := m.body; len(rest) > 0; {
		k := min(len(rest), 1000) // within every window there is
		_ = c.fr.WriteData(id, k == len(rest) && m.trailers == nil && !m.broken, []byte(rest[:k]))
		rest = rest[k:]
	}
	switch {
	case m.broken:
		_ = c.fr.WriteRSTStream(id, http2.ErrCodeInternal)
	case m.trailers != nil:
		c.headers(id, true, m.trailers...)
	}
}

// appendAnswer is m in HTTP/1.1.
func appendAnswer(m message, method string) string {
	if m.silent {
		return ""
	}
	var b strings.Builder
	if m.interim != nil {
		b.WriteString("HTTP/1.1 103 Early Hints\r\n")
		for i := 0; i < len(m.interim); i += 2 {
			fmt.Fprintf(&b, "%s: %s\r\n", m.interim[i], m.interim[i+1])
		}
		b.WriteString("\r\n")
	}
	fmt.Fprintf(&b, "HTTP/1.1 %d X\r\n", m.status)
	for i := 0; i < len(m.fields); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", m.fields[i], m.fields[i+1])
	}
	if m.status == 204 || m.status == 304 {
		return b.String() + "\r\n"
	}
	return b.String() + framed(m, method == "HEAD")
}

// framed is the rest of a head and the body, with Content-Length or in chunks.
func framed(m message, bodyless bool) string {
	if m.length {
		s := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(m.body))
		if !bodyless {
			s += m.body
		}
		return s
	}
	if bodyless {
		return "Transfer-Encoding: chunked\r\n\r\n"
	}
	s := "Transfer-Encoding: chunked\r\n\r\n"
	if m.body != "" {
		s += fmt.Sprintf("%x\r\n%s\r\n", len(m.body), m.body)
	}
	if m.broken {
		return s
	}
	s += "0\r\n"
	for i := 0; i < len(m.trailers); i += 2 {
		s += m.trailers[i] + ": " + m.trailers[i+1] + "\r\n"
	}
	return s + "\r\n"
}

// exchange sends m and returns the answer.
func (x *cross) exchange(m message, wait time.Duration) message {
	if x.front == "h2" {
		return x.byHTTP2(m, wait)
	}
	peer := x.net.Connect(frontAddr)
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: app.test\r\n", m.method, m.path)
	for i := 0; i < len(m.fields); i += 2 {
		head += m.fields[i] + ": " + m.fields[i+1] + "\r\n"
	}
	if m.body == "" && m.trailers == nil {
		head += "\r\n"
	} else {
		head += framed(m, false)
	}
	peer.Write([]byte(head))
	x.net.Run()
	x.net.Advance(wait)
	q := &http.Request{Method: m.method}
	got := bufio.NewReader(bytes.NewReader(peer.Received()))
	r, err := http.ReadResponse(got, q)
	var interim []string
	for err == nil && r.StatusCode < 200 {
		interim = append(interim, headerPairs(r.Header)...)
		r, err = http.ReadResponse(got, q)
	}
	if err != nil {
		x.t.Fatalf("%v in %.200q", err, peer.Received())
	}
	body, err := io.ReadAll(r.Body)
	return message{status: r.StatusCode, body: string(body), fields: headerPairs(r.Header), trailers: headerPairs(r.Trailer), interim: interim, broken: err != nil}
}

func (x *cross) byHTTP2(m message, wait time.Duration) message {
	c := x.connect()
	fields := m.fields
	if m.length {
		fields = append(fields[:len(fields):len(fields)], "content-length", strconv.Itoa(len(m.body)))
	}
	c.request(1, m.body == "" && m.trailers == nil, m.method, m.path, fields...)
	for rest, left := m.body, 65535; len(rest) > 0; {
		left += int(c.windows[1])
		c.windows[1] = 0
		k := min(len(rest), 16384, left)
		if k == 0 {
			x.t.Fatal("the window does not open")
		}
		c.data(1, k == len(rest) && m.trailers == nil, rest[:k])
		rest, left = rest[k:], left-k
		c.run()
	}
	if m.trailers != nil {
		c.headers(1, true, m.trailers...)
	}
	c.run()
	x.net.Advance(wait)
	c.run()
	a := c.stream(1)
	status, err := strconv.Atoi(a.status)
	if err != nil {
		x.t.Fatalf("answer %+v", a)
	}
	var interim []string
	for _, lines := range a.interim {
		_, fields, _ := strings.Cut(lines, " ")
		interim = append(interim, pairs(fields)...)
	}
	return message{status: status, body: string(a.body), fields: pairs(a.fields), trailers: pairs(a.trailers), interim: interim, broken: !a.ended}
}

func pairs(lines string) (list []string) {
	for line := range strings.Lines(lines) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		list = append(list, name, value)
	}
	return list
}

func headerPairs(h http.Header) (list []string) {
	for name, values := range h {
		for _, v := range values {
			list = append(list, strings.ToLower(name), v)
		}
	}
	return list
}

// value is the value of the first field called name.
func (m message) value(name string) string {
	for i := 0; i < len(m.fields); i += 2 {
		if m.fields[i] == name {
			return m.fields[i+1]
		}
	}
	return ""
}

func echo(q message) message {
	return message{status: 200, fields: []string{"x-path", q.path}, body: q.body, length: true}
}

func TestMatrixEcho(t *testing.T) {
	for name, q := range map[string]message{
		"get":           {method: "GET", path: "/a?b=c"},
		"length":        {method: "POST", path: "/", body: "hello", length: true},
		"unknown":       {method: "POST", path: "/", body: "hello"},
		"large":         {method: "PUT", path: "/", body: strings.Repeat("0123456789abcdef", 20<<10), length: true},
		"large unknown": {method: "PUT", path: "/", body: strings.Repeat("0123456789abcdef", 20<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			large := len(q.body) > 60<<10
			serve := echo
			if large { // the scripted endpoint does not follow windows
				serve = func(q message) message { return message{status: 200, body: fmt.Sprint(len(q.body)), length: true} }
			}
			matrix(t, serve, func(t *testing.T, x *cross) {
				a := x.exchange(q, 0)
				want := q.body
				if large {
					want = fmt.Sprint(len(q.body))
				}
				if a.status != 200 || a.body != want || a.broken || len(x.got) != 1 || x.got[0].body != q.body || x.got[0].path != q.path {
					t.Errorf("answer %d, %d bytes, broken %v; the endpoint got %d requests", a.status, len(a.body), a.broken, len(x.got))
				}
			})
		})
	}
}

func TestMatrixTrailers(t *testing.T) {
	serve := func(q message) message {
		return message{status: 200, body: "x", trailers: append([]string{"x-out", "2"}, q.trailers...)}
	}
	matrix(t, serve, func(t *testing.T, x *cross) {
		a := x.exchange(message{method: "POST", path: "/", body: "y", fields: []string{"trailer", "x-in"}, trailers: []string{"x-in", "1"}}, 0)
		if got := strings.Join(a.trailers, " "); a.body != "x" || !strings.Contains(got, "x-out 2") || !strings.Contains(got, "x-in 1") {
			t.Errorf("answer %+v", a)
		}
	})
}

func TestMatrixBodyless(t *testing.T) {
	for _, q := range []struct {
		method string
		status int
	}{{"HEAD", 200}, {"GET", 204}, {"GET", 304}} {
		serve := func(message) message {
			return message{status: q.status, fields: []string{"x-a", "b"}}
		}
		matrix(t, serve, func(t *testing.T, x *cross) {
			if a := x.exchange(message{method: q.method, path: "/"}, 0); a.status != q.status || a.body != "" || a.broken || a.value("x-a") != "b" {
				t.Errorf("%s %d: answer %+v", q.method, q.status, a)
			}
		})
	}
}

func TestMatrixBrokenOff(t *testing.T) {
	serve := func(message) message { return message{status: 200, body: "half", broken: true} }
	matrix(t, serve, func(t *testing.T, x *cross) {
		if a := x.exchange(message{method: "GET", path: "/"}, 0); a.status != 200 || !a.broken {
			t.Errorf("half an answer looks whole: %+v", a)
		}
	})
}

func TestMatrixServerTimeout(t *testing.T) {
	serve := func(message) message { return message{silent: true} }
	matrix(t, serve, func(t *testing.T, x *cross) {
		if a := x.exchange(message{method: "GET", path: "/"}, 31*time.Second); a.status != 504 {
			t.Errorf("answer %+v", a)
		}
	})
}

func TestMatrixPolicies(t *testing.T) {
	matrix(t, echo, func(t *testing.T, x *cross) {
		addr := x.Specs[0].Targets[0].Addr.AddrPort()
		x.route("sticky", "app.test", func(s *routing.RouteSpec) {
			s.Path = "/sticky"
			s.CookieName, s.Policy.CookieAttributes, s.Policy.HSTS = "sticky", "; path=/", "max-age=1"
			x.reach(s)
		}, addr)
		a := x.exchange(message{method: "GET", path: "/sticky", fields: []string{"cookie", "a=b; sticky=x", "x-ssl-client-cn", "admin"}}, 0)
		if !strings.HasPrefix(a.value("set-cookie"), "sticky=") || a.value("strict-transport-security") != "max-age=1" {
			t.Errorf("answer %+v", a)
		}
		q := x.got[len(x.got)-1]
		if q.value("cookie") != "a=b" || q.value("x-ssl-client-cn") != "" || q.value("x-forwarded-proto") != "http" || q.value("x-forwarded-for") == "" {
			t.Errorf("the endpoint got %+v", q)
		}
	})
}
