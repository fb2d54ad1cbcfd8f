package bench

import (
	"net/netip"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/wire/field"
	"turnout/proxy"
	"turnout/proxy/detached"
	"turnout/routing"
	"turnout/routing/header"
)

// instant is a loop without time, with one endpoint that answers at once and a client
// that reads at once: what is left is the pipeline.
type instant struct {
	ex       *proxy.Exchange
	response proxy.Head
	answer   []field.Field
	fields   int // of the last answer as the client got it
}

func (*instant) Now() int64                  { return 1 }
func (*instant) Wall() time.Time             { return time.Time{} }
func (*instant) NewTimer(func()) proxy.Timer { return never{} }
func (*instant) Post(func()) bool            { return false }

type never struct{}

func (never) Reset(time.Duration) {}
func (never) Stop()               {}

// instant as proxy.Upstreams.
func (i *instant) Acquire(_ *balancer.Endpoint, ex *proxy.Exchange, _ bool) proxy.Upstream {
	i.ex = ex
	return (*endpoint)(i)
}
func (*instant) Cancel(*proxy.Exchange) {}

type endpoint instant

func (e *endpoint) Head(*proxy.Head, bool) {
	e.response = proxy.Head{Status: 200, Minor: 1, ContentLength: 0, Fields: append(e.response.Fields[:0], e.answer...)}
	e.ex.ResponseHead(&e.response, true)
}
func (*endpoint) Body([]byte) bool             { return false }
func (*endpoint) End(proxy.Section)            {}
func (*endpoint) Abort(proxy.Fault)            {}
func (*endpoint) Progress() (uint64, int)      { return 0, 0 }
func (*endpoint) Plain() (none detached.Conn)  { return none }
func (*endpoint) Spliced(uint64)               {}
func (*endpoint) MayRefuse() (may, asked bool) { return false, true }
func (*endpoint) Pause()                       {}
func (*endpoint) Resume()                      {}

type reader instant

func (r *reader) Head(s proxy.Section, _ bool)   { r.fields = len(s.Fields()) }
func (*reader) Congested() bool                  { return false }
func (*reader) Plain() (none detached.Conn)      { return none }
func (*reader) Spliced(uint64)                   {}
func (*reader) Informational(proxy.Section)      {}
func (*reader) Body([]byte) bool                 { return false }
func (*reader) End(proxy.Section)                {}
func (*reader) Abort(proxy.Fault)                {}
func (*reader) Progress() (uint64, int)          { return 0, 0 }
func (*reader) Upgrade(*proxy.Head) proxy.Joiner { return nil }
func (*reader) Pause()                           {}
func (*reader) Resume()                          {}

func list(pairs ...string) []field.Field {
	var out []field.Field
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, field.Field{Name: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	return out
}

// BenchmarkPolicies is one exchange in the pipeline alone, without codecs and sockets:
// bare, with no forwarded fields, no cookie and no actions; full, with forwarded fields,
// sticky cookie, two header actions and HSTS. Their difference is the policy step.
func BenchmarkPolicies(b *testing.B) {
	compile := func(side header.Side, name, value string) *header.Actions {
		a, errs := header.Compile(side, []header.Action{{Name: name, Value: value}})
		if len(errs) > 0 {
			b.Fatal(errs)
		}
		return a
	}
	for _, c := range []struct {
		name   string
		policy func(*routing.RouteSpec)
		fields int
	}{
		{"bare", func(s *routing.RouteSpec) { s.Policy.Forwarded = routing.ForwardedNever }, 5},
		{"full", func(s *routing.RouteSpec) {
			p := &s.Policy
			s.CookieName, p.CookieAttributes, p.HSTS = "0faa8e455f815c400bff5790a925c125", "; path=/; HttpOnly; Secure; SameSite=None", "max-age=31536000"
			p.RequestActions = compile(header.Request, "x-agent", "%[req.hdr(user-agent),lower]")
			p.ResponseActions = compile(header.Response, "x-frame-options", "DENY")
		}, 9},
	} {
		b.Run(c.name, func(b *testing.B) {
			i := &instant{answer: list("content-type", "text/html", "date", "Sat, 21 Nov 2026 12:00:00 GMT", "server", "pod", "etag", `"abc"`, "x-pod", "1")}
			store, registry := routing.NewStore(), balancer.NewRegistry()
			spec := routing.RouteSpec{
				RouteKey: routing.RouteKey{Namespace: "ns", Name: "app"}, Host: "app.example.com",
				Policy:  routing.Policy{ServerTimeout: time.Minute, TunnelTimeout: time.Hour, ConnectTimeout: time.Second},
				Targets: []balancer.Target{{ID: "ept:a", Addr: testaddr.Parse("10.0.0.1:80"), Weight: 1}},
			}
			c.policy(&spec)
			table, rejected := routing.Compile(routing.Options{Registry: registry}, store.Load(), []routing.RouteSpec{spec})
			if len(rejected) > 0 {
				b.Fatal(rejected)
			}
			store.Publish(table)
			w, err := proxy.NewWorker(proxy.Config{Store: store, Clock: i, Upstreams: i, Timeouts: proxy.DefaultTimeouts()})
			if err != nil {
				b.Fatal(err)
			}
			client := &proxy.Client{Addr: netip.MustParseAddrPort("192.0.2.1:40000"), Local: netip.MustParseAddrPort("198.51.100.1:80")}
			request := list("host", "app.example.com", "user-agent", "Mozilla/5.0 (X11; Linux x86_64)", "accept", "text/html", "accept-encoding", "gzip, br",
				"accept-language", "en", "cookie", "theme=dark; 0faa8e455f815c400bff5790a925c125=4b1e3c; lang=en", "referer", "http://app.example.com/")
			head := proxy.Head{}
			method, path := []byte("GET"), []byte("/")
			one := func() {
				head = proxy.Head{Method: method, Target: request[0].Value, Authority: request[0].Value, Path: path, Minor: 1, Fields: append(head.Fields[:0], request...)}
				w.Acquire((*reader)(i), client).Request(&head, true)
			}
			one()
			if i.fields != c.fields {
				b.Fatalf("the client got %d fields, want %d", i.fields, c.fields)
			}
			b.ReportAllocs()
			for b.Loop() {
				one()
			}
		})
	}
}
