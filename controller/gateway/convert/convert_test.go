package convert_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"turnout/controller"
	"turnout/controller/gateway/convert"
	"turnout/controller/source"
	"turnout/controller/source/folder"
)

// services are those of all tests.
const services = `
apiVersion: v1
kind: Service
metadata: {name: s, namespace: app}
spec: {ports: [{name: http, port: 80, targetPort: web}, {name: admin, port: 9000, targetPort: 9001}]}
---
apiVersion: v1
kind: Service
metadata: {name: tls, namespace: app}
spec: {ports: [{name: https, port: 8443}]}
---
`

// converted are the objects and notes that manifests become, as text.
func converted(t *testing.T, manifests string, options convert.Options) (objects, notes string) {
	t.Helper()
	content, err := folder.LoadWith("stdin", []byte(services+manifests))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range content.Problems {
		t.Fatal(p)
	}
	_, in, err := controller.Convertible(controller.Options{AllowLoopback: true, AllowWildcard: true, Domain: "apps.test"}, content, "")
	if err != nil {
		t.Fatal(err)
	}
	options.Gateway = source.Key{Namespace: "gw", Name: "public"}
	made := convert.Convert(*in, options)
	var text bytes.Buffer
	if err := made.PrintYAML(&text); err != nil {
		t.Fatal(err)
	}
	for i := range made.Notes {
		notes += made.Notes[i].String() + "\n"
	}
	loaded, err := folder.LoadWith("converted", text.Bytes())
	if err != nil || len(loaded.Problems) > 0 {
		t.Fatalf("what is printed cannot be read: %v, %v\n%s", err, loaded.Problems, &text)
	}
	return text.String(), notes
}

// route is a Route of the namespace app to Service s with annotations, pairs of key and value, and more of its spec.
func route(name, spec string, annotations ...string) string {
	text := "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata:\n  name: " + name + "\n  namespace: app\n  annotations:\n"
	for i := 0; i < len(annotations); i += 2 {
		text += fmt.Sprintf("    %s: %q\n", annotations[i], annotations[i+1])
	}
	if !strings.Contains(spec, "to:") {
		spec += "\n  to: {kind: Service, name: s}"
	}
	if !strings.Contains(spec, "port:") {
		spec += "\n  port: {targetPort: web}"
	}
	return text + "spec:\n  " + spec + "\n---\n"
}

const ha, own = "haproxy.router.openshift.io/", "turnout.router/"

// TestRoutes: what a Route becomes, and what is said of it.
func TestRoutes(t *testing.T) {
	for _, c := range []struct {
		name, manifest string
		options        convert.Options
		has, hasNot    []string // in the objects
		says           []string // among the notes
		quiet          []string // not among them
	}{
		{"the port is that of the Service", route("r", "host: a.test"), convert.Options{},
			[]string{"kind: HTTPRoute", "- a.test", "name: s\n      port: 80", "sectionName: http\n"}, []string{"HTTPS", "weight"}, nil, []string{"Route app/r"}},
		{"by number of the pods", route("r", "host: a.test\n  port: {targetPort: 9001}"), convert.Options{}, []string{"port: 9000"}, nil, nil, []string{"Route app/r"}},
		{"without a port the first one", route("r", "host: a.test\n  to: {kind: Service, name: s}\n  # port:"), convert.Options{}, []string{"port: 80\n"}, nil,
			[]string{"no equal: Route app/r: spec.port: requests went to all ports of Service s"}, nil},
		{"a Service that is not there", route("r", "host: a.test\n  to: {kind: Service, name: gone}"), convert.Options{}, nil, []string{"HTTPRoute"},
			[]string{"left out: Route app/r: Service gone: it is not there"}, nil},
		{"a Service that is not there, and a number", route("r", "host: a.test\n  to: {kind: Service, name: gone}\n  port: {targetPort: 8080}"), convert.Options{}, []string{"port: 8080"}, nil,
			[]string{"differs: Route app/r: spec.port: Service gone is not there"}, nil},
		{"no such port", route("r", "host: a.test\n  port: {targetPort: other}"), convert.Options{}, nil, []string{"HTTPRoute"}, []string{"left out: Route app/r: spec.port: Service s has no port other"}, nil},
		{"edge, None", route("r", "host: a.test\n  tls: {termination: edge}"), convert.Options{}, []string{"sectionName: https\n", "name: default-certificate\n"}, []string{"sectionName: http\n"},
			[]string{"Secret gw/default-certificate, which is not among the objects"}, nil},
		{"edge, Allow", route("r", "host: a.test\n  tls: {termination: edge, insecureEdgeTerminationPolicy: Allow}"), convert.Options{}, []string{"sectionName: http\n", "sectionName: https\n"}, nil, nil, nil},
		{"edge, Redirect", route("r", "host: a.test\n  tls: {termination: edge, insecureEdgeTerminationPolicy: Redirect}"), convert.Options{},
			[]string{"name: r-redirect", "scheme: https\n        statusCode: 302"}, []string{"port: 443\n        scheme"}, nil, nil},
		{"another port of TLS", route("r", "host: a.test\n  tls: {termination: edge, insecureEdgeTerminationPolicy: Redirect}"), convert.Options{Secure: 8443}, []string{"port: 8443\n        scheme: https"}, nil, nil, nil},
		{"the Secret is named", route("r", "host: a.test\n  tls: {termination: edge}"), convert.Options{Certificate: source.Key{Namespace: "certs", Name: "all"}},
			[]string{"name: all\n        namespace: certs", "kind: ReferenceGrant\nmetadata:\n  name: public-certificates\n  namespace: certs", "kind: Gateway\n    namespace: gw", "kind: Secret\n    name: all"}, nil, nil,
			[]string{"not among the objects"}},
		{"an external certificate", route("r", "host: a.test\n  tls: {termination: edge, externalCertificate: {name: mine}}"), convert.Options{},
			[]string{"hostname: a.test\n    name: https-a.test", "name: mine\n        namespace: app", "kind: ReferenceGrant"}, []string{"default-certificate"}, []string{"while Secret mine cannot be used, a.test is not served over TLS"}, nil},
		{"passthrough", route("r", "host: a.test\n  to: {kind: Service, name: tls}\n  port: {targetPort: https}\n  tls: {termination: passthrough}", ha+"timeout", "5s", own+"slow-start", "10s"), convert.Options{},
			[]string{"kind: TLSRoute", "mode: Passthrough", "protocol: TLS", "sectionName: tls-a.test"}, []string{"HTTPRoute", "timeouts"},
			[]string{"no equal: Route app/r: annotation " + ha + "timeout: connections are ended by", "no equal: Route app/r: annotation " + own + "slow-start"}, nil},
		{"re-encrypt that nobody verifies", route("r", "host: a.test\n  to: {kind: Service, name: tls}\n  port: {targetPort: https}\n  tls: {termination: reencrypt}"), convert.Options{},
			[]string{"kind: BackendTLSPolicy", "wellKnownCACertificates: System", "hostname: tls.app.svc"}, []string{"ConfigMap"}, []string{"no equal: Route app/r: spec.tls.termination: pods of re-encrypt routes without"}, nil},
		{"re-encrypt with the router's authority", route("r", "host: a.test\n  to: {kind: Service, name: tls}\n  port: {targetPort: https}\n  tls: {termination: reencrypt}"), convert.Options{DestinationCA: []byte("authority")},
			[]string{"kind: ConfigMap\nmetadata:\n  name: tls-ca", "kind: ConfigMap\n      name: tls-ca", "ca.crt: |\n    authority"}, nil, nil, []string{"Route app/r"}},
		{"TLS and none to one Service", route("plain", "host: b.test\n  to: {kind: Service, name: tls}\n  port: {targetPort: https}") + route("r", "host: a.test\n  to: {kind: Service, name: tls}\n  port: {targetPort: https}\n  tls: {termination: reencrypt}"),
			convert.Options{}, nil, nil, []string{"no equal: Route app/plain: Service tls: its pods are spoken to over TLS, because they are by Route app/r"}, nil},
		{"a wildcard", route("r", "host: any.w.test\n  wildcardPolicy: Subdomain"), convert.Options{}, []string{`- '*.w.test'`}, nil, []string{"takes hosts with several more labels"}, nil},
		{"a subdomain", route("r", "subdomain: front"), convert.Options{}, []string{"- front.apps.test"}, nil, []string{"differs: Route app/r: spec.host: the object leaves its host to each router"}, nil},
		{"weights", route("r", "host: a.test\n  to: {kind: Service, name: s, weight: 3}\n  alternateBackends: [{kind: Service, name: tls, weight: 0}]\n  port: {targetPort: 80}"), convert.Options{}, []string{"name: s\n      port: 80\n      weight: 3"}, nil,
			[]string{"spec.alternateBackends: the share of a Service without ready pods", "left out: Route app/r: spec.port: Service tls has no port 80"}, nil},
		{"a path with a slash", route("r", "host: a.test\n  path: /p/"), convert.Options{}, []string{"type: PathPrefix\n        value: /p/"}, nil, []string{"differs: Route app/r: spec.path: /p/ takes /p as well"}, nil},
		{"headers", route("r", `host: a.test
  httpHeaders: {actions: {request: [{name: X-A, action: {type: Set, set: {value: "100%%"}}}, {name: X-B, action: {type: Delete}}, {name: X-C, action: {type: Set, set: {value: "%[req.hdr(host)]"}}}], response: [{name: X-D, action: {type: Delete}}]}}`), convert.Options{},
			[]string{"remove:\n        - X-B", "name: X-A\n          value: 100%", "remove:\n        - X-D"}, []string{"X-C"}, []string{"no equal: Route app/r: spec.httpHeaders.actions.request[2]: the value of X-C"}, nil},
		{"HSTS", route("r", "host: a.test\n  tls: {termination: edge}", ha+"hsts_header", "max-age=60"), convert.Options{}, []string{"name: Strict-Transport-Security\n          value: max-age=60"}, nil, nil, []string{"Route app/r"}},
		{"rewriting", route("r", "host: a.test\n  path: /app", ha+"rewrite-target", "/v2"), convert.Options{}, []string{"replacePrefixMatch: /v2\n          type: ReplacePrefixMatch"}, nil, nil, []string{"rewrite-target: \"", "becomes"}},
		{"rewriting that differs", route("r", "host: a.test\n  path: /app", ha+"rewrite-target", "/v2/"), convert.Options{}, []string{"replacePrefixMatch: /v2/"}, nil, []string{"/app/x becomes /v2/x and was /v2//x"}, nil},
		{"rewriting that cannot be said", route("r", "host: a.test\n  path: /app", ha+"rewrite-target", `/v2\\1`), convert.Options{}, nil, []string{"URLRewrite"}, []string{"cannot be said by URLRewrite"}, nil},
		{"times", route("r", "host: a.test", ha+"timeout", "90500ms", own+"request-timeout", "1h"), convert.Options{}, []string{"backendRequest: 1m30s500ms\n      request: 1h"}, nil, []string{"differs: Route app/r: annotation " + ha + "timeout"}, nil},
		{"an attempt is no longer than a request", route("r", "host: a.test", own+"attempt-timeout", "20s", own+"request-timeout", "10s"), convert.Options{}, []string{"backendRequest: 10s\n      request: 10s"}, nil, nil, []string{"Route app/r"}},
		{"retries", route("r", "host: a.test", own+"retry-on", "503 502", own+"retry-attempts", "2"), convert.Options{}, nil, []string{"retry:"}, []string{"no equal: Route app/r: annotation " + own + "retry-on"}, nil},
		{"retries of the experimental channel", route("r", "host: a.test", own+"retry-on", "503 502", own+"retry-attempts", "2", own+"retry-backoff", "1s"), convert.Options{Experimental: true},
			[]string{"retry:\n      attempts: 2\n      backoff: 1s\n      codes:\n      - 502\n      - 503"}, nil, nil, []string{"Route app/r"}},
		{"cookies", route("r", "host: a.test", "router.openshift.io/cookie_name", "c", "router.openshift.io/cookie-same-site", "Lax"), convert.Options{}, nil, []string{"sessionPersistence"},
			[]string{"no equal: Route app/r: annotation router.openshift.io/cookie_name: no cookie is set", "cookie-same-site: session persistence says nothing"}, nil},
		{"cookies of the experimental channel", route("r", "host: a.test", "router.openshift.io/cookie_name", "c"), convert.Options{Experimental: true}, []string{"sessionName: c\n      type: Cookie"}, nil, nil, []string{"no equal"}},
		{"no cookies", route("r", "host: a.test", ha+"disable_cookies", "true"), convert.Options{Experimental: true}, nil, []string{"sessionPersistence"}, nil, []string{"Route app/r"}},
		{"CORS", route("r", "host: a.test", own+"cors-allow-origin", "https://x.test", own+"cors-allow-methods", "PUT", own+"cors-max-age", "60", own+"cors-allow-credentials", "true"), convert.Options{},
			[]string{"allowCredentials: true", "allowMethods:\n        - PUT", "- https://x.test", "maxAge: 60"}, nil, nil, []string{"Route app/r"}},
		{"redirects", route("r", "host: a.test", own+"redirect-to", "https://b.test:8443/x", own+"redirect-status", "308"), convert.Options{},
			[]string{"hostname: b.test", "replaceFullPath: /x", "port: 8443", "statusCode: 308"}, []string{"backendRefs"}, nil, []string{"Route app/r"}},
		{"redirects to an address", route("r", "host: a.test", own+"redirect-to", "https://10.0.0.1"), convert.Options{}, nil, []string{"RequestRedirect"}, []string{"left out: Route app/r: annotation " + own + "redirect-to"}, nil},
		{"another host for pods", route("r", "host: a.test", own+"upstream-host", "b.test"), convert.Options{}, []string{"urlRewrite:\n        hostname: b.test"}, nil, nil, []string{"Route app/r"}},
		{"with a port", route("r", "host: a.test", own+"upstream-host", "b.test:80"), convert.Options{}, nil, []string{"urlRewrite"}, []string{"no equal: Route app/r: annotation " + own + "upstream-host"}, nil},
		{"mirrors", route("r", "host: a.test", own+"mirror", "s:admin", own+"mirror-percent", "10"), convert.Options{}, []string{"requestMirror:\n        backendRef:\n          name: s\n          port: 9000\n        percent: 10"}, nil, nil, []string{"Route app/r"}},
		{"canaries", route("r", "host: a.test\n  port: {targetPort: 8443}\n  to: {kind: Service, name: tls}", own+"canary", "tls", own+"canary-by-header", "X-C", own+"canary-by-cookie", "c"), convert.Options{},
			[]string{"headers:\n      - name: x-c\n        type: Exact\n        value: always", "name: cookie\n        type: RegularExpression"}, nil, nil, []string{"Route app/r"}},
		{"an allow-list", route("r", "host: a.test", ha+"ip_allowlist", "10.0.0.0/8"), convert.Options{}, nil, []string{"HTTPRoute"}, []string{"left out: Route app/r: annotation " + ha + "ip_allowlist: keeps clients out"}, nil},
		{"an allow-list, although", route("r", "host: a.test", ha+"ip_allowlist", "10.0.0.0/8"), convert.Options{Unguarded: true}, []string{"HTTPRoute"}, nil, []string{"no equal: Route app/r: annotation " + ha + "ip_allowlist: keeps clients out"}, nil},
		{"certificates of clients", route("r", "host: a.test\n  tls: {termination: edge}", own+"client-ca", "ca"), convert.Options{Unguarded: true}, []string{"HTTPRoute"}, nil, []string{"no equal: Route app/r: annotation " + own + "client-ca: keeps clients out"}, nil},
		{"rates", route("r", "host: a.test", ha+"rate-limit-connections", "true", ha+"rate-limit-connections.rate-http", "5"), convert.Options{}, []string{"HTTPRoute"}, nil, []string{"no equal: Route app/r: annotation " + ha + "rate-limit-connections: no address is limited"}, nil},
		{"rates that are off", route("r", "host: a.test", ha+"rate-limit-connections.rate-http", "5"), convert.Options{}, nil, nil, nil, []string{"no address is limited"}},
		{"of others", route("r", "host: a.test", "cert-manager.io/issuer", "x", "external-dns.alpha.kubernetes.io/ttl", "1"), convert.Options{}, nil, nil, []string{"is for cert-manager", "is for external-dns"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			objects, notes := converted(t, c.manifest, c.options)
			check(t, objects, notes, c.has, c.hasNot, c.says, c.quiet)
		})
	}
}

func check(t *testing.T, objects, notes string, has, hasNot, says, quiet []string) {
	t.Helper()
	for _, want := range has {
		if !strings.Contains(objects, want) {
			t.Errorf("no %q in\n%s", want, objects)
		}
	}
	for _, not := range hasNot {
		if strings.Contains(objects, not) {
			t.Errorf("%q in\n%s", not, objects)
		}
	}
	for _, want := range says {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
	for _, not := range quiet {
		if strings.Contains(notes, not) {
			t.Errorf("%q in\n%s", not, notes)
		}
	}
}

// TestIngresses: what an Ingress becomes, whatever its class.
func TestIngresses(t *testing.T) {
	const head = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: web\n  namespace: app\n"
	const rules = "  rules:\n  - host: a.test\n    http:\n      paths:\n      - {path: /x, pathType: Exact, backend: {service: {name: s, port: {number: 80}}}}\n      - {path: /y, pathType: Prefix, backend: {service: {name: s, port: {name: admin}}}}\n"
	for _, c := range []struct {
		name, manifest                 string
		options                        convert.Options
		has, hasNot, says, quietlyLost []string
	}{
		{"of a class that is not there", head + "spec:\n  ingressClassName: nginx\n" + rules, convert.Options{},
			[]string{"name: web\n", "type: Exact\n        value: /x", "type: PathPrefix\n        value: /y", "port: 9000", "sectionName: http\n", "sectionName: https\n"}, nil, nil, []string{"Ingress app/web"}},
		{"of no class, with a Secret", head + "spec:\n  tls: [{hosts: [a.test], secretName: mine}]\n" + rules, convert.Options{}, []string{"name: mine\n        namespace: app"}, []string{"default-certificate"}, []string{"while Secret mine cannot be used"}, nil},
		{"hosts", head + "spec:\n" + rules + "  - host: '*.w.test'\n    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}\n  - http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}\n",
			convert.Options{}, []string{"name: web-a-test", "name: web-any-w-test", "name: web-any-host"}, nil, []string{"host *.w.test: takes hosts with several", "any host: takes what hosts that have routes have no path for"}, nil},
		{"a Service that is not there", head + "spec:\n  defaultBackend: {service: {name: gone, port: {number: 7}}}\n", convert.Options{}, []string{"name: gone\n      port: 7"}, nil, []string{"differs: Ingress app/web: Service gone: it is not there"}, nil},
		{"and a port with a name", head + "spec:\n  defaultBackend: {service: {name: gone, port: {name: http}}}\n", convert.Options{}, nil, []string{"HTTPRoute"}, []string{"left out: Ingress app/web: spec.defaultBackend: the Service gone does not exist"}, nil},
		{"annotations of ingress-nginx", head + "  annotations: {nginx.ingress.kubernetes.io/rewrite-target: /, nginx.ingress.kubernetes.io/enable-cors: 'true', nginx.ingress.kubernetes.io/proxy-buffering: 'on'}\nspec:\n" + rules, convert.Options{}, []string{"HTTPRoute"}, nil,
			[]string{"nginx.ingress.kubernetes.io/rewrite-target: is one of ingress-nginx, which this router does not read, and is not converted: a filter URLRewrite may do it", "enable-cors: is one of ingress-nginx, which this router does not read, and is not converted: a filter CORS may do it",
				"proxy-buffering: is one of ingress-nginx, which this router does not read, and is not converted: the Gateway API has nothing for it"}, nil},
		{"one that keeps clients out", head + "  annotations: {nginx.ingress.kubernetes.io/auth-url: 'http://x'}\nspec:\n" + rules, convert.Options{}, nil, []string{"HTTPRoute"}, []string{"left out: Ingress app/web: annotation nginx.ingress.kubernetes.io/auth-url: keeps clients out"}, nil},
		{"one that does, although", head + "  annotations: {nginx.ingress.kubernetes.io/auth-url: 'http://x'}\nspec:\n" + rules, convert.Options{Unguarded: true}, []string{"HTTPRoute"}, nil, []string{"no equal: Ingress app/web: annotation nginx.ingress.kubernetes.io/auth-url"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			objects, notes := converted(t, c.manifest, c.options)
			check(t, objects, notes, c.has, c.hasNot, c.says, c.quietlyLost)
		})
	}
}

// TestManyHosts: listeners that are too many for a Gateway are in ListenerSets, and routes refer to them there; rules that are too many for an HTTPRoute are in several.
func TestManyHosts(t *testing.T) {
	var manifests strings.Builder
	for i := range 100 {
		manifests.WriteString(route(fmt.Sprintf("r%03d", i), fmt.Sprintf("host: h%03d.test\n  tls: {termination: edge, externalCertificate: {name: c%03d}}", i, i)))
	}
	manifests.WriteString("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web, namespace: app}\nspec:\n  rules:\n  - host: many.test\n    http:\n      paths:\n")
	for i := range 40 {
		fmt.Fprintf(&manifests, "      - {path: /%d, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}\n", i)
	}
	objects, notes := converted(t, manifests.String(), convert.Options{})
	check(t, objects, notes, []string{"kind: ListenerSet\nmetadata:\n  name: public-2\n  namespace: gw", "allowedListeners:\n    namespaces:\n      from: Same", "kind: ListenerSet\n    name: public-2\n    namespace: gw\n    sectionName: https-h099.test",
		"  - group: gateway.networking.k8s.io\n    kind: ListenerSet\n    namespace: gw", "name: web-2\n", "name: web-3\n", "name: public-certificates-2\n"}, []string{"name: web-4\n"}, []string{"102 listeners are more than the 64"}, nil)
	if listeners := strings.Count(objects, "protocol: HTTP"); listeners != 102 {
		t.Errorf("%d listeners", listeners)
	}
}
