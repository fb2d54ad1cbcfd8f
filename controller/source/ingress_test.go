package source

import (
	"strings"
	"testing"
)

// TestIngressIsValidated: manifests are judged as an API server judges them.
func TestIngressIsValidated(t *testing.T) {
	const head = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\nspec: "
	backend := `{service: {name: s, port: {number: 80}}}`
	path := func(fields string) string {
		return "{rules: [{http: {paths: [{" + fields + ", backend: " + backend + "}]}}]}"
	}
	to := func(backend string) string { return "{defaultBackend: " + backend + "}" }
	host := func(host string) string { return `{rules: [{host: "` + host + `"}]}` }
	for _, c := range []struct{ spec, want string }{
		{to(backend), ""},
		{to(`{service: {name: s, port: {name: http}}}`), ""},
		{to(`{resource: {kind: Bucket, name: b}}`), ""},
		{"{}", "spec: defaultBackend or rules must be set"},
		{"{ingressClassName: A, defaultBackend: " + backend + "}", `spec.ingressClassName: "A"`},
		{to(`{}`), "spec.defaultBackend: service or resource must be set"},
		{to(`{service: {name: s, port: {number: 80}}, resource: {kind: Bucket, name: b}}`), "cannot both be set"},
		{to(`{service: {name: S, port: {number: 80}}}`), `service.name: "S" is not the name of a Service`},
		{to(`{service: {name: s}}`), "port.number: 0 is not in 1 to 65535"},
		{to(`{service: {name: s, port: {number: 65536}}}`), "port.number: 65536 is not in 1 to 65535"},
		{to(`{service: {name: s, port: {number: 80, name: http}}}`), "name and number cannot both be set"},
		{to(`{service: {name: s, port: {name: "80"}}}`), `port.name: "80" is not the name of a port`},
		{path("path: /, pathType: Prefix"), ""},
		{path("path: /a/b/, pathType: Exact"), ""},
		{path("pathType: ImplementationSpecific"), ""},
		{path("path: /a//b%2f, pathType: ImplementationSpecific"), ""},
		{path("path: a, pathType: ImplementationSpecific"), "spec.rules[0].http.paths[0].path: must begin with /"},
		{path("pathType: Exact"), "spec.rules[0].http.paths[0].path: must begin with /"},
		{path("path: /a"), "pathType: must be set"},
		{path("path: /a, pathType: exact"), "pathType: must be Exact, Prefix or ImplementationSpecific"},
		{path("path: /a//b, pathType: Prefix"), "must not contain //"},
		{path("path: /a/../b, pathType: Prefix"), "must not contain /../"},
		{path("path: /a%2Fb, pathType: Exact"), "must not contain %2F"},
		{path("path: /a/.., pathType: Exact"), "must not end with /.."},
		{"{rules: [{http: {paths: []}}]}", "spec.rules[0].http.paths: must be set"},
		{host("a.test"), ""}, {host("*.a.test"), ""}, {host(""), ""},
		{host("A.test"), `spec.rules[0].host: "A.test" is not a lower-case DNS name`},
		{host("*"), "is not a lower-case DNS name behind one label *"},
		{host("a.*.test"), "is not a lower-case DNS name behind one label *"},
		{host("10.0.0.1"), "is an address, not a DNS name"},
		{"{defaultBackend: " + backend + `, tls: [{}, {hosts: [a.test, "b_c"]}]}`, `spec.tls[1].hosts[1]: "b_c"`},
	} {
		objects, findings := Decode(Document{Number: 1, Line: 1, Data: []byte(head + c.spec)})
		got := ""
		if len(findings) > 0 {
			got = findings[0].Reason
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || (len(objects) == 1) != (c.want == "") {
			t.Errorf("%s: %d objects, %q, want %q", c.spec, len(objects), got, c.want)
		}
	}
}

// TestIngressClassIsValidated: a class is in no namespace, and names a controller by domain and path.
func TestIngressClassIsValidated(t *testing.T) {
	for controller, want := range map[string]string{
		"turnout.router/ingress": "", "": "", "example.com/a/b": "", "example.com": "spec.controller", "Example.com/x": "spec.controller",
		"a.test/" + strings.Repeat("x", 250): "spec.controller",
	} {
		objects, findings := Decode(Document{Number: 1, Line: 1, Data: []byte("apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: c}\nspec: {controller: \"" + controller + "\"}")})
		if (len(findings) == 0) != (want == "") || len(findings) > 0 && !strings.Contains(findings[0].Reason, want) {
			t.Errorf("%q: %v", controller, findings)
		}
		if want == "" && (len(objects) != 1 || objects[0].Key != (Key{Name: "c"}) || objects[0].Kind != IngressClass) {
			t.Errorf("%q: %+v", controller, objects)
		}
	}
}
