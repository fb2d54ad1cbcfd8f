package proxy

import (
	"net/netip"
	"testing"

	"turnout/internal/wire/protocol"
	"turnout/routing"
	"turnout/routing/cors"
)

// TestCORS: preflights are answered here; other answers say what the rule says, and nothing else.
func TestCORS(t *testing.T) {
	rule, err := cors.New(cors.Config{Origins: []string{"https://*.a.test"}, Methods: []string{"PUT"}, Credentials: true})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(_ *Config, s *routing.RouteSpec) { s.Policy.CORS = rule })
	r.ask("OPTIONS /p", "origin: https://w.a.test", "access-control-request-method: PUT")
	r.want("down head 200 end")
	if got := fieldsOf(&r.head); got != "access-control-allow-origin: https://w.a.test, access-control-allow-credentials: true, vary: Origin, access-control-allow-methods: PUT, access-control-max-age: 5" {
		t.Error(got)
	}
	r.ended(ReasonPreflight, 200)
	r.ask("OPTIONS /p", "origin: https://evil.test", "access-control-request-method: PUT")
	r.want("down head 200 end")
	if got := fieldsOf(&r.head); got != "vary: Origin" {
		t.Error(got)
	}
	r.ended(ReasonPreflight, 200)
	for origin, want := range map[string]string{
		"https://w.a.test":  "access-control-allow-origin: https://w.a.test, access-control-allow-credentials: true, vary: Origin",
		"https://evil.test": "vary: Origin",
		"":                  "vary: Origin",
	} {
		fields := []string{"x: y"}
		if origin != "" {
			fields = append(fields, "origin: "+origin)
		}
		r.ask("OPTIONS /p", fields...)
		r.ready()
		r.answer(200, true, "access-control-allow-origin: *", "access-control-expose-headers: secret")
		if got := fieldsOf(&r.head); got != want {
			t.Errorf("%s: %s, want %s", origin, got, want)
		}
		r.ended(ReasonOK, 200)
	}
}

// TestNoRouteOfAListener is 404, and 12 for gRPC; a page that is configured comes before.
func TestNoRouteOfAListener(t *testing.T) {
	for name, c := range map[string]struct {
		port string
		grpc bool
		page *ErrorPage
		want string
		code int
	}{
		"listener":                 {"p", false, nil, "", 404},
		"listener, gRPC":           {"p", true, nil, "grpc-status: 12", 200},
		"listener, with a page":    {"p", false, &ErrorPage{Status: 410}, "", 410},
		"the pair of Routes":       {"", false, nil, "", 503},
		"the pair of Routes, gRPC": {"", true, nil, "grpc-status: 14", 200},
	} {
		r := newRig(t, func(cfg *Config, _ *routing.RouteSpec) { cfg.NotFound = c.page })
		r.begin(Client{Addr: netip.MustParseAddrPort("192.0.2.7:1"), Arrival: &routing.Arrival{Port: c.port}})
		h, end := request("POST /")
		h.Authority = []byte("other.test")
		if c.grpc {
			h.Spoken, h.Fields = protocol.HTTP2, fieldLines("content-type: application/grpc")
		}
		r.ex.Request(h, end)
		if got := fieldsOf(&r.head, "grpc-status"); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		r.ended(ReasonNoRoute, c.code)
	}
}
