package h2

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/internal/bound"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testrig"
	"turnout/proxy"
)

// loginClient is an HTTP/2 client that logs in.
type loginClient struct {
	*client
	last uint32
}

func (r *rig) loginClient() *loginClient { return &loginClient{client: r.connect()} }

// send begins a request with credentials, "" = without any.
func (c *loginClient) send(credentials string) (id uint32) {
	c.last += 2
	id = c.last - 1
	if credentials == "" {
		c.get(id, "/")
	} else {
		c.get(id, "/", "authorization", credentials)
	}
	return id
}

// ask sends a request and returns its response.
func (c *loginClient) ask(credentials string) *answer {
	id := c.send(credentials)
	c.run()
	return c.stream(id)
}

func (a *answer) challenge() string {
	_, rest, _ := strings.Cut(a.fields, "www-authenticate: ")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// login logs a user in by NTLM.
func (c *loginClient) login(user string) *answer {
	c.ask("")
	return c.ask(testrig.Finish(user, c.ask(testrig.Begin).challenge()))
}

func (a *answer) as(user string) bool { return a.status == "200" && string(a.body) == user && a.ended }

func (r *rig) totals() (t proxy.Totals) {
	r.worker.Totals(&t)
	return t
}

// TestLoginBelongsToItsClient checks that 20 of 20 logins succeed over one HTTP/2 connection each.
// No other client gets a response for one of their users. Other streams of the same client do not
// disturb a login.
func TestLoginBelongsToItsClient(t *testing.T) {
	r := newRig(t)
	one, two := testrig.StartLoginPod(r.net, 1), testrig.StartLoginPod(r.net, 2)
	r.route("app", "app.test", nil, one.Addr, two.Addr)
	stranger := r.loginClient()
	var clients []*loginClient
	for i := range 20 {
		c := r.loginClient()
		clients = append(clients, c)
		user := fmt.Sprintf("user%d", i)
		if got := c.login(user); !got.as(user) {
			t.Fatalf("login %d: %+v", i, got)
		}
		if got := stranger.ask(""); got.status != "401" {
			t.Fatalf("a stranger got %+v", got)
		}
	}
	for i, c := range clients {
		user := fmt.Sprintf("user%d", i)
		var ids []uint32
		for range 10 {
			ids = append(ids, c.send(""))
		}
		c.run()
		for _, id := range ids {
			if got := c.stream(id); !got.as(user) {
				t.Errorf("%s, stream %d: %+v", user, id, got)
			}
		}
	}
	if got := r.totals(); got.Private != 21 {
		t.Errorf("%d private connections", got.Private)
	}
	for _, c := range clients {
		c.peer.Close()
	}
	r.net.Run()
	for range 50 {
		if got := r.loginClient().ask(""); got.status != "401" {
			t.Fatalf("after the logins a stranger got %+v", got)
		}
	}
	r.wantQuiet()
}

// TestLoginsOfOneClient checks that streams of one connection that log in at the same time do so
// one after the other, each as its own user.
func TestLoginsOfOneClient(t *testing.T) {
	r := newRig(t)
	pod := testrig.StartLoginPod(r.net, 1)
	r.route("app", "app.test", nil, pod.Addr)
	c := r.loginClient()
	const logins = 20
	users, ids, done := map[uint32]int{}, []uint32{}, 0
	for i := range logins {
		id := c.send(testrig.Begin)
		users[id], ids = i, append(ids, id)
	}
	for rounds := 0; done < logins && rounds < 10*logins; rounds++ {
		c.run()
		r.net.Advance(time.Millisecond)
		for k := 0; k < len(ids); k++ {
			a, i := c.stream(ids[k]), users[ids[k]]
			if !a.ended {
				continue
			}
			ids = append(ids[:k], ids[k+1:]...)
			k--
			user := fmt.Sprint("user", i)
			switch {
			case a.as(user):
				done++
			case a.status == "401":
				credentials := testrig.Begin
				if challenge := a.challenge(); strings.HasPrefix(challenge, "NTLM TlRMTVNTUAAC") {
					credentials = testrig.Finish(user, challenge)
				}
				id := c.send(credentials)
				users[id], ids = i, append(ids, id)
			default:
				t.Fatalf("%s: %+v", user, a)
			}
		}
	}
	if done != logins {
		t.Errorf("%d of %d logins", done, logins)
	}
	c.peer.Close()
	r.net.Run()
	r.wantQuiet()
	if got := r.totals(); got.Private != 0 {
		t.Errorf("%d private connections after the client", got.Private)
	}
}

// TestLoginChoosesHTTP1 checks that a login uses HTTP/1.1 if the endpoint negotiates the protocol.
// The endpoint may have challenged or refused the request over HTTP/2 before.
func TestLoginChoosesHTTP1(t *testing.T) {
	for name, refuse := range map[string]bool{"challenge": false, "HTTP_1_1_REQUIRED": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			login := &testrig.LoginPod{Addr: netip.MustParseAddrPort("198.51.100.1:443")}
			p2 := &pod2{r: r, addr: login.Addr}
			p2.serve = func(c *podConn, q *podRequest) {
				switch {
				case strings.Contains(q.fields, "authorization"):
					t.Errorf("credentials over HTTP/2: %q", q.fields)
				case refuse:
					_ = c.fr.WriteRSTStream(q.id, http2.ErrCodeHTTP11Required)
				default:
					c.say(q.id, "401", "", "www-authenticate", "NTLM")
				}
			}
			r.net.Accept(login.Addr, func(peer *memnet.Peer) {
				peer.OnData = func(*memnet.Peer) {
					if strings.HasPrefix(string(peer.Received()), "PRI") {
						p2.greet(peer)
					} else {
						login.Accept(peer)
					}
					peer.OnData(peer)
				}
			})
			r.tls.selects = func(netip.AddrPort) (string, error) { return "h2", nil }
			r.route("app", "app.test", reencrypt, login.Addr)
			for i := range 20 {
				c, user := r.loginClient(), fmt.Sprint("user", i)
				if got := c.login(user); !got.as(user) {
					t.Fatalf("login %d: %+v", i, got)
				}
				if got := c.ask(""); !got.as(user) {
					t.Fatalf("the next request of %s: %+v", user, got)
				}
				if got := r.loginClient().ask(""); got.status != "401" {
					t.Fatalf("a stranger got %+v", got)
				}
			}
			r.wantQuiet()
		})
	}
}

// TestLoginAtHTTP2Only checks that each request that authenticates its connection gets a connection
// of its own at an endpoint that speaks HTTP/2 only.
func TestLoginAtHTTP2Only(t *testing.T) {
	r := newRig(t)
	users := map[*podConn]string{}
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		if strings.Contains(q.fields, "authorization: Negotiate") {
			users[c] = "alice"
		}
		c.say(q.id, "200", users[c]+"!")
	})
	r.route("app", "app.test", h2c, p.addr)
	alice, other := r.loginClient(), r.loginClient()
	for range 5 {
		id, id2 := alice.send(testrig.Negotiate("alice")), other.send("")
		id3 := alice.send(testrig.Negotiate("alice"))
		alice.run()
		other.run()
		if !alice.stream(id).as("alice!") || !alice.stream(id3).as("alice!") || !other.stream(id2).as("!") {
			t.Fatalf("%+v, %+v, %+v", alice.stream(id), alice.stream(id3), other.stream(id2))
		}
		if got := alice.ask(""); !got.as("!") {
			t.Fatalf("without credentials: %+v", got)
		}
	}
	if len(p.conns) != 11 {
		t.Errorf("%d connections, want one for each login and one for all other requests", len(p.conns))
	}
	if n := r.pools.Open(); n != 1 {
		t.Errorf("%d connections are open", n)
	}
	r.wantQuiet()
}

// TestLoginsAtHTTP2OnlyAreBounded checks that logins take at most half of an endpoint's
// connections.
func TestLoginsAtHTTP2OnlyAreBounded(t *testing.T) {
	r := newRig(t)
	r.pools.cfg.MaxConns = 4
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		if !strings.Contains(q.fields, "authorization") {
			c.say(q.id, "200", "ok")
		}
	})
	r.route("app", "app.test", h2c, p.addr)
	c := r.loginClient()
	for range 10 {
		c.send(testrig.Negotiate("alice"))
	}
	c.run()
	if got := r.loginClient().ask(""); !got.as("ok") {
		t.Errorf("a request without credentials: %+v", got)
	}
	if n := r.pools.Open(); n != 3 {
		t.Errorf("%d connections", n)
	}
	r.net.Advance(20 * time.Second)
	c.run()
	if got := c.stream(19); got.status != "503" || r.bounds.Of(bound.UpstreamConnections) == 0 {
		t.Errorf("the tenth: %+v, bound reached %d times", got, r.bounds.Of(bound.UpstreamConnections))
	}
}

// TestWaitingLoginsAreNotLookedAtInVain checks the cost of an endpoint event while no further
// connection may become private. The cost does not depend on the number of waiting logins, and
// other requests pass them.
func TestWaitingLoginsAreNotLookedAtInVain(t *testing.T) {
	r := newRig(t)
	r.pools.cfg.MaxConns = 4
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		if !strings.Contains(q.fields, "authorization") {
			c.say(q.id, "200", "ok")
		}
	})
	r.route("app", "app.test", h2c, p.addr)
	var clients []*loginClient
	for range 10 {
		c := r.loginClient()
		for range 50 {
			c.send(testrig.Negotiate("alice"))
		}
		c.run()
		clients = append(clients, c)
	}
	pool := r.pools.byID[r.Servers(0)[0].Endpoint().ID()]
	before := r.bounds.Of(bound.UpstreamConnections)
	pool.serve()
	if n := r.bounds.Of(bound.UpstreamConnections) - before; pool.waiters.count() < 400 || n > 2 {
		t.Errorf("%d logins wait, and %d were looked at", pool.waiters.count(), n)
	}
	if got := r.loginClient().ask(""); !got.as("ok") {
		t.Errorf("a request without credentials: %+v", got)
	}
	r.net.Advance(time.Minute)
	for i, c := range clients {
		c.run()
		if got := c.stream(c.last - 1); got.status != "503" {
			t.Errorf("the last login of client %d: %+v", i, got)
		}
	}
	if n := pool.waiters.count(); n != 0 {
		t.Errorf("%d logins still wait", n)
	}
}

// TestWaitForPrivateConnection checks that streams wait for the busy private connection, at most
// for the connect timeout. A stream that has waited so long, or finds too many waiting, gets
// another connection without a login.
func TestWaitForPrivateConnection(t *testing.T) {
	r := newRigOn(t, memnet.New(1))
	pod := testrig.StartLoginPod(r.net, 1)
	hold := false
	var held []*testrig.LoginConn
	pod.Hold = func(c *testrig.LoginConn, credentials string) bool {
		if hold && c.User != "" {
			held = append(held, c)
			return true
		}
		return false
	}
	r.route("app", "app.test", nil, pod.Addr)
	c := r.loginClient()
	if got := c.login("alice"); !got.as("alice") {
		t.Fatalf("login: %+v", got)
	}
	hold = true
	first := c.send("")
	var ids []uint32
	for range 40 {
		ids = append(ids, c.send(""))
	}
	c.run()
	over := 0
	for _, id := range ids {
		if a := c.stream(id); a.ended {
			if over++; a.status != "401" {
				t.Fatalf("a stream that did not wait: %+v", a)
			}
		}
	}
	if over != 8 {
		t.Errorf("%d streams did not wait, want 8", over)
	}
	hold = false
	held[0].Peer.Write([]byte(testrig.OK("alice")))
	c.run()
	if got := c.stream(first); !got.as("alice") {
		t.Errorf("the first: %+v", got)
	}
	for _, id := range ids[:32] {
		if got := c.stream(id); !got.as("alice") {
			t.Fatalf("a stream that waited: %+v", got)
		}
	}
	hold = true
	c.send("")
	late := c.send("")
	gone := c.send("")
	c.run()
	_ = c.fr.WriteRSTStream(gone, http2.ErrCodeCancel)
	c.run()
	r.net.Advance(r.worker.Timeouts().Connect + time.Second)
	c.run()
	if got := c.stream(late); got.status != "401" || !got.ended {
		t.Errorf("a stream that waited for too long: %+v", got)
	}
	waits := []uint32{c.send(""), c.send(""), c.send("")} // the wait ends with the connection
	c.run()
	held[len(held)-1].Peer.Reset()
	c.run()
	for _, id := range waits {
		if got := c.stream(id); got.status != "401" || !got.ended {
			t.Errorf("a stream that waited for a connection that ended: %+v", got)
		}
	}
	c.peer.Close()
	r.net.Run()
	r.wantQuiet()
	if got := r.totals(); got.Private != 0 {
		t.Errorf("%d private connections after the client", got.Private)
	}
}
