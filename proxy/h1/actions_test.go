package h1

import (
	"fmt"
	"strings"
	"testing"

	"turnout/internal/bound"
	"turnout/internal/reactor/memnet"
	"turnout/internal/wire/http1"
	"turnout/proxy"
	"turnout/routing"
	"turnout/routing/header"
	"turnout/routing/rewrite"
)

// compiled is a list of header actions: "name: value" sets, "-name" deletes.
func compiled(t *testing.T, side header.Side, list ...string) *header.Actions {
	t.Helper()
	var actions []header.Action
	for _, l := range list {
		if name, ok := strings.CutPrefix(l, "-"); ok {
			actions = append(actions, header.Action{Name: name, Delete: true})
			continue
		}
		name, value, _ := strings.Cut(l, ": ")
		actions = append(actions, header.Action{Name: name, Value: value})
	}
	a, errs := header.Compile(side, actions)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return a
}

func with(t *testing.T, change func(*proxy.Config)) *rig {
	return newRigWith(t, memnet.New(1), rigConfig{worker: change})
}

// TestOrderOfActions: the router's own request actions run first and its response
// actions last; the sticky cookie and X-Forwarded-For come after all of them.
func TestOrderOfActions(t *testing.T) {
	r := with(t, func(c *proxy.Config) {
		c.RequestActions = compiled(t, header.Request, "x-a: router", "x-b: router", "x-seen: %[req.hdr(x-in)]")
		c.ResponseActions = compiled(t, header.Response, "x-a: router", "x-b: router", "x-hsts: %[res.hdr(strict-transport-security)]", "-set-cookie")
	})
	p := r.pod(1, always("HTTP/1.1 200 OK\r\nX-Pod: Mixed\r\nSet-Cookie: pod=1\r\nContent-Length: 0\r\n\r\n"))
	r.route("app", "app.test", func(s *routing.RouteSpec) {
		s.Policy.HSTS = "max-age=1"
		s.CookieName, s.Policy.CookieAttributes = "stick", "; path=/"
		s.Policy.Rewrite = rewrite.Compile("/p", "/v2")
		s.Policy.RequestActions = compiled(t, header.Request, "X-A: route", "x-was: %[req.hdr(x-b)]", "-X-In", "host: pod.test",
			"x-cookie: %[req.hdr(cookie)]", "x-fwd: %[req.hdr(x-forwarded-host)]", "-x-forwarded-for", "x-for: %[req.hdr(x-forwarded-for)]")
		s.Policy.ResponseActions = compiled(t, header.Response, "x-a: route", "x-pod: %[res.hdr(X-Pod),lower]", "x-cookie: %[res.hdr(set-cookie)]")
	}, p.Addr)
	c := r.say("GET /p/x?q=1 HTTP/1.1\r\nHost: App.test:81\r\nX-In: a, b\r\nX-Forwarded-For: 9.9.9.9\r\nCookie: stick=old; c=d\r\n\r\n")
	r.wantStatus(c, 200)
	lines := func(text string, want ...string) {
		t.Helper()
		for _, w := range want {
			not := strings.HasPrefix(w, "!")
			if strings.Contains(text, "\r\n"+strings.TrimPrefix(w, "!")) == not {
				t.Errorf("%q: %q", w, text)
			}
		}
	}
	if got := p.Requests[0]; !strings.HasPrefix(got, "GET /v2/x?q=1 HTTP/1.1\r\n") {
		t.Errorf("the pod got %q", got)
	}
	lines(p.Requests[0], "x-a: route\r\n", "x-b: router\r\n", "x-was: router\r\n", "x-seen: b\r\n", "!x-in", "host: pod.test\r\n", "!host: app.test",
		"x-cookie: c=d\r\n", "x-fwd: app.test:81\r\n", "!x-forwarded-for: 9.9.9.9", "x-for: \r\n", "x-forwarded-host: app.test:81\r\n")
	if !strings.HasSuffix(p.Requests[0], "\r\nx-forwarded-for: "+c.Local().Addr().String()+"\r\n\r\n") {
		t.Errorf("Delete x-forwarded-for: client lines removed; router's own still present: the router's own X-Forwarded-For is not last: %q", p.Requests[0])
	}
	lines(string(c.Received()), "x-a: router\r\n", "x-b: router\r\n", "x-pod: mixed\r\n", "x-cookie: pod=1\r\n", "x-hsts: max-age=1\r\n",
		"strict-transport-security: max-age=1\r\n", "set-cookie: stick=", "!set-cookie: pod")
}

// TestActionsOfReplace: where the router replaces X-Forwarded-For, actions see and may
// change it; with if-none an action decides whether there is one.
func TestActionsOfReplace(t *testing.T) {
	for _, tc := range []struct {
		policy    routing.ForwardedPolicy
		action    string
		has, lack string
	}{
		{routing.ForwardedReplace, "-x-forwarded-for", "x-forwarded-host: app.test\r\n", "x-forwarded-for"},
		{routing.ForwardedReplace, "x-for: %[req.hdr(x-forwarded-for)]", "x-for: 10.", "9.9.9.9"},
		{routing.ForwardedIfNone, "-x-forwarded-for", "x-forwarded-for: 10.", "9.9.9.9"},
		{routing.ForwardedIfNone, "x-forwarded-for: mine", "x-forwarded-for: mine\r\n", "x-forwarded-for: 10."},
		{routing.ForwardedIfNone, "x-a: b", "x-forwarded-for: 9.9.9.9\r\n", "x-forwarded-for: 10."},
		{routing.ForwardedNever, "x-a: b", "x-forwarded-for: 9.9.9.9\r\n", "x-forwarded-for: 10."},
	} {
		r := newRig(t)
		p := r.pod(1, always(ok("")))
		r.route("app", "app.test", func(s *routing.RouteSpec) {
			s.Policy.Forwarded, s.Policy.RequestActions = tc.policy, compiled(t, header.Request, tc.action)
		}, p.Addr)
		c := r.say("GET / HTTP/1.1\r\nHost: app.test\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n")
		client := c.Local().Addr().String()
		got := strings.ReplaceAll(p.Requests[0], client, "10.CLIENT")
		if !strings.Contains(got, tc.has) || strings.Contains(got, tc.lack) {
			t.Errorf("%v with %s: %q", tc.policy, tc.action, got)
		}
	}
}

// TestTooMuchRewriting checks that a message does not grow without bound, and that reading much
// text for a short value ends the request.
func TestTooMuchRewriting(t *testing.T) {
	big := strings.Repeat("x", 3000)
	for name, change := range map[string]func(*routing.RouteSpec){
		"request": func(s *routing.RouteSpec) {
			s.Policy.RequestActions = compiled(t, header.Request, "a: "+strings.Repeat("%[req.hdr(big)]", 3))
		},
		"response": func(s *routing.RouteSpec) {
			s.Policy.ResponseActions = compiled(t, header.Response, "a: "+strings.Repeat("%[res.hdr(big)]", 3))
		},
		"path": func(s *routing.RouteSpec) { s.Policy.Rewrite = rewrite.Compile("", "/"+strings.Repeat(`\\1`, 9)) },
		"converters": func(s *routing.RouteSpec) {
			s.Policy.RequestActions = compiled(t, header.Request, "a: %[req.hdr(big)"+strings.Repeat(",base64", header.MaxConverters)+"]")
		},
		"nothing, of much": func(s *routing.RouteSpec) {
			value := strings.Repeat("%[req.hdr(big)]", header.MaxExpressions)
			s.Policy.RequestActions = compiled(t, header.Request, "big: "+strings.Repeat(",", 6000), "a: "+value, "b: "+value, "c: "+value)
		},
	} {
		counts := new(bound.Counts)
		r := with(t, func(c *proxy.Config) { c.Bounds = counts })
		p := r.pod(1, always("HTTP/1.1 200 OK\r\nBig: "+big+"\r\nContent-Length: 2\r\n\r\nhi"))
		r.route("app", "app.test", change, p.Addr)
		c := r.say("GET /" + strings.Repeat("p", 1000) + " HTTP/1.1\r\nHost: app.test\r\nBig: " + big + "\r\n\r\n")
		status, reason, reached := 500, proxy.ReasonRewrite, bound.HeaderActions
		if name == "nothing, of much" {
			status, reason, reached = 431, proxy.ReasonMatchWork, bound.MatchWork
		}
		r.wantStatus(c, status)
		r.wantReason(reason)
		r.wantQuiet()
		if n := counts.Of(reached); n != 1 {
			t.Errorf("the bound was counted %d times", n)
		}
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

func TestUniqueIDHeader(t *testing.T) {
	id, warnings, err := proxy.NewUniqueID(proxy.UniqueIDConfig{Format: `%{+X}o %ci:%cp_%fi:%fp_%rt:%pid`, Header: "X-Request-Id", PID: 255})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	r := with(t, func(c *proxy.Config) { c.UniqueID = id })
	p := r.pod(1, always(ok("")))
	r.route("app", "app.test", func(s *routing.RouteSpec) {
		s.Policy.RequestActions = compiled(t, header.Request, "x-saw: <%[req.hdr(x-request-id)]>")
	}, p.Addr)
	for i := range 2 {
		c := r.say("GET / HTTP/1.1\r\nHost: app.test\r\nX-Request-ID: mine\r\n\r\n")
		a := c.Local()
		v4 := a.Addr().As4()
		want := fmt.Sprintf("x-request-id: %02X%02X%02X%02X:%04X_C0000201:1F90_%04X:00FF\r\n", v4[0], v4[1], v4[2], v4[3], a.Port(), i+1)
		got := p.Requests[i]
		if !strings.Contains(got, want) || !strings.Contains(got, "x-request-id: mine\r\n") || !strings.Contains(got, "x-saw: <mine>\r\n") {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

func TestCaptures(t *testing.T) {
	captures := &proxy.Captures{
		Request: []proxy.Capture{proxy.NewCapture("X-In", 3), proxy.NewCapture("host", 100)}, Response: []proxy.Capture{proxy.NewCapture("X-Out", 100)},
		Cookie: proxy.Capture{Name: "se", Max: 9},
	}
	r := with(t, func(c *proxy.Config) {
		c.Captures = captures
		c.RequestActions = compiled(t, header.Request, "x-in: changed")
		c.ResponseActions = compiled(t, header.Response, "x-out: changed")
	})
	p := r.pod(1, always("HTTP/1.1 200 OK\r\nX-Out: pod\r\nSet-Cookie: a=session=1\r\nSet-Cookie: session=2; path=/; sex=1\r\nContent-Length: 0\r\n\r\n"))
	r.route("app", "app.test", nil, p.Addr)
	check := func(want ...string) {
		t.Helper()
		rec := r.logged[len(r.logged)-1]
		if rec.Captures != captures || fmt.Sprintf("%q", rec.Captured) != fmt.Sprintf("%q", want) {
			t.Errorf("captured %q, want %q", rec.Captured, want)
		}
	}
	r.say("GET / HTTP/1.1\r\nHost: App.test\r\nX-In: first\r\nX-In: second\r\nCookie: x=session=0; session=12345\r\n\r\n")
	check("sec", "App.test", "pod", "session=1", "session=2")
	r.say("GET / HTTP/1.1\r\nHost: other.test\r\n\r\n")
	check("", "other.test", "", "", "")
}

// TestAdjustCase: names in the configured spelling towards clients always, towards
// endpoints for routes that ask for it; values never change.
func TestAdjustCase(t *testing.T) {
	adjust, err := http1.NewAdjust([]string{"Host", "X-Forwarded-For", "Content-Length", "Transfer-Encoding", "Connection", "Location", "X-Trailer"})
	if err != nil {
		t.Fatal(err)
	}
	for _, on := range []bool{true, false} {
		r := newRigWith(t, memnet.New(1), rigConfig{adjust: adjust})
		p := r.pod(1, always("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nx-other: content-length\r\n\r\n2\r\nhi\r\n0\r\nX-Trailer: t\r\n\r\n"))
		r.route("app", "app.test", func(s *routing.RouteSpec) { s.Policy.AdjustCase = on }, p.Addr)
		c := r.say("POST / HTTP/1.1\r\nhost: app.test\r\ncontent-length: 2\r\nConnection: close\r\n\r\nhi")
		got := string(c.Received())
		for _, want := range []string{"\r\nTransfer-Encoding: chunked\r\n", "\r\nConnection: close\r\n", "x-other: content-length\r\n", "\r\nX-Trailer: t\r\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("the client got %q without %q", got, want)
			}
		}
		for _, bad := range []string{"GET\r\n\r\n", "GET / HTTP/1.1\r\nHost: nowhere.test\r\n\r\n"} { // answers of the router's own
			if got := string(r.say(bad).Received()); !strings.Contains(got, "\r\nContent-Length: ") || !strings.Contains(got, "\r\nConnection: close\r\n") {
				t.Errorf("to %q the client got %q", bad, got)
			}
		}
		sent := p.Requests[0]
		if strings.Contains(sent, "\r\nHost: app.test\r\n") != on || strings.Contains(sent, "\r\nContent-Length: 2\r\n") != on || strings.Contains(sent, "\r\nX-Forwarded-For: ") != on {
			t.Errorf("adjusting %v: the pod got %q", on, sent)
		}
	}
}

// TestClientIdentityKept: ROUTER_MUTUAL_TLS_HEADER_FILTER off.
func TestClientIdentityKept(t *testing.T) {
	r := with(t, func(c *proxy.Config) { c.KeepClientIdentity = true })
	p := r.pod(1, always(ok("")))
	r.route("app", "app.test", nil, p.Addr)
	r.say("GET / HTTP/1.1\r\nHost: app.test\r\nX-SSL-Client-CN: me\r\nProxy: evil\r\n\r\n")
	if got := p.Requests[0]; !strings.Contains(got, "x-ssl-client-cn: me\r\n") || strings.Contains(got, "evil") {
		t.Errorf("the pod got %q", got)
	}
}
