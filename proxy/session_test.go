package proxy

import (
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/wire/field"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// TestSessions: a client comes to its server again by a cookie or a field, for as long as the route says, and endpoints see none of it.
func TestSessions(t *testing.T) {
	for name, c := range map[string]struct {
		header  bool
		timeout time.Duration
	}{"cookie": {false, 0}, "cookie with a timeout": {false, time.Hour}, "field": {true, 0}, "field with a timeout": {true, time.Hour}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(_ *Config, s *routing.RouteSpec) {
				s.Targets = targets("a", "b", "c", "d")
				s.CookieName, s.Policy.SessionHeader, s.Policy.SessionTimeout = "x-session", carried(c.header), c.timeout
				if !c.header {
					s.Policy.CookieAttributes = "; path=/; Max-Age=3600"
				}
			})
			ask := func(value string) (given, server string) {
				t.Helper()
				line := "cookie: other=1; x-session=" + value
				if c.header {
					line = "x-session: " + value
				}
				r.ask("GET /", line)
				r.ready()
				if got := fieldsOf(&r.sent, "x-session", "cookie"); strings.Contains(got, "session") {
					t.Errorf("the endpoint got %q", got)
				}
				r.answer(200, true, "x-session: of the endpoint")
				if c.header {
					given = strings.TrimPrefix(fieldsOf(&r.head, "x-session"), "x-session: ")
				} else {
					given = strings.TrimPrefix(fieldsOf(&r.head, "set-cookie"), "set-cookie: x-session=")
					if rest, ok := strings.CutSuffix(given, "; path=/; Max-Age=3600"); ok {
						given = rest
					} else if given != "" {
						t.Errorf("cookie %q", given)
					}
				}
				return given, r.ended(ReasonOK, 200).Server
			}
			value, first := ask("nobody")
			if value == "" || strings.Contains(value, ".") != (c.timeout > 0) {
				t.Fatalf("value %q", value)
			}
			r.clock.advance(59 * time.Minute)
			for range 3 {
				if given, server := ask(value); given != "" || server != first {
					t.Errorf("%q leads to %s, not to %s; and %q is given", value, server, first, given)
				}
			}
			r.clock.advance(2 * time.Minute)
			given, _ := ask(value)
			if ended := given != ""; ended != (c.timeout > 0) {
				t.Errorf("after an hour the session has ended: %v", ended)
			}
			if c.timeout == 0 {
				return
			}
			server, _, _ := strings.Cut(value, ".")
			for _, forged := range []string{server, server + ".", server + ".zzzzzzzzzz", server + ".-1", server + ".!", server + ".zzzzzzzzzzzzzzzzzzzzzz"} {
				if given, _ := ask(forged); given == "" {
					t.Errorf("%q is taken", forged)
				}
			}
		})
	}
}

// TestSessionsAllocateNothing.
func TestSessionsAllocateNothing(t *testing.T) {
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) {
		s.CookieName, s.Policy.SessionHeader, s.Policy.SessionTimeout = "x-session", carried(true), time.Hour
	})
	quiet := silent{}
	r.w.cfg.Upstreams, r.w.cfg.AccessLog = &quiet, nil
	lease, _ := r.pool().Pick(balancer.Pick{})
	value := append([]byte(lease.Server().Cookie()), ".zzzz"...)
	lease.Release()
	fields := make([]Field, 0, 16)
	h, _ := request("GET /")
	answer := &Head{Status: 200, Minor: 1, Fields: make([]Field, 0, 16)}
	if n := testing.AllocsPerRun(100, func() {
		h.Fields, h.Path = append(fields[:0], Field{Name: constant("host"), Value: h.Authority}, Field{Name: constant("x-session"), Value: value}), h.Target
		ex := r.w.Acquire(&quiet, &Client{})
		ex.Request(h, true)
		answer.Status, answer.Fields = 200, answer.Fields[:0]
		ex.ResponseHead(answer, true)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestListenersDecideWhatIsMisdirected: on a port with listeners the certificate says nothing of that.
func TestListenersDecideWhatIsMisdirected(t *testing.T) {
	r := newRig(t, edge)
	options := routing.Options{Registry: r.pools}
	table, rejected := routing.CompileRules(options, nil, nil)
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	table, rejections := table.ApplyListeners([]routing.ListenerSpec{{Name: "l", Port: "p", TLS: true}, {Name: "other", Port: "p", TLS: true, Hostname: "second.test"}}, nil)
	if len(rejections) > 0 {
		t.Fatal(rejections)
	}
	rule := r.specs[0].Rule()
	rule.Listener = "l"
	table, rejected = table.ApplyRules([]routing.RuleSpec{rule}, nil)
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	r.store.Publish(table)
	for _, c := range []struct {
		host   string
		reason Reason
		status int
	}{{"app.test", ReasonClientGone, 0}, {"unknown.test", ReasonNoRoute, 404}, {"second.test", ReasonMisdirected, 421}} {
		r.begin(Client{Secure: true, ServerName: "unknown.test", Covered: covers("x.test"), Arrival: &routing.Arrival{Port: "p", Listener: "l"}})
		h, _ := request("GET /")
		h.Spoken, h.Authority = protocol.HTTP2, []byte(c.host)
		r.ex.Request(h, true)
		if r.ex.state == stateConnect {
			r.ex.DownstreamGone(FaultReset)
		}
		if len(r.logged) != 1 || r.logged[0].Reason != c.reason || r.logged[0].Status != c.status {
			t.Errorf("%s: %+v", c.host, r.logged)
		}
		r.logged = nil
	}
}

// carried returns the name of the session's field, or the zero value.
func carried(header bool) (name field.CarriedName) {
	if header {
		name, _ = field.NewCarriedName("X-Session")
	}
	return name
}
