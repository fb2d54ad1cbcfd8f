package ingress

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"turnout/controller"
	"turnout/controller/source"
)

// TestPaths: paths are compared as they come, element by element; the port of a Host field is nothing to it.
func TestPaths(t *testing.T) {
	r := start(t, controller.Options{})
	r.apply(r.service("s", 1), r.service("deep", 1), r.service("exact", 1), r.service("any", 1),
		ingress("web", "rules:\n"+rule("a.test", "Prefix /foo s 8080", "Prefix /foo/bar/ deep 8080", "Exact /foo/bar exact 8080", "Exact /%41 exact 8080")+
			"- host: i.test\n  http: {paths: [{pathType: ImplementationSpecific, backend: {service: {name: any, port: {number: 8080}}}}, "+path("ImplementationSpecific /foo s 8080")+"]}"))
	for request, want := range map[string]string{
		"GET http://a.test/foo": "s", "GET http://a.test/foo?x=/y": "s", "GET http://a.test/foo/x": "s", "GET http://a.test/foobar": "404", "GET http://a.test/%66oo": "404",
		"GET http://a.test//foo": "404", "GET http://a.test/foo//bar": "s", "GET http://a.test/foo/bar": "exact", "GET http://a.test/foo/bar/": "deep", "GET http://a.test/foo/bar/x": "deep",
		"GET http://a.test/foo%2Fbar": "404", "GET http://a.test/%41": "exact", "GET http://a.test/A": "404", "GET http://A.Test:8080/foo": "s", "GET http://a.test./foo": "s",
		"GET http://i.test/": "any", "GET http://i.test/foobar": "any", "GET http://i.test/foo/bar": "s",
	} {
		r.wantBy(request, want)
	}
}

// TestHosts: hosts that are named before wildcards, those before rules for any host; what a named host does not have is its own default backend's.
func TestHosts(t *testing.T) {
	r := start(t, controller.Options{})
	r.apply(r.service("named", 1), r.service("wild", 1), r.service("any", 1), r.service("default", 1), r.service("own", 1),
		ingress("named", "defaultBackend: {service: {name: own, port: {name: http}}}\nrules:\n"+rule("a.w.test", "Prefix /a named 8080")+"- host: bare.test"),
		ingress("wild", "rules:\n"+rule("*.w.test", "Prefix / wild 8080")),
		ingress("any", "rules:\n"+rule("", "Prefix /any any 8080")),
		ingress("z-default", "defaultBackend: {service: {name: default, port: {name: http}}}"),
		ingress("poor", "rules:\n"+rule("poor.test", "Prefix /p named 8080")))
	for request, want := range map[string]string{
		"GET http://a.w.test/a": "named", "GET http://a.w.test/x": "own", "GET http://b.w.test/a": "wild", "GET http://c.b.w.test/": "own", "GET http://bare.test/": "own",
		"GET http://else.test/any": "any", "GET http://else.test/": "own", "GET http:///any/x": "any", "GET http://poor.test/p": "named", "GET http://poor.test/any": "404",
	} {
		r.wantBy(request, want)
	}
	r.wantEvent("z-default HostAlreadyClaimed: any host, default backend is not served: Ingress named already exposes *")
	conn, err := net.Dial("tcp", r.router.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET /any HTTP/1.0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if g := r.answer(conn, "GET", "HTTP/1.0 without a host"); g.by() != "any" {
		t.Errorf("HTTP/1.0 without a host: by %s", g.by())
	}
}

// TestTLSChoice: the certificate is by the server name, the rule by the host; hosts need no entry in spec.tls, and entries no rule of their own.
func TestTLSChoice(t *testing.T) {
	r := start(t, controller.Options{})
	r.apply(r.service("a", 1), r.service("w", 1), r.secret("a", "a.test"), r.secret("wild", "*.w.test"), r.secret("own", "own.w.test"),
		ingress("web", "rules:\n"+rule("a.test", "Prefix / a 8080")+rule("*.w.test", "Prefix / w 8080")+rule("plain.test", "Prefix / a 8080")+
			"tls: [{hosts: [a.test], secretName: a}, {hosts: ['*.w.test'], secretName: wild}, {hosts: [own.w.test], secretName: own}]"))
	for name, want := range map[string]string{"a.test": "a.test", "x.w.test": "*.w.test", "own.w.test": "own.w.test", "plain.test": "localhost", "else.test": "localhost"} {
		if got := r.certificate(name); got != want {
			t.Errorf("%s: certificate for %s, want %s", name, got, want)
		}
	}
	for _, scheme := range []string{"http", "https"} {
		r.wantBy("GET "+scheme+"://a.test/", "a")
		r.wantBy("GET "+scheme+"://own.w.test/", "w")
		r.wantBy("GET "+scheme+"://plain.test/", "a")
	}
	r.apply(r.secret("a", "a.test", "renewed.test"))
	if got := r.certificate("a.test"); got != "a.test renewed.test" {
		t.Errorf("after its renewal: certificate for %s", got)
	}
}

// TestSecretsOfOthers: a Secret of another namespace is never used, whatever its name; what is missing costs the host its certificate alone.
func TestSecretsOfOthers(t *testing.T) {
	r := start(t, controller.Options{})
	foreign := strings.Replace(r.secret("own", "a.test"), "{name: own}", "{namespace: other, name: own}", 1)
	r.apply(r.service("s", 1), foreign, r.secret("good", "b.test"),
		ingress("web", "rules:\n"+rule("a.test", "Prefix / s 8080")+rule("b.test", "Prefix / s 8080")+"tls: [{hosts: [a.test], secretName: own}, {hosts: [b.test], secretName: good}, {hosts: [c.test], secretName: other/own}]"))
	if a, b := r.certificate("a.test"), r.certificate("b.test"); a != "localhost" || b != "b.test" {
		t.Errorf("certificates for %s and %s", a, b)
	}
	r.wantBy("GET https://a.test/", "s")
	r.wantEvent("web CertificateNotUsed: the default certificate is served instead of that of Secret own: it does not exist")
}

// TestPorts: a Service's port leads by its name to the pods, each with a port of its own; what is missing is answered with 503, as are pods that are not
// ready.
func TestPorts(t *testing.T) {
	r := start(t, controller.Options{})
	r.apply(r.service("s", 3), r.service("empty", 0), ingress("web", "rules:\n"+rule("a.test",
		"Prefix /name s http", "Prefix /number s 8080", "Prefix /other s other", "Prefix /unknown s 81", "Prefix /empty empty http", "Prefix /missing missing http")+
		"- host: b.test\n  http: {paths: [{pathType: Prefix, path: /, backend: {resource: {apiGroup: x.test, kind: Bucket, name: b}}}]}"))
	for request, want := range map[string]string{
		"GET http://a.test/name": "s", "GET http://a.test/number": "s", "GET http://a.test/other": "503", "GET http://a.test/unknown": "503", "GET http://a.test/empty": "503",
		"GET http://a.test/missing": "503", "GET http://b.test/": "503", "GET http://a.test/": "404",
	} {
		r.wantBy(request, want)
	}
	for _, event := range []string{"ServicePortNotFound: the Service s has no port 81", "ServiceNotFound: the Service missing does not exist", "UnsupportedBackend: the backend of spec.rules[1].http.paths[0] is a Bucket"} {
		r.wantEvent("web " + event)
	}
	pods := map[string]bool{}
	for range 100 {
		g := r.ask("GET http://a.test/name")
		pods[g.Pod] = true
	}
	if len(pods) != 3 {
		t.Errorf("pods %v", pods)
	}
	r.apply(r.service("missing", 1))
	r.wantBy("GET http://a.test/missing", "missing")
}

// TestStatusFollowsClass: an Ingress that is served no more has no address.
func TestStatusFollowsClass(t *testing.T) {
	r := start(t, controller.Options{})
	r.apply(r.service("s", 1), ingress("web", "rules:\n"+rule("a.test", "Prefix / s 8080")))
	r.wantAddress("web")
	r.wantBy("GET http://a.test/", "s")
	r.apply(strings.Replace(class, "turnout.router/ingress", "example.com/ingress", 1))
	r.wantBy("GET http://a.test/", "404")
	r.until("no address", func(a *api) bool { list, ok := a.written["web"]; return ok && len(list) == 0 })
	r.apply(class)
	r.wantBy("GET http://a.test/", "s")
	r.remove(source.Ingress, "web")
	r.wantBy("GET http://a.test/", "404")
}

// TestAnnotationsOfRoutes: they do on an Ingress what they do on a Route.
func TestAnnotationsOfRoutes(t *testing.T) {
	const prefix = "haproxy.router.openshift.io/"
	r := start(t, controller.Options{})
	on := func(name string, annotations ...string) string {
		return ingress(name, "rules:\n"+rule(name+".test", "Prefix /api s 8080")+"tls: [{hosts: ["+name+".test], secretName: t}]", annotations...)
	}
	r.apply(r.service("s", 1), r.secret("t", "x.test"), on("plain"), on("rewrite", prefix+"rewrite-target", "/v2"), on("hsts", prefix+"hsts_header", "max-age=60"),
		on("cookieless", prefix+"disable_cookies", "true"), on("never", prefix+"set-forwarded-headers", "never"), on("named", "router.openshift.io/cookie_name", "mine"),
		on("closed", prefix+"ip_allowlist", "10.1.2.3"), on("redirect", "turnout.router/insecure-edge-termination-policy", "Redirect"),
		on("nginx", "nginx.ingress.kubernetes.io/auth-url", "http://auth.test"))
	if g := r.ask("GET http://plain.test/api/x"); g.Path != "/api/x" || g.Header.Get("X-Forwarded-Host") != "plain.test" || g.header.Get("Set-Cookie") == "" {
		t.Errorf("plain: %+v", g)
	}
	if g := r.ask("GET http://rewrite.test/api/x"); g.Path != "/v2/x" {
		t.Errorf("rewrite-target: the pod sees %s", g.Path)
	}
	if g := r.ask("GET https://hsts.test/api"); g.header.Get("Strict-Transport-Security") != "max-age=60" {
		t.Errorf("hsts_header: %v", g.header)
	}
	if g := r.ask("GET http://cookieless.test/api"); g.header.Get("Set-Cookie") != "" {
		t.Errorf("disable_cookies: %v", g.header)
	}
	if g := r.ask("GET http://never.test/api"); g.Header.Get("X-Forwarded-Host") != "" {
		t.Errorf("set-forwarded-headers: %v", g.Header)
	}
	if g := r.ask("GET http://named.test/api"); !strings.HasPrefix(g.header.Get("Set-Cookie"), "mine=") {
		t.Errorf("cookie_name: %v", g.header)
	}
	g := r.ask("GET http://redirect.test/api?x=y")
	if g.status != 302 || g.header.Get("Location") != "https://redirect.test/api?x=y" {
		t.Errorf("redirect: %d %v", g.status, g.header)
	}
	r.wantBy("GET https://redirect.test/api", "s")
	r.wantBy("GET http://nginx.test/api", "503")
	r.wantEvent("nginx UnsupportedAnnotation: annotations are not read that keep requests out")
	conn, err := net.Dial("tcp", r.router.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = fmt.Fprint(conn, "GET /api HTTP/1.1\r\nHost: closed.test\r\n\r\n")
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("ip_allowlist: %d bytes for a client that is not listed", n)
	}
}

// TestStickyPerRule: each rule has a cookie of its own, so that two Services of a host do not forget each other's pods.
func TestStickyPerRule(t *testing.T) {
	r := start(t, controller.Options{})
	r.apply(r.service("a", 5), r.service("b", 5), ingress("web", "rules:\n"+rule("a.test", "Prefix /a a 8080", "Prefix /b b 8080")))
	first := r.ask("GET http://a.test/a")
	second := r.ask("GET http://a.test/b")
	var cookies []string
	for _, g := range []got{first, second} {
		cookie, _, _ := strings.Cut(g.header.Get("Set-Cookie"), ";")
		cookies = append(cookies, cookie)
	}
	names := slices.Compact([]string{cookies[0][:strings.Index(cookies[0], "=")], cookies[1][:strings.Index(cookies[1], "=")]})
	if len(names) != 2 {
		t.Fatalf("cookies %q", cookies)
	}
	for range 20 {
		if g := r.ask("GET http://a.test/a", "Cookie: "+strings.Join(cookies, "; ")); g.Pod != first.Pod {
			t.Fatalf("pod %s, want %s", g.Pod, first.Pod)
		}
		if g := r.ask("GET http://a.test/b", "Cookie: "+strings.Join(cookies, "; ")); g.Pod != second.Pod {
			t.Fatalf("pod %s, want %s", g.Pod, second.Pod)
		}
	}
}

// TestBesideRoutes: Routes and Ingresses are in one table; a Route with the host keeps it from a younger Ingress, and takes its paths beside it in one
// namespace.
func TestBesideRoutes(t *testing.T) {
	r := start(t, controller.Options{})
	route := func(name, host, path string) string {
		return fmt.Sprintf("apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: %s, creationTimestamp: 2020-01-01T00:00:00Z}\nspec: {host: %s, path: %q, to: {name: route}}\n", name, host, path)
	}
	young := func(manifest string) string {
		return strings.Replace(manifest, "metadata:\n", "metadata:\n  creationTimestamp: 2024-01-01T00:00:00Z\n", 1)
	}
	r.apply(r.service("route", 1), r.service("s", 1), route("root", "a.test", ""), route("path", "b.test", "/p"),
		young(ingress("web", "rules:\n"+rule("a.test", "Prefix / s 8080", "Prefix /i s 8080")+rule("b.test", "Prefix / s 8080"))),
		strings.Replace(young(ingress("foreign", "rules:\n"+rule("a.test", "Exact /x s 8080"))), "  name: foreign", "  namespace: other\n  name: foreign", 1))
	for request, want := range map[string]string{
		"GET http://a.test/": "route", "GET http://a.test/i": "s", "GET http://a.test/x": "route", "GET http://b.test/": "s", "GET http://b.test/p": "route", "GET https://a.test/i": "s",
		"GET http://nobody.test/": "503",
	} {
		r.wantBy(request, want)
	}
	r.wantEvent("web HostAlreadyClaimed: host a.test, path / is not served: route default/root has host a.test")
	r.wantEvent("foreign HostAlreadyClaimed: host a.test, exact path /x is not served: a route in another namespace holds host a.test")
	r.remove(source.Route, "root")
	r.wantBy("GET http://a.test/", "s")
}
