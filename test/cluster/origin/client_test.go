package origin

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// response is what a client gets.
type response struct {
	Code  int
	Proto string
	http.Header
	Body  string
	Cert  *x509.Certificate // of the router, nil without TLS
	Local string            // the client's address and port: which connection it was
}

// from is the pod that answered; "" when the router answered itself.
func (r response) from() string { return r.Get("X-Pod-Name") }

// count is how many lines of what the pod got begin with that.
func (r response) count(prefix string) int {
	n := 0
	for line := range strings.Lines(r.Body) {
		if strings.HasPrefix(strings.ToLower(line), strings.ToLower(prefix)) {
			n++
		}
	}
	return n
}

// heard is the value of a field that the pod got; the last one's.
func (r response) heard(name string) string {
	value := ""
	for line := range strings.Lines(r.Body) {
		if n, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(n, name) {
			value = strings.TrimSpace(v)
		}
	}
	return value
}

// client asks a router, whatever the URL's host is.
type client struct {
	http  *http.Client
	local string // of the newest connection
}

// dials is how a client connects.
type dials struct {
	certificate *tls.Certificate // of the client
	roots       *x509.CertPool   // whom it trusts; nil means everybody
	http2       bool             // it offers HTTP/2
	fresh       bool             // each request has a connection of its own
	max         uint16           // newest version of TLS; 0 means the newest there is
	min         uint16           // the same of the oldest
	proxy       string           // PROXY header, sent before anything else
}

// client makes a client of a router.
func (r *router) client(d dials) *client {
	c := new(client)
	config := &tls.Config{InsecureSkipVerify: d.roots == nil, RootCAs: d.roots, MinVersion: d.min, MaxVersion: d.max}
	if d.certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return d.certificate, nil }
	}
	dial := func(ctx context.Context, network, to string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, r.address(to))
		if err != nil {
			return nil, err
		}
		c.local = conn.LocalAddr().String()
		if d.proxy != "" {
			_, err = io.WriteString(conn, d.proxy)
		}
		return conn, err
	}
	c.http = &http.Client{
		Timeout:       20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives: d.fresh, DialContext: dial, TLSClientConfig: config, ForceAttemptHTTP2: d.http2, DisableCompression: true,
		},
	}
	return c
}

// address is where the router listens for what a URL asks for.
func (r *router) address(to string) string {
	port := r.ports[0]
	switch {
	case strings.HasSuffix(to, ":443"):
		port = r.ports[1]
	case strings.HasSuffix(to, ":1936"):
		port = r.ports[2]
	}
	return net.JoinHostPort(r.ip, fmt.Sprint(port))
}

// get asks for a URL. Fields are NAME: VALUE.
func (c *client) get(url string, fields ...string) (response, error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return response{}, err
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ":")
		if value = strings.TrimSpace(value); strings.EqualFold(name, "Host") {
			req.Host = value
		} else {
			req.Header.Add(name, value)
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	got := response{Code: resp.StatusCode, Proto: resp.Proto, Header: resp.Header, Body: string(body), Local: c.local}
	if resp.TLS != nil {
		got.Cert = resp.TLS.PeerCertificates[0]
	}
	return got, err
}

// get asks for a URL over a connection of its own.
func (r *router) get(url string, fields ...string) (response, error) {
	return r.client(dials{fresh: true}).get(url, fields...)
}

// got asks for a URL and fails the test if there is no answer.
func (n namespace) got(r *router, url string, fields ...string) response {
	n.Helper()
	return must[response](n)(r.get(url, fields...))
}

// answers waits until a URL is answered with a status, and returns that answer.
func (n namespace) answers(r *router, url string, code int, fields ...string) response {
	n.Helper()
	var last response
	eventually(n, url, func() error {
		got, err := r.get(url, fields...)
		if err != nil {
			return err
		}
		if last = got; got.Code != code {
			return fmt.Errorf("status %d because of %q, want %d: %.300s", got.Code, got.Get("X-Turnout-Reason"), code, got.Body)
		}
		return nil
	})
	return last
}

// conversation is a connection on which a test writes what it wants.
type conversation struct {
	testing.TB
	net.Conn
	read *bufio.Reader
}

// dial connects one of the router's ports: 80, 443 or 1936.
func (n namespace) dial(r *router, port string) conversation {
	n.Helper()
	conn := must[net.Conn](n)(net.DialTimeout("tcp", r.address(":"+port), 10*time.Second))
	n.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		n.Fatal(err)
	}
	return conversation{n, conn, bufio.NewReader(conn)}
}

// say writes lines, each with its line break.
func (c conversation) say(lines ...string) {
	c.Helper()
	if _, err := io.WriteString(c, strings.Join(lines, "\r\n")+"\r\n"); err != nil {
		c.Fatal(err)
	}
}

// hear reads the head of an answer, and its body if it has a length.
func (c conversation) hear() (head, body string) {
	c.Helper()
	length := 0
	for {
		line, err := c.read.ReadString('\n')
		if err != nil {
			c.Fatalf("after %q: %v", head, err)
		}
		head += line
		if name, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(name, "Content-Length") {
			_, err := fmt.Sscan(value, &length)
			if err != nil {
				c.Fatal(err)
			}
		}
		if line == "\r\n" {
			break
		}
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(c.read, text); err != nil {
		c.Fatal(err)
	}
	return head, string(text)
}

// ends waits until the router closes the connection, and returns how long that took and what
// came before.
func (c conversation) ends() (time.Duration, string) {
	c.Helper()
	begin := time.Now()
	rest, err := io.ReadAll(c.read)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		c.Fatalf("it is still open after %s", time.Since(begin))
	}
	return time.Since(begin), string(rest)
}

// between says whether a time is within bounds. Upper bounds are generous: the machine is busy.
func between(t testing.TB, what string, got, from, to time.Duration) {
	t.Helper()
	if got < from || got > to {
		t.Errorf("%s after %s, want %s to %s", what, got, from, to)
	}
}
