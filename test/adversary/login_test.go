package adversary

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testrig"
	"turnout/internal/wire/protocol"
)

// Pods that authenticate connections, and their hosts.
const (
	loginPod1 = 40 + iota
	loginPod2
)

var loginHosts = []string{"login1.test", "login2.test"}

// startLogins starts pods that authenticate connections, clients that log in there, and strangers
// that do not. A pod fails the run when a connection with a login, or with one in progress, carries
// a request of another client. A client fails it when it gets the response of another user.
func (w *world) startLogins() {
	for n := range podsOfKind {
		w.net.Accept(endpoint(loginPod1, n), w.loginPod1)
		w.net.Accept(endpoint(loginPod2, n), w.loginPod2)
	}
	w.addRoute(loginHosts[0], "own", loginPod1, protocol.HTTP1)
	w.addRoute(loginHosts[1], "own", loginPod2, protocol.HTTP2)
	w.publish()
	for range w.some(2, 8) {
		w.net.After(w.pause(), w.startLoginClient)
	}
}

// owned is the pod's state of a connection.
type owned struct {
	w     *world
	login testrig.LoginConn
	first string // client of the first request
	mixed bool   // other clients followed
	owner string // client that the connection belongs to, "" = none yet
}

// step responds to a request of a client. challenge: a response without a user makes the connection
// the client's own.
func (o *owned) step(client, credentials string, challenge bool) (status int, fields, user string) {
	if o.first == "" {
		o.first = client
	}
	o.mixed = o.mixed || client != o.first
	status, fields, user = o.login.Step(credentials)
	if o.owner != "" && client != o.owner {
		o.w.failf("a connection that belongs to %s carries a request of %s, answered as %q", o.owner, client, user)
	}
	if credentials != "" && o.mixed && !challenge {
		o.w.failf("credentials of %s on a connection that %s used as well", client, o.first)
	}
	if credentials != "" || challenge && status == 401 {
		o.owner = client
	}
	return status, fields, user
}

// loginPod1 serves a connection of HTTP/1.1, not always to its end.
func (w *world) loginPod1(peer *memnet.Peer) {
	o := &owned{w: w}
	var h *head1
	r := reader1{onHead: func(got *head1) { h = got }, onBody: func([]byte) {}}
	r.onEnd = func() {
		status, fields, user := o.step(h.fields.Get("X-Client"), h.fields.Get("Authorization"), true)
		ends := w.chance(5)
		w.net.After(time.Duration(w.n(60))*time.Millisecond*time.Duration(w.n(2)), func() {
			switch {
			case w.chance(2):
				peer.Reset()
				return
			case ends:
				fields += "Connection: close\r\n"
			}
			if w.chance(30) {
				peer.Write(fmt.Appendf(nil, "HTTP/1.1 %d X\r\n%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s!\r\n0\r\n\r\n", status, fields, len(user)+1, user))
			} else {
				peer.Write(fmt.Appendf(nil, "HTTP/1.1 %d X\r\n%sContent-Length: %d\r\n\r\n%s!", status, fields, len(user)+1, user))
			}
			if ends {
				peer.Close()
			} else if w.chance(3) {
				w.net.After(w.pause(), peer.Close)
			}
		})
	}
	peer.OnData = func(*memnet.Peer) {
		if err := r.feed(peer.TakeReceived()); err != nil {
			w.failf("a pod cannot read what the router sends: %v", err)
			peer.Reset()
		}
	}
	peer.OnEOF = func(*memnet.Peer) { peer.Close() }
}

// loginPod2 serves a connection of HTTP/2.
func (w *world) loginPod2(peer *memnet.Peer) {
	o := &owned{w: w}
	s := newSide(w, "pod", peer, false)
	s.onHead = func(f *flow, fields []hpack.HeaderField, _ bool) {
		m := fieldsOf(fields)
		status, _, user := o.step(m["x-client"], m["authorization"], false)
		w.net.After(time.Duration(w.n(60))*time.Millisecond, func() {
			if s.gone || f.closed() {
				return
			}
			pairs := []string{":status", fmt.Sprint(status)}
			if status == 401 {
				pairs = append(pairs, "www-authenticate", "Negotiate")
			}
			s.headers(f, false, pairs...)
			s.send(f, []byte(user+"!"), true, nil)
			s.flush()
		})
	}
	s.greet()
}

// loginClient is a client of either protocol, with a name that no other has.
type loginClient struct {
	w        *world
	name     string
	host     string
	stranger bool // it never logs in
	many     bool // it speaks HTTP/2
	peer     *memnet.Peer
	s        *side
	running  int
	next     string // credentials of the next request
}

// loginAnswer is the content of a response.
type loginAnswer struct {
	status    int
	challenge string
	body      string
}

func (w *world) startLoginClient() {
	c := &loginClient{w: w, name: w.token(), host: oneOf(w, loginHosts...), stranger: w.chance(40), many: w.chance(50)}
	c.act()
}

// act sends requests until the run is over.
func (c *loginClient) act() {
	w := c.w
	if w.calm {
		return
	}
	if w.chance(4) && c.peer != nil { // possibly in the middle of a login
		oneOf(w, c.peer.Close, c.peer.Reset)()
		c.gone()
	}
	if c.peer == nil {
		c.connect()
	}
	switch {
	case !c.many && c.running == 0:
		c.ask()
	case c.many && !c.s.gone && !c.s.away:
		for range oneOf(w, 1, 1, 3, 8) {
			if c.running < 40 {
				c.ask()
			}
		}
		c.s.flush()
	}
	w.net.After(time.Duration(10+w.n(400))*time.Millisecond, c.act)
}

// gone drops a connection. Pods see the next one as that of another client.
func (c *loginClient) gone() {
	c.peer, c.s, c.running, c.next, c.name = nil, nil, 0, "", c.w.token()
}

// judge compares a response with the identity of the client, and takes the next step of a login.
func (c *loginClient) judge(name string, a *loginAnswer) {
	w := c.w
	c.running--
	switch a.status {
	case 200:
		if c.stranger || a.body != name+"!" {
			w.failf("%s (stranger: %v) was answered as %q", name, c.stranger, a.body)
		}
		w.answered++
		c.next = ""
	case 401:
		switch {
		case c.stranger:
		case strings.HasPrefix(a.challenge, "NTLM "):
			c.next = testrig.Finish(name, a.challenge)
		default:
			c.next = oneOf(w, testrig.Begin, testrig.Negotiate(name))
		}
	}
}

func (c *loginClient) ask() {
	c.running++
	credentials := c.next
	c.next = ""
	if c.many {
		pairs := []string{":method", "GET", ":scheme", "http", ":authority", c.host, ":path", "/", "x-client", c.name}
		if credentials != "" {
			pairs = append(pairs, "authorization", credentials)
		}
		c.s.open(true, new(loginAnswer), pairs...)
		return
	}
	request := "GET / HTTP/1.1\r\nHost: " + c.host + "\r\nX-Client: " + c.name + "\r\n"
	if credentials != "" {
		request += "Authorization: " + credentials + "\r\n"
	}
	c.peer.Write([]byte(request + "\r\n"))
}

func (c *loginClient) connect() {
	c.peer = c.w.net.Connect(plainPort)
	if c.many {
		c.connect2()
		return
	}
	name, peer, a := c.name, c.peer, new(loginAnswer)
	mine := func(then func()) func(*memnet.Peer) {
		return func(*memnet.Peer) {
			if c.peer == peer {
				then()
			}
		}
	}
	r := reader1{answers: true, method: func() string { return "GET" }, onBody: func(p []byte) { a.body += string(p) }}
	r.onHead = func(h *head1) { *a = loginAnswer{status: h.status, challenge: challengeOf(h.fields)} }
	r.onEnd = func() { c.judge(name, a) }
	peer.OnData = mine(func() {
		if err := r.feed(peer.TakeReceived()); err != nil {
			c.w.failf("%s cannot read its answer: %v", name, err)
			peer.Reset()
			c.gone()
		}
	})
	peer.OnEOF = mine(func() { _ = r.eof(); peer.Close(); c.gone() })
	peer.OnReset = mine(c.gone)
}

func (c *loginClient) connect2() {
	name, s := c.name, newSide(c.w, "client that logs in", c.peer, true)
	c.s = s
	s.onHead = func(f *flow, fields []hpack.HeaderField, end bool) {
		a, m := f.of.(*loginAnswer), fieldsOf(fields)
		_, _ = fmt.Sscan(m[":status"], &a.status)
		a.challenge = m["www-authenticate"]
		if end {
			c.judge(name, a)
		}
	}
	s.onData = func(f *flow, p []byte, end bool) {
		a := f.of.(*loginAnswer)
		if a.body += string(p); end && c.s == s {
			c.judge(name, a)
		}
	}
	s.onReset = func(*flow, http2.ErrCode) { c.running-- }
	s.onGone = func(string) {
		if c.s == s {
			c.gone()
		}
	}
	s.greet()
}

// challengeOf returns the challenge that continues a login, else the first one.
func challengeOf(h http.Header) string {
	list := h.Values("WWW-Authenticate")
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}
