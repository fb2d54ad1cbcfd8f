package h2

import (
	"slices"
	"strings"
	"testing"

	"turnout/internal/wire/field"
	"turnout/proxy"
	"turnout/routing"
	"turnout/routing/cors"
	"turnout/routing/header"
)

// sectionPolicy is a policy with its effect on fields: those of a pod in each section of a
// response, and those of a client in its head and trailers.
type sectionPolicy struct {
	router func(*proxy.Config)
	route  func(*routing.RouteSpec)
	asked  []string // pairs of the request

	pod   []string // names of fields that the pod sends, with the value "pod"
	final []string // name and value that the client gets in the final head; "" = none
	local []string // the same of a response that the router makes

	http1 bool // the fields are for HTTP/1.1 only

	client   []string // names of fields that the client sends, with the value "client"
	received []string // name and value that the pod gets in the head; "" = none
}

func actions(side header.Side, list ...header.Action) *header.Actions {
	a, errs := header.Compile(side, list)
	if len(errs) > 0 {
		panic(errs[0])
	}
	return a
}

var sectionPolicies = map[string]sectionPolicy{
	"hop-by-hop": {
		http1: true,
		pod:   []string{"keep-alive", "proxy-connection", "upgrade", "http2-settings"}, final: []string{"keep-alive", "", "upgrade", ""},
		client: []string{"proxy-connection", "keep-alive"}, received: []string{"keep-alive", ""},
	},
	"cookies": {
		pod: []string{"set-cookie"}, final: []string{"set-cookie", "pod"},
		client: []string{"cookie", "set-cookie"}, received: []string{"cookie", "client"},
	},
	"sticky cookie": {
		route: func(s *routing.RouteSpec) { s.CookieName, s.Policy.CookieAttributes = "pod", "; path=/" },
		pod:   []string{"set-cookie"},
	},
	"session header": {
		route: func(s *routing.RouteSpec) {
			s.CookieName = "x-session"
			s.Policy.SessionHeader, _ = field.NewCarriedName(s.CookieName)
		},
		pod: []string{"x-session"}, client: []string{"x-session"}, received: []string{"x-session", ""},
	},
	"HSTS": {
		route: func(s *routing.RouteSpec) { s.Policy.HSTS = "max-age=1" },
		pod:   []string{"strict-transport-security"}, final: []string{"strict-transport-security", "max-age=1"},
	},
	"CORS": {
		route: func(s *routing.RouteSpec) {
			rule, err := cors.New(cors.Config{Origins: []string{"https://a.test"}, Credentials: true})
			if err != nil {
				panic(err)
			}
			s.Policy.CORS = rule
		},
		asked: []string{"origin", "https://a.test"},
		pod:   []string{"access-control-allow-origin", "access-control-expose-headers", "access-control-anything"},
		final: []string{"access-control-allow-origin", "https://a.test", "access-control-anything", ""},
		local: []string{"access-control-allow-origin", "https://a.test", "access-control-allow-credentials", "true"},
	},
	"route deletes": {
		route: func(s *routing.RouteSpec) {
			s.Policy.ResponseActions = actions(header.Response, header.Action{Name: "X-Secret", Delete: true})
			s.Policy.RequestActions = actions(header.Request, header.Action{Name: "X-Admin", Delete: true})
		},
		pod: []string{"x-secret"}, final: []string{"x-secret", ""}, client: []string{"x-admin"}, received: []string{"x-admin", ""},
	},
	"route sets": {
		route: func(s *routing.RouteSpec) {
			s.Policy.ResponseActions = actions(header.Response, header.Action{Name: "Link", Value: "router"})
			s.Policy.RequestActions = actions(header.Request, header.Action{Name: "X-User", Value: "router"})
		},
		pod: []string{"link"}, final: []string{"link", "router"}, client: []string{"x-user"}, received: []string{"x-user", "router"},
	},
	"router deletes": {
		router: func(c *proxy.Config) {
			c.ResponseActions = actions(header.Response, header.Action{Name: "X-Powered-By", Delete: true}, header.Action{Name: "Server", Value: "router"})
			c.RequestActions = actions(header.Request, header.Action{Name: "X-Internal", Delete: true})
		},
		pod: []string{"x-powered-by", "server"}, final: []string{"x-powered-by", "", "server", "router"},
		client: []string{"x-internal"}, received: []string{"x-internal", ""},
	},
	"reason": {
		router: func(c *proxy.Config) { c.ReasonHeader = true },
		pod:    []string{"x-turnout-reason"}, final: []string{"x-turnout-reason", ""}, local: []string{"x-turnout-reason", "no-endpoint"},
	},
	"identity": {
		client: []string{"x-ssl-client-cn", "x_ssl_client_cn", "proxy", "x-ssl-client-verify"}, received: []string{"x-ssl-client-cn", "", "proxy", ""},
	},
	"forwarded": {
		route:  func(s *routing.RouteSpec) { s.Policy.Forwarded = routing.ForwardedReplace },
		client: []string{"x-forwarded-for", "x_forwarded_for", "x-forwarded-host", "forwarded"}, received: []string{"x_forwarded_for", "", "x-forwarded-host", "app.test"},
	},
	"loop mark": {client: []string{"cdn-loop"}},
	"TE":        {client: []string{"te", "expect"}},
}

// TestEverySectionPassesThePolicy checks that no field that a policy removes or replaces in a head
// passes in an interim response or in trailers. Fields outside the policy pass in all sections,
// with any protocol on either side.
func TestEverySectionPassesThePolicy(t *testing.T) {
	const kept = "x-kept"
	for name, p := range sectionPolicies {
		t.Run(name, func(t *testing.T) {
			var sent, asked []string
			for _, n := range append(p.pod, kept) {
				sent = append(sent, n, "pod")
			}
			for _, n := range append(p.client, kept) {
				asked = append(asked, n, "client")
			}
			serve := func(message) message {
				return message{status: 200, interim: sent, fields: sent, body: "x", trailers: sent}
			}
			var router []func(*proxy.Config)
			if p.router != nil {
				router = append(router, p.router)
			}
			matrix(t, serve, func(t *testing.T, x *cross) {
				if p.route != nil {
					p.route(&x.Specs[0])
					x.Publish(t)
				}
				if p.http1 && (x.back == "h2" || x.front == "h2") {
					return // such a message is malformed (RFC 9113 section 8.2.2)
				}
				q := message{method: "POST", path: "/", body: "y", fields: append(slices.Clone(p.asked), asked...), trailers: asked}
				if name == "TE" { // in trailers only
					q.fields = nil
				}
				a := x.exchange(q, 0)
				if a.status != 200 || a.body != "x" || a.broken || len(x.got) != 1 {
					t.Fatalf("response %+v, %d requests", a, len(x.got))
				}
				for section, fields := range map[string][]string{"interim": a.interim, "trailers": a.trailers} {
					t.Logf("%s: %q", section, fields)
					if !has(fields, kept, "pod") {
						t.Errorf("%s: %s is lost: %q", section, kept, fields)
					}
					for _, n := range p.pod {
						if has(fields, n, "") {
							t.Errorf("%s: %s got past the policy: %q", section, n, fields)
						}
					}
				}
				wantFields(t, "final", a.fields, append([]string{kept, "pod"}, p.final...))
				got := x.got[0]
				if !has(got.trailers, kept, "client") {
					t.Errorf("request trailers: %s is lost: %q", kept, got.trailers)
				}
				for _, n := range p.client {
					if has(got.trailers, n, "") {
						t.Errorf("request trailers: %s got past the policy: %q", n, got.trailers)
					}
				}
				wantFields(t, "request", got.fields, p.received)
				x.route("none", "app.test", func(s *routing.RouteSpec) {
					s.Path = "/none"
					if p.route != nil {
						p.route(s)
					}
				})
				local := x.exchange(message{method: "GET", path: "/none", fields: p.asked}, 0)
				if local.status != 503 {
					t.Fatalf("response %+v", local)
				}
				wantFields(t, "local", local.fields, p.local)
			}, router...)
		})
	}
}

// has reports whether a list of names and values has a field with this name. Unless value is "",
// the field has this value, too.
func has(fields []string, name, value string) bool {
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == name && (value == "" || fields[i+1] == value) {
			return true
		}
	}
	return false
}

func wantFields(t *testing.T, section string, fields, want []string) {
	t.Helper()
	for i := 0; i < len(want); i += 2 {
		if name, value := want[i], want[i+1]; has(fields, name, "") != (value != "") || value != "" && !has(fields, name, value) {
			t.Errorf("%s: want %s %q, got %s", section, name, value, strings.Join(fields, " "))
		}
	}
}
