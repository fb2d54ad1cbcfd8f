package conformance

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnout/internal/testkit"
	"turnout/routing"
)

// TestConversationsOverSockets has those conversations that the router ends by itself, and those it leaves open to a client that
// ends them, over real sockets, plain and with TLS: what the in-memory network believes of them is true, and TLS changes none of it.
func TestConversationsOverSockets(t *testing.T) {
	router := testkit.StartRouter(t, 1, nil)
	for file, cases := range readConversations(t) {
		for _, c := range cases {
			if !c.one() || !c.expected("closed", "yes") && !c.expected("closed", "no") || strings.HasPrefix(file, "proxy-") {
				continue
			}
			for _, over := range []string{"TCP", "TLS"} {
				if over == "TLS" && slices.ContainsFunc(c.expects, func(e expectation) bool { return e.key == "status" && strings.HasPrefix(e.value, "302") }) {
					continue // a redirect to TLS
				}
				t.Run(strings.TrimSuffix(file, ".txt")+"/"+c.name+"/"+over, func(t *testing.T) {
					pod := listenPod(t, c.replies)
					app, secure := testkit.Spec("app.test", pod), testkit.Spec("secure.test", pod)
					app.Termination, app.Insecure = routing.TermEdge, routing.InsecureAllow
					secure.Termination, secure.Insecure = routing.TermEdge, routing.InsecureRedirect
					router.Publish(t, app, secure)
					c.runOverSocket(t, dial(t, router, over))
				})
			}
		}
	}
}

// expected reports that a case expects this.
func (c *conversation) expected(key, value string) bool {
	return slices.ContainsFunc(c.expects, func(e expectation) bool { return e.key == key && e.value == value })
}

// conn is a connection whose sending can be ended.
type conn interface {
	net.Conn
	CloseWrite() error
}

// dial connects to one of the router's ports.
func dial(t *testing.T, router *testkit.Router, over string) conn {
	t.Helper()
	var c net.Conn
	var err error
	if over == "TLS" {
		c, err = tls.Dial("tcp", router.SecureAddr.String(), &tls.Config{ServerName: "app.test", InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	} else {
		c, err = net.Dial("tcp", router.Addr.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	return c.(conn)
}

// runOverSocket sends everything at once and reads until the router ends the connection.
func (c *conversation) runOverSocket(t *testing.T, conn conn) {
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var sent []byte
	var err error
	for _, s := range c.steps {
		if s.verb == "eof" {
			err = conn.CloseWrite()
		} else {
			sent = append(sent, s.data...)
			_, err = conn.Write(s.data)
		}
		if err != nil && !tooMuch(len(sent), err) {
			t.Fatal(err)
		}
	}
	if c.expected("closed", "no") {
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := io.ReadAll(conn)
	if tooMuch(len(sent), err) {
		return // the reset took the answer with it; without sockets it is seen
	}
	if err != nil {
		t.Fatalf("the connection did not end well: %v after %q", err, got)
	}
	list := statuses(got, (&client{sent: sent}).methods())
	if len(list) == 0 {
		list = []string{"-"}
	}
	for _, e := range c.expects {
		if e.key == "status" && strings.Join(list, " ") != e.value {
			t.Errorf("want status %s, got %v: %.300q", e.value, list, got)
		}
	}
}

// listenPod is a pod on loopback that answers as the script says.
func listenPod(t *testing.T, replies []reply) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go servePod(ln, replies)
	return ln.Addr().String()
}

// servePod serves one connection after the other until the listener closes.
func servePod(ln net.Listener, replies []reply) {
	p := &pod{replies: replies}
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		p.serve(conn)
	}
}

func (p *pod) serve(conn net.Conn) {
	defer conn.Close()
	var pending []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		pending = append(pending, buf[:n]...)
		for {
			_, whole, err := readRequest(pending)
			if err != nil || whole == 0 {
				break
			}
			r := p.reply()
			p.requests++
			pending = pending[whole:]
			if _, err := conn.Write(r.data); err != nil || r.ends != "" {
				return
			}
		}
	}
}

// discarded is how much the router reads and drops of what follows its last answer. The connection of a client that
// sends more is reset.
const discarded = 256 << 10

// tooMuch reports that err is the reset of a connection on which n bytes were sent, more than the router takes.
func tooMuch(n int, err error) bool {
	return n > discarded && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET))
}
