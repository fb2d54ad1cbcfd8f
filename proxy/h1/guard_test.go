package h1

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"turnout/internal/ratelimit"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

// allow restricts a route to the given prefixes.
func allow(list ...string) func(*routing.RouteSpec) {
	return func(s *routing.RouteSpec) {
		var prefixes []netip.Prefix
		for _, p := range list {
			prefixes = append(prefixes, netip.MustParsePrefix(p))
		}
		s.Policy.Allow = routing.NewAllowList(prefixes)
	}
}

func rates(l ratelimit.Limits) func(*routing.RouteSpec) {
	return func(s *routing.RouteSpec) { s.Policy.Rates = l }
}

func limit(n int) ratelimit.Limit { return ratelimit.Limit{On: true, N: n} }

// wantRefused checks that the client's connection ended without a byte more than had.
func (r *rig) wantRefused(c *memnet.Peer, had int, reason proxy.Reason) {
	r.t.Helper()
	if !c.EOF() && !c.ResetSeen() || c.Total() != had {
		r.t.Errorf("ended %v, %d bytes, want %d: %q", c.EOF(), c.Total(), had, c.Received())
	}
	r.wantReason(reason)
	if last := r.logged[len(r.logged)-1]; last.Status != 0 || last.Route == "" {
		r.t.Errorf("logged %+v", last)
	}
}

// The client's address is 127.0.0.1.
func TestAllowList(t *testing.T) {
	for name, tc := range map[string]struct {
		list []string
		in   bool
	}{
		"allow-list 10.0.0.1, GET over HTTP: connection closed, zero bytes": {[]string{"10.0.0.1/32"}, false},
		"allow-list 127.0.0.0/8, GET: 200":                                  {[]string{"127.0.0.0/8"}, true},
		"several":                                                           {[]string{"10.0.0.0/8", "127.0.0.1/32", "2001:db8::/32"}, true},
		"nobody":                                                            {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod(1, always(ok("x")))
			r.route("app", "app.test", allow(tc.list...), p.Addr)
			c := r.say(get)
			if tc.in {
				r.wantStatus(c, 200)
			} else {
				r.wantRefused(c, 0, proxy.ReasonDenied)
				if len(p.Requests) != 0 {
					t.Errorf("the pod got %q", p.Requests)
				}
			}
			r.wantQuiet()
		})
	}
	t.Run("allow-list 10.0.0.1, edge with policy Redirect, GET over HTTP: 302: a redirect comes first", func(t *testing.T) {
		r := newRig(t)
		r.route("app", "app.test", func(s *routing.RouteSpec) {
			s.Termination, s.Insecure = routing.TermEdge, routing.InsecureRedirect
			allow("10.0.0.1/32")(s)
		})
		r.wantStatus(r.say(get), 302)
	})
	t.Run("a body on its way, and a request after an answer", func(t *testing.T) {
		r := newRig(t)
		p := r.pod(1, always(ok("x")))
		r.route("app", "app.test", nil, p.Addr)
		r.route("closed", "closed.test", allow("10.0.0.1/32"), p.Addr)
		c := r.say(get)
		had := c.Total()
		c.Write([]byte("POST / HTTP/1.1\r\nHost: closed.test\r\nContent-Length: 10\r\n\r\n12345"))
		r.net.Run()
		c.Write([]byte("67890" + get))
		r.net.Run()
		r.wantRefused(c, had, proxy.ReasonDenied)
		if len(p.Requests) != 1 {
			t.Errorf("the pod got %q", p.Requests)
		}
		r.wantQuiet()
	})
}

func TestRateLimits(t *testing.T) {
	six := func(r *rig) (through int) {
		for range 6 {
			if c := r.say(get); strings.HasPrefix(string(c.Received()), "HTTP/1.1 200") {
				through++
			} else {
				r.wantRefused(c, 0, proxy.ReasonRateLimited)
			}
		}
		r.wantQuiet()
		return through
	}
	for name, tc := range map[string]struct {
		l    ratelimit.Limits
		want int
	}{
		"rate-tcp 3: six quick requests: 200 200 then closed":      {ratelimit.Limits{TCP: limit(3)}, 2},
		"rate-http 3: six quick requests: 200 200 200 then closed": {ratelimit.Limits{HTTP: limit(3)}, 3},
		"zero": {ratelimit.Limits{Concurrent: limit(0)}, 0},
		"off":  {ratelimit.Limits{}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod(1, always(ok("x")))
			r.route("app", "app.test", rates(tc.l), p.Addr)
			if got := six(r); got != tc.want || len(p.Requests) != tc.want {
				t.Errorf("%d of six got through, %d reached the pod, want %d", got, len(p.Requests), tc.want)
			}
		})
	}
	t.Run("requests of one connection count, and it ends", func(t *testing.T) {
		r := newRig(t)
		p := r.pod(1, always(ok("x")))
		r.route("app", "app.test", rates(ratelimit.Limits{TCP: limit(3)}), p.Addr)
		c := r.say(get + get)
		had := c.Total()
		c.Write([]byte(get))
		r.net.Run()
		r.wantRefused(c, had, proxy.ReasonRateLimited)
		r.net.Advance(6 * time.Second)
		r.wantStatus(r.say(get), 200)
	})
	t.Run("in flight", func(t *testing.T) {
		r := newRig(t)
		silent := r.pod(1, always(""))
		r.route("app", "app.test", rates(ratelimit.Limits{Concurrent: limit(3)}), silent.Addr)
		first, second := r.say(get), r.say(get)
		r.wantRefused(r.say(get), 0, proxy.ReasonRateLimited)
		first.Reset()
		r.net.Run()
		if third := r.say(get); third.EOF() || second.EOF() {
			t.Error("one left, the next one was refused")
		}
		r.net.Advance(40 * time.Second) // all time out
		r.wantQuiet()
		if again := r.say(get); again.EOF() {
			t.Error("what timed out still counts")
		}
	})
}

func TestRatesOutliveTables(t *testing.T) {
	r := newRig(t)
	p := r.pod(1, always(ok("x")))
	r.route("app", "app.test", rates(ratelimit.Limits{TCP: limit(3)}), p.Addr)
	r.say(get)
	r.say(get)
	r.route("other", "other.test", nil, p.Addr) // another table
	r.Specs[0].Policy.ServerTimeout++           // another Route object
	r.route("third", "third.test", nil, p.Addr)
	r.wantRefused(r.say(get), 0, proxy.ReasonRateLimited)
}
