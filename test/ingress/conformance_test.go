package ingress

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"

	"turnout/controller"
)

// scenario is one of the 25 of the Kubernetes ingress conformance project: a request, and the Service that answers it, or a status.
type scenario struct{ number, request, by string }

// TestConformance has those that are a request and an answer.
func TestConformance(t *testing.T) {
	for _, feature := range []struct {
		name      string
		spec      string
		services  []string
		scenarios []scenario
	}{
		{"hosts", "rules:\n" + rule("*.foo.com", "Prefix / wildcard-foo-com 8080") + rule("foo.bar.com", "Prefix / foo-bar-com http") + "tls: [{hosts: [foo.bar.com], secretName: conformance-tls}]",
			[]string{"wildcard-foo-com", "foo-bar-com"}, []scenario{
				{"2", "GET https://foo.bar.com/", "foo-bar-com"}, {"3", "GET http://foo.bar.com/", "foo-bar-com"}, {"4", "GET http://subdomain.bar.com/", "404"},
				{"5", "GET http://bar.foo.com/", "wildcard-foo-com"}, {"6", "GET http://baz.bar.foo.com/", "404"}, {"7", "GET http://foo.com/", "404"},
			}},
		{"exact paths", "rules:\n" + rule("exact-path-rules", "Exact /foo foo-exact 8080"), []string{"foo-exact"}, []scenario{
			{"10", "GET http://exact-path-rules/foo", "foo-exact"}, {"11", "GET http://exact-path-rules/foo/", "404"}, {"12", "GET http://exact-path-rules/FOO", "404"}, {"13", "GET http://exact-path-rules/bar", "404"},
		}},
		{"prefixes", "rules:\n" + rule("prefix-path-rules", "Prefix /foo foo-prefix 8080", "Prefix /aaa/bbb aaa-slash-bbb-prefix 8080", "Prefix /aaa aaa-prefix 8080"),
			[]string{"foo-prefix", "aaa-slash-bbb-prefix", "aaa-prefix"}, []scenario{
				{"14", "GET http://prefix-path-rules/foo", "foo-prefix"}, {"15", "GET http://prefix-path-rules/foo/", "foo-prefix"}, {"16", "GET http://prefix-path-rules/FOO", "404"},
				{"17", "GET http://prefix-path-rules/aaa/bbb", "aaa-slash-bbb-prefix"}, {"18", "GET http://prefix-path-rules/aaa/bbb/ccc", "aaa-slash-bbb-prefix"},
				{"19", "GET http://prefix-path-rules/aaa/ccc", "aaa-prefix"}, {"20", "GET http://prefix-path-rules/aaaccc", "404"}, {"21", "GET http://prefix-path-rules/foo/", "foo-prefix"},
			}},
		{"exact before prefix", "rules:\n" + rule("mixed-path-rules", "Prefix /foo foo-prefix 8080", "Exact /foo foo-exact 8080"), []string{"foo-prefix", "foo-exact"}, []scenario{
			{"22", "GET http://mixed-path-rules/foo", "foo-exact"},
		}},
		{"trailing slashes", "rules:\n" + rule("trailing-slash-path-rules", "Prefix /aaa/bbb/ aaa-slash-bbb-slash-prefix 8080", "Exact /foo/ foo-slash-exact 8080"), []string{"aaa-slash-bbb-slash-prefix", "foo-slash-exact"}, []scenario{
			{"23", "GET http://trailing-slash-path-rules/aaa/bbb", "aaa-slash-bbb-slash-prefix"}, {"24", "GET http://trailing-slash-path-rules/aaa/bbb/", "aaa-slash-bbb-slash-prefix"},
			{"25", "GET http://trailing-slash-path-rules/foo", "404"},
		}},
	} {
		t.Run(feature.name, func(t *testing.T) {
			r := start(t, controller.Options{})
			manifests := []string{r.secret("conformance-tls", "foo.bar.com"), ingress("web", feature.spec)}
			for _, name := range feature.services {
				manifests = append(manifests, r.service(name, 1))
			}
			r.apply(manifests...)
			r.wantAddress("web")
			for _, s := range feature.scenarios {
				g := r.ask(s.request)
				if g.by() != s.by {
					t.Errorf("scenario %s, %s: by %s, want %s", s.number, s.request, g.by(), s.by)
				}
				if host := strings.Split(s.request, "/")[2]; g.Service != "" && g.Host != host {
					t.Errorf("scenario %s: the pod sees host %s", s.number, g.Host)
				}
			}
		})
	}
}

// TestConformanceDefaultBackend is scenario 1: without rules everything goes to the default backend as it came.
func TestConformanceDefaultBackend(t *testing.T) {
	r := start(t, controller.Options{})
	r.apply(r.service("echo-service", 1), ingress("web", "defaultBackend: {service: {name: echo-service, port: {number: 8080}}}"))
	r.wantAddress("web")
	for _, c := range []struct{ request, method, path string }{
		{"GET http://my-host/", "GET", "/"}, {"GET http://my-host/sub-path", "GET", "/sub-path"}, {"POST http://some-host/", "POST", "/"},
		{"PUT http:///resource", "PUT", "/resource"}, {"DELETE http://some-host/resource", "DELETE", "/resource"}, {"PATCH http://my-host/resource", "PATCH", "/resource"},
	} {
		g := r.ask(c.request, "User-Agent: conformance/1.0")
		if g.by() != "echo-service" || g.Method != c.method || g.Path != c.path || g.proto != "HTTP/1.1" || g.Proto != "HTTP/1.1" {
			t.Errorf("%s: %+v", c.request, g)
		}
		for _, name := range []string{"Content-Length", "Content-Type", "Date", "Server"} {
			if g.header.Get(name) == "" {
				t.Errorf("%s: no %s in the answer", c.request, name)
			}
		}
		if g.Header.Get("User-Agent") != "conformance/1.0" {
			t.Errorf("%s: the pod sees %v", c.request, g.Header)
		}
	}
}

// TestConformanceCertificate is the rest of scenario 2: the certificate verifies.
func TestConformanceCertificate(t *testing.T) {
	r := start(t, controller.Options{})
	r.apply(r.service("foo-bar-com", 1), r.secret("conformance-tls", "foo.bar.com"),
		ingress("web", "rules:\n"+rule("foo.bar.com", "Prefix / foo-bar-com http")+"tls: [{hosts: [foo.bar.com], secretName: conformance-tls}]"))
	roots := x509.NewCertPool()
	roots.AddCert(r.ca.Cert)
	conn, err := tls.Dial("tcp", r.router.SecureAddr.String(), &tls.Config{ServerName: "foo.bar.com", RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

// TestConformanceClass is scenario 8: an Ingress whose class does not exist gets no address.
func TestConformanceClass(t *testing.T) {
	r := start(t, controller.Options{})
	r.apply(r.service("s", 1), strings.Replace(ingress("web", "defaultBackend: {service: {name: s, port: {number: 8080}}}"), "ingressClassName: turnout", "ingressClassName: some-invalid-class-name", 1),
		ingress("other", "rules:\n"+rule("a.test", "Prefix / s 8080")))
	r.wantAddress("other") // by then that of web would be there
	r.api.mu.Lock()
	defer r.api.mu.Unlock()
	if list := r.api.written["web"]; len(list) != 0 {
		t.Errorf("status %v", list)
	}
}

// TestConformanceLoadBalancing is scenario 9, with three hundred requests instead of one: the algorithm is random, and of a hundred one in four thousand
// leaves a pod out.
func TestConformanceLoadBalancing(t *testing.T) {
	r := start(t, controller.Options{})
	r.apply(r.service("echo-service", 10), ingress("web", "defaultBackend: {service: {name: echo-service, port: {number: 8080}}}"))
	pods := map[string]int{}
	for range 300 {
		g := r.ask("GET http://load-balancing/")
		if g.status != 200 {
			t.Fatalf("status %d", g.status)
		}
		pods[g.Pod]++
	}
	if len(pods) != 10 {
		t.Errorf("pods %s", fmt.Sprint(pods))
	}
}
