package soak

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// lane is a connection of HTTP/1.1 that is opened when it is needed.
type lane struct {
	s    *scene
	host string
	cfg  *tls.Config // nil = plain HTTP
	most int         // requests on a connection

	c    net.Conn
	r    *bufio.Reader
	used int
}

func (l *lane) drop() {
	if l.c != nil {
		_ = l.c.Close()
		l.c = nil
	}
}

// answer is what is of interest of the head of an answer.
type answer struct {
	status  int
	cookies []*http.Cookie
}

// ask sends a request, without its Host and the end of its head, and writes the body of the answer to sink. An answer other than
// 200 is an error; it is returned even so.
func (l *lane) ask(head string, body []byte, sink io.Writer) (a answer, err error) {
	if l.c == nil {
		if l.c, err = dial(l.s.router.HTTP, l.s.router.HTTPS, l.cfg != nil, l.cfg); err != nil {
			l.c = nil
			return a, err
		}
		l.r, l.used = bufio.NewReader(l.c), 0
	}
	l.used++
	_ = l.c.SetDeadline(time.Now().Add(patience))
	if _, err = l.c.Write(append([]byte(head+"Host: "+l.host+"\r\n\r\n"), body...)); err != nil {
		return a, fmt.Errorf("cannot send request %d of a connection: %w", l.used, err)
	}
	resp, err := http.ReadResponse(l.r, nil)
	if err == nil {
		_, err = io.Copy(sink, resp.Body)
		_ = resp.Body.Close()
	}
	if err != nil {
		return a, fmt.Errorf("cannot read answer %d of a connection: %w", l.used, err)
	}
	if l.used >= l.most || resp.Close {
		l.drop()
	}
	return answer{resp.StatusCode, resp.Cookies()}, expect(resp)
}

// page asks for the name of a pod.
func (l *lane) page(fields string) (a answer, pod string, err error) {
	var name strings.Builder
	a, err = l.ask("GET / HTTP/1.1\r\n"+fields, nil, &name)
	if err == nil {
		_, err = netip.ParseAddrPort(name.String())
	}
	return a, name.String(), err
}

// pages asks for pages.
type pages struct{ lane }

func (p *pages) turn() (int, error) {
	fields := ""
	if p.most == 1 {
		fields = "Connection: close\r\n"
	}
	_, _, err := p.page(fields)
	return 1, err
}

// secure asks for pages over TLS, and resumes its session with each connection after the first.
type secure struct {
	lane
	resumed int64 // since takeResumed
}

func newSecure(most int) func(*scene) client {
	return func(s *scene) client {
		return &secure{lane: lane{s: s, host: hostWeb, most: most, cfg: clientTLS(hostWeb, tls.NewLRUClientSessionCache(1))}}
	}
}

func (p *secure) turn() (int, error) {
	if p.c == nil {
		c, err := dial("", p.s.router.HTTPS, true, p.cfg)
		if err != nil {
			return 1, err
		}
		p.c, p.r, p.used = c, bufio.NewReader(c), 0
		if c.(*tls.Conn).ConnectionState().DidResume {
			p.resumed++
		}
	}
	_, _, err := p.page("")
	return 1, err
}

func (p *secure) takeResumed() int64 {
	n := p.resumed
	p.resumed = 0
	return n
}

// posts sends bodies, with Content-Length and chunked in turn.
type posts struct {
	lane
	turns int
}

// A body and its chunks, in bytes.
const (
	bodySize  = 96 << 10
	chunkSize = 10_000
)

func (p *posts) turn() (int, error) {
	body := bytes.Repeat([]byte{byte(p.turns)}, bodySize-p.turns%1000)
	want := fmt.Sprintf("%d %08x", len(body), crc32.ChecksumIEEE(body))
	head := fmt.Sprintf("POST /echo HTTP/1.1\r\nContent-Length: %d\r\n", len(body))
	if p.turns++; p.turns%2 == 0 {
		head, body = "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", chunked(body)
	}
	var got strings.Builder
	_, err := p.ask(head, body, &got)
	if err == nil && got.String() != want {
		err = fmt.Errorf("the pod got %s, want %s", got.String(), want)
	}
	return 1, err
}

func chunked(body []byte) []byte {
	var b bytes.Buffer
	for len(body) > 0 {
		n := min(chunkSize, len(body))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	b.WriteString("0\r\n\r\n")
	return b.Bytes()
}

// downloads asks for what is large.
type downloads struct{ lane }

// length counts what is written.
type length int64

func (l *length) Write(p []byte) (int, error) {
	*l += length(len(p))
	return len(p), nil
}

func (d *downloads) turn() (int, error) {
	var n length
	_, err := d.ask("GET /large HTTP/1.1\r\n", nil, &n)
	if err == nil && n != largeSize {
		err = fmt.Errorf("a download has %d bytes, want %d", n, largeSize)
	}
	return 1, err
}

// sticky has sessions that stay with a pod as long as that serves.
type sticky struct {
	lane
	cookie, pod string
	requests    int // of the session
}

// sessionSize is the number of requests of a session.
const sessionSize = 200

func (k *sticky) turn() (int, error) {
	if k.requests == sessionSize {
		k.requests, k.cookie = 0, ""
	}
	k.requests++
	fields := ""
	if k.cookie != "" {
		fields = "Cookie: " + k.cookie + "\r\n"
	}
	a, name, err := k.page(fields)
	if err != nil {
		return 1, err
	}
	before := k.pod
	k.pod = name
	switch {
	case k.cookie != "" && name != before && k.s.serves(before):
		return 1, fmt.Errorf("the cookie of pod %s led to %s", before, name)
	case len(a.cookies) == 1:
		k.cookie = a.cookies[0].Name + "=" + a.cookies[0].Value
	case k.cookie == "" || name != before:
		return 1, fmt.Errorf("%d cookies came with pod %s", len(a.cookies), name)
	}
	return 1, nil
}
