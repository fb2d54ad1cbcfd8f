package upstream

import (
	"net/netip"
	"strings"
	"testing"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testrig"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/proxy/h1"
	"turnout/routing"
)

// asked notes what the connections of both protocols are asked for, and answers nothing but an idle connection where it is
// notified that there is one.
type asked struct {
	calls []string
	idle  map[string]bool
}

type (
	fake1 struct{ *asked }
	fake2 struct{ *asked }
	// taken is an Upstream that sends nothing.
	taken struct{ proxy.Upstream }
)

func (taken) Head(*proxy.Head, bool) {}
func (taken) End(proxy.Section)      {}
func (taken) Abort(proxy.Fault)      {}
func (a *asked) note(call string)    { a.calls = append(a.calls, call) }
func (a *asked) take(call string) proxy.Upstream {
	a.note(call)
	if a.idle[call] {
		return taken{}
	}
	return nil
}

func (f fake1) Acquire(_ *balancer.Endpoint, _ *proxy.Exchange, fresh bool) proxy.Upstream {
	if fresh {
		return f.take("1 fresh")
	}
	return f.take("1 acquire")
}
func (f fake1) Reuse(*balancer.Endpoint, *proxy.Exchange) proxy.Upstream { return f.take("1 reuse") }
func (f fake1) Cancel(*proxy.Exchange)                                   { f.note("1 cancel") }
func (f fake2) Reuse(*balancer.Endpoint, *proxy.Exchange) proxy.Upstream { return f.take("2 reuse") }
func (f fake2) Cancel(*proxy.Exchange)                                   { f.note("2 cancel") }
func (f fake2) Await(_ *balancer.Endpoint, _ *proxy.Exchange, fresh bool) {
	if fresh {
		f.note("2 fresh")
		return
	}
	f.note("2 await")
}

// client is a Downstream of which nothing comes.
type client struct{ proxy.Downstream }

func (client) Head(proxy.Section, bool) {}
func (client) End(proxy.Section)        {}
func (client) Abort(proxy.Fault)        {}
func (client) Pause()                   {}
func (client) Resume()                  {}

// TestChoice: which connections a request is sent on follows from how its endpoint is configured and from what it asks for.
// What is not HTTP/2 asks nothing of HTTP/2.
func TestChoice(t *testing.T) {
	offer := func(p ...protocol.Protocol) *balancer.TLS {
		id, err := balancer.NewTLS(balancer.TLSConfig{ALPN: p})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for _, tt := range []struct {
		name    string
		target  balancer.Target
		upgrade string
		fresh   bool
		idle    string // what there is a connection for
		want    string
	}{
		{name: "HTTP/1.1", want: "1 acquire"},
		{name: "HTTP/1.1, fresh", fresh: true, want: "1 fresh"},
		{name: "TLS without ALPN", target: balancer.Target{TLS: offer()}, want: "1 acquire"},
		{name: "TLS for HTTP/1.1", target: balancer.Target{TLS: offer(protocol.HTTP1)}, want: "1 acquire"},
		{name: "HTTP/2 by prior knowledge", target: balancer.Target{Protocol: protocol.HTTP2}, want: "2 reuse, 2 await"},
		{name: "HTTP/2 that stands", target: balancer.Target{Protocol: protocol.HTTP2}, idle: "2 reuse", want: "2 reuse"},
		{name: "HTTP/2, fresh", target: balancer.Target{Protocol: protocol.HTTP2}, fresh: true, want: "2 fresh"},
		{name: "the endpoint selects", target: balancer.Target{TLS: offer(protocol.HTTP2, protocol.HTTP1)}, want: "2 reuse, 1 reuse, 2 await"},
		{name: "it selected HTTP/2", target: balancer.Target{TLS: offer(protocol.HTTP2, protocol.HTTP1)}, idle: "2 reuse", want: "2 reuse"},
		{name: "it selected HTTP/1.1", target: balancer.Target{TLS: offer(protocol.HTTP2, protocol.HTTP1)}, idle: "1 reuse", want: "2 reuse, 1 reuse"},
		{name: "it selects, fresh", target: balancer.Target{TLS: offer(protocol.HTTP2)}, fresh: true, want: "2 fresh"},
		{name: "upgrade", target: balancer.Target{Protocol: protocol.HTTP2}, upgrade: "websocket", want: "1 acquire"},
		{name: "upgrade where the endpoint selects", target: balancer.Target{TLS: offer(protocol.HTTP2)}, upgrade: "websocket", want: "1 acquire"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := memnet.New(0)
			loop := reactor.NewOn(n, reactor.Config{})
			defer n.Close()
			a := &asked{idle: map[string]bool{tt.idle: true}}
			routes := testrig.NewRoutes()
			routes.Add(t, "a", "app.test", func(s *routing.RouteSpec) {
				s.Targets[0].Protocol, s.Targets[0].TLS = tt.target.Protocol, tt.target.TLS
			}, netip.MustParseAddrPort("10.0.0.1:80"))
			pools := &freshly{Pools: New(fake1{a}, fake2{a}), fresh: tt.fresh}
			worker, err := proxy.NewWorker(proxy.Config{Store: routes.Store, Clock: h1.Clock{Loop: loop}, Upstreams: pools, AccessLog: new(testrig.Log), Timeouts: proxy.DefaultTimeouts()})
			if err != nil {
				t.Fatal(err)
			}
			head := &proxy.Head{Method: []byte("GET"), Target: []byte("/"), Authority: []byte("app.test"), Path: []byte("/"), Minor: 1}
			if tt.upgrade != "" {
				head.Upgrade = []byte(tt.upgrade)
			}
			ex := worker.Acquire(client{}, &proxy.Client{})
			loop.Post(func() { ex.Request(head, true) })
			n.Run()
			if got := strings.Join(a.calls, ", "); got != tt.want {
				t.Fatalf("asked for %q, want %q", got, tt.want)
			}
			if tt.idle != "" {
				return
			}
			a.calls = nil
			loop.Post(func() { ex.DownstreamGone(proxy.FaultReset) })
			n.Run()
			if got := strings.Join(a.calls, ", "); got != "1 cancel, 2 cancel" {
				t.Errorf("a client that goes leaves %q", got)
			}
		})
	}
}

// freshly asks for fresh connections, as the pipeline does after a pooled one has failed.
type freshly struct {
	*Pools
	fresh bool
}

func (f *freshly) Acquire(e *balancer.Endpoint, ex *proxy.Exchange, fresh bool) proxy.Upstream {
	return f.Pools.Acquire(e, ex, fresh || f.fresh)
}
