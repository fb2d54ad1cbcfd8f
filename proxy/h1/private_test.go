package h1

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/testkit/testrig"
	"turnout/proxy"
	"turnout/routing"
	"turnout/routing/header"
)

// ask sends a request with credentials, "" = without any, and returns the response.
func (r *rig) ask(c *memnet.Peer, host, credentials string) string {
	head := "GET / HTTP/1.1\r\nHost: " + host + "\r\n"
	if credentials != "" {
		head += "Authorization: " + credentials + "\r\n"
	}
	c.Write([]byte(head + "\r\n"))
	r.net.Run()
	return string(c.TakeReceived())
}

// challengeOf returns the challenge of a 401.
func challengeOf(response string) string {
	_, rest, _ := strings.Cut(response, "www-authenticate: ")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// login logs a user in by NTLM and returns the last response.
func (r *rig) login(c *memnet.Peer, host, user string) string {
	r.ask(c, host, "")
	challenge := challengeOf(r.ask(c, host, testrig.Begin))
	return r.ask(c, host, testrig.Finish(user, challenge))
}

func answeredAs(response, user string) bool {
	return strings.HasPrefix(response, "HTTP/1.1 200 ") && strings.HasSuffix(response, "\r\n\r\n"+user)
}

// totals returns the sums of the worker.
func (r *rig) totals() (t proxy.Totals) {
	r.worker.Totals(&t)
	return t
}

// wantPrivate checks how many connections are private and what each server counts.
func (r *rig) wantPrivate(kept int64, begun uint64) {
	r.t.Helper()
	t := r.totals()
	if t.Private != kept || t.PrivateBegun != begun {
		r.t.Errorf("%d private connections, %d begun; want %d and %d", t.Private, t.PrivateBegun, kept, begun)
	}
	sum := int64(0)
	for i := range r.Specs {
		for _, s := range r.Servers(i) {
			sum += s.Traffic().Private.Load()
		}
	}
	if sum != kept {
		r.t.Errorf("the servers count %d private connections; want %d", sum, kept)
	}
}

// TestLoginBelongsToItsClient checks that a connection's user is the user of one client. Other
// clients get 401 before, during and after the login.
func TestLoginBelongsToItsClient(t *testing.T) {
	for name, login := range map[string]func(r *rig, c *memnet.Peer, user string) string{
		"NTLM":      func(r *rig, c *memnet.Peer, user string) string { return r.login(c, "a.test", user) },
		"Negotiate": func(r *rig, c *memnet.Peer, user string) string { return r.ask(c, "a.test", testrig.Negotiate(user)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			one, two := testrig.StartLoginPod(r.net, 1), testrig.StartLoginPod(r.net, 2)
			r.route("a", "a.test", nil, one.Addr, two.Addr)
			stranger := r.net.Connect(frontAddr)
			var clients []*memnet.Peer
			for i := range 20 {
				c := r.net.Connect(frontAddr)
				clients = append(clients, c)
				user := fmt.Sprintf("user%d", i)
				if got := login(r, c, user); !answeredAs(got, user) {
					t.Fatalf("login %d: %q", i, got)
				}
				if got := r.ask(stranger, "a.test", ""); !strings.HasPrefix(got, "HTTP/1.1 401 ") {
					t.Fatalf("a stranger got %q", got)
				}
			}
			for i, c := range clients { // each client still has its own user
				if got, user := r.ask(c, "a.test", ""), fmt.Sprintf("user%d", i); !answeredAs(got, user) {
					t.Errorf("the next request of %s: %q", user, got)
				}
			}
			r.wantPrivate(21, r.totals().PrivateBegun) // the stranger was challenged, too
			for _, c := range clients {
				c.Close()
			}
			r.net.Run()
			for range 50 {
				if got := r.ask(r.net.Connect(frontAddr), "a.test", ""); !strings.HasPrefix(got, "HTTP/1.1 401 ") {
					t.Fatalf("after the logins a stranger got %q", got)
				}
			}
			if r.pools.Idle() != 0 {
				t.Errorf("%d connections to pods that authenticate them are in the pool", r.pools.Idle())
			}
			r.wantQuiet()
		})
	}
}

// TestLoginKeepsItsServer checks that a client stays with the server of its login, whatever cookies
// and weights select.
func TestLoginKeepsItsServer(t *testing.T) {
	for name, change := range map[string]func(*routing.RouteSpec){
		"round robin": nil,
		"retries": func(s *routing.RouteSpec) {
			s.Policy.Retry = &routing.RetrySpec{Codes: []int{401, 503}, Attempts: 3}
		},
		"sticky": func(s *routing.RouteSpec) { s.CookieName = "s" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			one, two := testrig.StartLoginPod(r.net, 1), testrig.StartLoginPod(r.net, 2)
			r.route("a", "a.test", change, one.Addr, two.Addr)
			c := r.net.Connect(frontAddr)
			if got := r.login(c, "a.test", "alice"); !answeredAs(got, "alice") {
				t.Fatalf("login: %q", got)
			}
			for range 10 {
				if got := r.ask(c, "a.test", ""); !answeredAs(got, "alice") {
					t.Fatalf("got %q", got)
				}
			}
			if n := len(one.Conns) + len(two.Conns); n != 1 {
				t.Errorf("%d connections were made", n)
			}
		})
	}
}

// TestPrivateConnectionEnds checks that a private connection ends with its client, with its pod, or
// after an idle time. The client then logs in again.
func TestPrivateConnectionEnds(t *testing.T) {
	setUp := func(t *testing.T) (*rig, *testrig.LoginPod, *memnet.Peer) {
		r := newRig(t)
		pod := testrig.StartLoginPod(r.net, 1)
		r.route("a", "a.test", nil, pod.Addr)
		c := r.net.Connect(frontAddr)
		if got := r.login(c, "a.test", "alice"); !answeredAs(got, "alice") {
			t.Fatalf("login: %q", got)
		}
		r.wantPrivate(1, 1)
		return r, pod, c
	}
	again := func(r *rig, c *memnet.Peer) {
		r.t.Helper()
		r.wantPrivate(0, 1)
		if got := r.ask(c, "a.test", ""); !strings.HasPrefix(got, "HTTP/1.1 401 ") {
			r.t.Errorf("got %q", got)
		}
		if got := r.login(c, "a.test", "alice"); !answeredAs(got, "alice") {
			r.t.Errorf("login: %q", got)
		}
		r.wantPrivate(1, 2)
	}
	t.Run("client", func(t *testing.T) {
		r, pod, c := setUp(t)
		c.Close()
		r.net.Run()
		r.wantPrivate(0, 1)
		if !pod.Conns[0].Peer.EOF() && !pod.Conns[0].Peer.ResetSeen() {
			t.Error("the pod's connection is still open")
		}
	})
	t.Run("pod", func(t *testing.T) {
		r, pod, c := setUp(t)
		pod.Conns[0].Peer.Close()
		r.net.Run()
		again(r, c)
	})
	t.Run("unasked bytes", func(t *testing.T) {
		r, pod, c := setUp(t)
		pod.Conns[0].Peer.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
		r.net.Run()
		again(r, c)
	})
	t.Run("idle", func(t *testing.T) {
		r, _, c := setUp(t)
		r.net.Advance(privateIdle - time.Second)
		r.wantPrivate(1, 1)
		r.net.Advance(2 * time.Second)
		again(r, c)
	})
}

// TestStepOfLoginIsNotRepeated checks that an unanswered step of a login is not sent on another
// connection.
func TestStepOfLoginIsNotRepeated(t *testing.T) {
	r := newRig(t)
	pod := r.pod(1, func(n int, request string) string {
		if testrig.Credentials(request) == "" {
			return "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: NTLM\r\nContent-Length: 0\r\n\r\n"
		}
		return ""
	})
	pod.After = func(c *memnet.Peer, n int) {
		if n == 2 {
			c.Close()
		}
	}
	other := r.pod(2, always(ok("other")))
	r.route("a", "a.test", nil, pod.Addr, other.Addr)
	c := r.net.Connect(frontAddr)
	for len(pod.Requests) == 0 {
		r.ask(c, "a.test", "")
	}
	if got := r.ask(c, "a.test", testrig.Begin); !strings.HasPrefix(got, "HTTP/1.1 502 ") {
		t.Errorf("got %q", got)
	}
	if len(pod.Requests) != 2 {
		t.Errorf("the pod got %d requests", len(pod.Requests))
	}
	r.wantPrivate(0, 1)
	r.wantQuiet()
}

// TestCredentialsFromAnywhere checks that credentials make the connection private whether or not
// the response has a challenge.
func TestCredentialsFromAnywhere(t *testing.T) {
	r := newRig(t)
	pod := r.pod(1, always(ok("fine")))
	r.route("a", "a.test", nil, pod.Addr)
	c, other := r.net.Connect(frontAddr), r.net.Connect(frontAddr)
	for _, name := range []string{"Authorization", "Proxy-Authorization", "AUTHORIZATION"} {
		c.Write([]byte("GET / HTTP/1.1\r\nHost: a.test\r\n" + name + ": nTlM x\r\n\r\n"))
		r.net.Run()
	}
	r.wantPrivate(1, 1)
	r.ask(other, "a.test", "")
	if len(pod.Conns) != 2 {
		t.Errorf("%d connections; another client needs its own", len(pod.Conns))
	}
	r.ask(other, "a.test", "Basic bnRsbTpueA==")
	r.ask(other, "a.test", "Bearer negotiate")
	r.wantPrivate(1, 1)
}

// TestCredentialsThatActionsAdd checks that credentials added by a tenant's header action make the
// connection private, too.
func TestCredentialsThatActionsAdd(t *testing.T) {
	r := newRig(t)
	pod := testrig.StartLoginPod(r.net, 1)
	r.route("service", "service.test", func(s *routing.RouteSpec) {
		s.Policy.RequestActions = compiled(t, header.Request, "authorization: "+testrig.Negotiate("service"))
	}, pod.Addr)
	r.route("a", "a.test", nil, pod.Addr) // the same endpoint
	for range 5 {
		if got := r.ask(r.net.Connect(frontAddr), "service.test", ""); !answeredAs(got, "service") {
			t.Fatalf("got %q", got)
		}
		if got := r.ask(r.net.Connect(frontAddr), "a.test", ""); !strings.HasPrefix(got, "HTTP/1.1 401 ") {
			t.Fatalf("a stranger got %q", got)
		}
	}
}

// TestLoginsOfCopies checks that a connection on which a mirrored copy with credentials was sent
// carries no other request.
func TestLoginsOfCopies(t *testing.T) {
	r := newRig(t)
	pod, mirror := testrig.StartLoginPod(r.net, 1), testrig.StartLoginPod(r.net, 2)
	targets := func(id string, p *testrig.LoginPod) []balancer.Target {
		return []balancer.Target{{ID: id, Addr: testaddr.Of(p.Addr), Weight: 1}}
	}
	rule := routing.RuleSpec{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: "a", UID: "a"}, Host: "a.test", Targets: targets("pod", pod),
		Policy:  routing.Policy{ServerTimeout: 30 * time.Second, ConnectTimeout: 5 * time.Second},
		Mirrors: []routing.MirrorSpec{{Key: "m", Targets: targets("mirror", mirror)}},
	}
	table, rejected := routing.CompileRules(routing.Options{Registry: r.Registry}, r.Store.Load(), []routing.RuleSpec{rule})
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	r.Store.Publish(table)
	for i := range 5 {
		if got := r.ask(r.net.Connect(frontAddr), "a.test", testrig.Negotiate("alice")); !answeredAs(got, "alice") {
			t.Fatalf("got %q", got)
		}
		r.ask(r.net.Connect(frontAddr), "a.test", "")
		for k, c := range mirror.Conns {
			if c.Requests != 1 {
				t.Fatalf("round %d: connection %d of the mirror has had %d requests", i, k, c.Requests)
			}
		}
	}
	if n := r.pools.Idle(); n != 0 {
		t.Errorf("%d connections are in the pool", n)
	}
}

// TestLoginOfUpgrade checks that an upgrade uses the client's private connection, which becomes the
// tunnel.
func TestLoginOfUpgrade(t *testing.T) {
	r := newRig(t)
	pod := r.pod(1, func(_ int, request string) string {
		if strings.Contains(request, "upgrade: x") {
			return "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
		}
		return ok("in")
	})
	r.route("a", "a.test", nil, pod.Addr)
	c := r.net.Connect(frontAddr)
	r.ask(c, "a.test", testrig.Negotiate("alice"))
	c.Write([]byte("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"))
	r.net.Run()
	if got := string(c.TakeReceived()); !strings.HasPrefix(got, "HTTP/1.1 101 ") || len(pod.Conns) != 1 {
		t.Fatalf("got %q over %d connections", got, len(pod.Conns))
	}
	r.wantPrivate(0, 1)
	c.Close()
	pod.Conns[0].Close()
	r.net.Run()
	r.wantQuiet()
}

// TestPrivateConnectionsPerClient checks that a client has one private connection per route, for a
// few routes. A login at one more closes the least recently used one, so no route prevents logins
// at others.
func TestPrivateConnectionsPerClient(t *testing.T) {
	r := newRig(t)
	var pods []*testrig.LoginPod
	for i := range 6 {
		pods = append(pods, testrig.StartLoginPod(r.net, i+1))
		r.route(fmt.Sprint("r", i), fmt.Sprintf("r%d.test", i), nil, pods[i].Addr)
	}
	c := r.net.Connect(frontAddr)
	for i := range pods {
		host := fmt.Sprintf("r%d.test", i)
		if got := r.login(c, host, host); !answeredAs(got, host) {
			t.Errorf("login at %s: %q", host, got)
		}
		if got := r.ask(c, "r0.test", ""); !answeredAs(got, "r0.test") {
			t.Errorf("r0.test, which is used all the time: %q", got)
		}
		r.net.Advance(time.Millisecond)
	}
	if n := r.totals().Private; n != 4 || r.pools.Idle() != 0 {
		t.Errorf("%d are private, %d in the pool", n, r.pools.Idle())
	}
	for _, host := range []string{"r0.test", "r3.test", "r4.test", "r5.test"} {
		if got := r.ask(c, host, ""); !answeredAs(got, host) {
			t.Errorf("%s: %q", host, got)
		}
	}
	if got := r.ask(c, "r1.test", ""); !strings.HasPrefix(got, "HTTP/1.1 401 ") {
		t.Errorf("r1.test, which was given up: %q", got)
	}
	c.Close()
	r.net.Run()
	if n := r.totals().Private; n != 0 {
		t.Errorf("%d are kept after the client", n)
	}
	r.wantQuiet()
}

// TestIdleClientsDoNotKeepOthersFromLoggingIn checks that a login gets the connection of the client
// that was idle longest once the namespace has used up its share. That client logs in again.
func TestIdleClientsDoNotKeepOthersFromLoggingIn(t *testing.T) {
	r := newRigWith(t, memnet.New(1), rigConfig{worker: func(c *proxy.Config) { c.PrivateConnections = 8 }})
	pod := testrig.StartLoginPod(r.net, 1)
	r.route("app", "app.test", nil, pod.Addr)
	var clients []*memnet.Peer
	for i := range 20 {
		c, user := r.net.Connect(frontAddr), fmt.Sprint("user", i)
		clients = append(clients, c)
		if got := r.login(c, "app.test", user); !answeredAs(got, user) {
			t.Fatalf("login %d: %q", i, got)
		}
	}
	for i := 16; i < 20; i++ {
		if got, user := r.ask(clients[i], "app.test", ""), fmt.Sprint("user", i); !answeredAs(got, user) {
			t.Errorf("%s: %q", user, got)
		}
	}
	if got := r.login(clients[0], "app.test", "user0"); !answeredAs(got, "user0") {
		t.Errorf("a client that logs in anew: %q", got)
	}
	r.wantPrivate(4, r.totals().PrivateBegun)
	for _, c := range clients {
		c.Close()
	}
	r.net.Run()
	r.wantPrivate(0, r.totals().PrivateBegun)
	r.wantQuiet()
}

// TestPrivateConnectionsOfNamespace checks that a namespace whose pods challenge all clients leaves
// private connections to others.
func TestPrivateConnectionsOfNamespace(t *testing.T) {
	r := newRigWith(t, memnet.New(1), rigConfig{worker: func(c *proxy.Config) { c.PrivateConnections = 4 }})
	greedy, modest := testrig.StartLoginPod(r.net, 1), testrig.StartLoginPod(r.net, 2)
	r.route("greedy", "greedy.test", nil, greedy.Addr)
	r.route("modest", "modest.test", func(s *routing.RouteSpec) { s.Namespace = "modest" }, modest.Addr)
	for range 10 {
		if got := r.ask(r.net.Connect(frontAddr), "greedy.test", ""); !strings.HasPrefix(got, "HTTP/1.1 401 ") {
			t.Fatalf("got %q", got)
		}
	}
	if n := r.totals().Private; n != 2 {
		t.Errorf("one namespace has %d of 4", n)
	}
	if got := r.login(r.net.Connect(frontAddr), "modest.test", "alice"); !answeredAs(got, "alice") {
		t.Errorf("login of another namespace: %q", got)
	}
}
