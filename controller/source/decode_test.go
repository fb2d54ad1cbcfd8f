package source

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// read decodes a whole file and returns "Kind ns/name" of its objects and its findings as
// "N severity Object: reason".
func read(text string, isJSON bool) (objects []Object, names, findings []string) {
	for _, doc := range Split([]byte(text), isJSON) {
		list, found := Decode(doc)
		for _, o := range list {
			objects = append(objects, o)
			names = append(names, o.Kind.String()+" "+o.Key.String())
		}
		for _, f := range found {
			findings = append(findings, Problem{Document: doc.Number, Object: f.Object, Severity: f.Severity, Reason: f.Reason}.String())
		}
	}
	return objects, names, findings
}

const twoRoutes = `# first
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: a, namespace: ns}
spec: {host: a.test, to: {kind: Service, name: s}}
---
# nothing here
---
apiVersion: v1
kind: Route
metadata:
  name: b
spec:
  tls:
    termination: edge
    certificate: |-
      -----BEGIN CERTIFICATE-----
      -----END CERTIFICATE-----
  to:
    name: s
...
`

func TestDecodeYAML(t *testing.T) {
	objects, names, findings := read(twoRoutes, false)
	if diff := cmp.Diff([]string{"Route ns/a", "Route default/b"}, names); diff != "" || findings != nil {
		t.Fatalf("(-want +got):\n%s\nfindings %q", diff, findings)
	}
	b := objects[1].Object.(*routev1.Route)
	if *b.Spec.To.Weight != 100 || b.Spec.To.Kind != "Service" || b.Spec.WildcardPolicy != "None" || b.APIVersion != "route.openshift.io/v1" {
		t.Errorf("defaults: %+v", b.Spec)
	}
	if !strings.HasPrefix(string(b.UID), "manifest-") || b.UID == objects[0].Object.(*routev1.Route).UID {
		t.Errorf("UID %q", b.UID)
	}
	if again, _, _ := read(twoRoutes, false); again[1].Object.(*routev1.Route).UID != b.UID {
		t.Error("the UID changes from reading to reading")
	}
	if !strings.Contains(b.Spec.TLS.Certificate, "-----BEGIN") {
		t.Errorf("certificate %q", b.Spec.TLS.Certificate)
	}
}

func TestDocumentNumbers(t *testing.T) {
	docs := Split([]byte("\ufeff%YAML 1.2\n---\na: 1\n--- {b: 2}\n---\n# none\n---\r\nc: 3\n"), false)
	var got []string
	for _, d := range docs {
		got = append(got, strings.TrimSpace(string(d.Data)))
	}
	if diff := cmp.Diff([]string{"a: 1", "{b: 2}", "# none\nc: 3"}, got); diff != "" && len(docs) != 3 {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	if docs[0].Number != 1 || docs[1].Number != 2 || docs[2].Number != 4 || docs[2].Line != 7 {
		t.Errorf("numbers %d %d %d, line %d", docs[0].Number, docs[1].Number, docs[2].Number, docs[2].Line)
	}
}

func TestDecodeJSONAndLists(t *testing.T) {
	_, names, findings := read(`{"apiVersion":"v1","kind":"List","items":[
 {"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"n"}},
 {"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}]}
{"apiVersion":"route.openshift.io/v1","kind":"RouteList","items":[{"metadata":{"name":"r"},"spec":{"to":{"name":"s"}}}]}
{"broken"`, true)
	if diff := cmp.Diff([]string{"Service n/s", "Route default/r"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []string{", document 1, Pod default/p: kind Pod of v1 is not known", ", document 3: cannot parse JSON: unexpected EOF"}
	if diff := cmp.Diff(want, findings); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestFindings(t *testing.T) {
	const route = "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: r}\n"
	for _, c := range []struct {
		name, text string
		objects    int
		want       string // in the first finding; "" = none
	}{
		{"syntax", "a: [", 0, "cannot parse YAML: "},
		{"line", "# x\n---\na: 1\n---\nb: 1\n c: 2\n", 0, "apiVersion and kind must be set"},
		{"no kind", "a: 1", 0, "apiVersion and kind must be set"},
		{"not an object", "- a", 0, "cannot read as an object"},
		{"unknown kind", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}", 0, "Deployment default/d: kind Deployment of apps/v1 is not known"},
		{"old version", "apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\nmetadata: {name: d}", 0, "use apiVersion discovery.k8s.io/v1"},
		{"unknown field", route + "spec: {to: {name: s}, hots: x}", 1, `warning: unknown field "spec.hots"`},
		{"duplicate key", route + "spec: {to: {name: s}, host: a, host: b}", 1, "warning: "},
		{"type", route + "spec: {to: {name: [s]}}", 0, "spec.to.name must not be of type array"},
		{"bool", "apiVersion: v1\nkind: Service\nmetadata: {name: n}", 0, "metadata.name must not be of type bool (in YAML y, n,"},
		{"no name", "apiVersion: v1\nkind: Service", 0, "metadata.name must be set"},
		{"bad name", "apiVersion: v1\nkind: Service\nmetadata: {name: A}", 0, "is not a lower-case DNS name"},
		{"bad namespace", "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: a.b}", 0, "is not a lower-case DNS label"},
		{"path", route + "spec: {path: p, to: {name: s}}", 0, "spec.path: must begin with /"},
		{"passthrough path", route + "spec: {path: /p, to: {name: s}, tls: {termination: passthrough}}", 0, "spec.path: not possible with passthrough"},
		{"passthrough headers", route + "spec: {httpHeaders: {}, to: {name: s}, tls: {termination: passthrough}}", 0, "spec.httpHeaders: not possible"},
		{"kind of service", route + "spec: {to: {kind: Pod, name: s}}", 0, "spec.to.kind: must be Service"},
		{"no service", route + "spec: {}", 0, "spec.to.name: must be set"},
		{"weight", route + "spec: {to: {name: s, weight: 257}}", 0, "spec.to.weight: 257 is not in 0 to 256"},
		{"four more", route + "spec: {to: {name: s}, alternateBackends: [{name: a}, {name: b}, {name: c}, {name: d}]}", 0, "at most 3"},
		{"twice", route + "spec: {to: {name: s}, alternateBackends: [{name: a}, {name: a}]}", 0, "is named twice"},
		{"as to", route + "spec: {to: {name: s}, alternateBackends: [{name: s}]}", 1, ""},
		{"both certificates", route + "spec: {to: {name: s}, tls: {termination: edge, certificate: c, externalCertificate: {name: x}}}", 0, "cannot both be set"},
		{"termination is the router's", route + "spec: {to: {name: s}, tls: {termination: x}}", 1, ""},
		{"host is the router's", route + "spec: {to: {name: s}, host: A_b}", 1, ""},
		{"subdomain", route + "spec: {to: {name: s}, subdomain: a_b}", 0, "spec.subdomain"},
		{"slice type", "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: a}\naddressType: X\nendpoints: []", 0, "addressType: must be"},
		{"slice port", "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: a}\naddressType: IPv4\nendpoints: []\nports: [{port: 0}]", 0, "ports[0].port"},
		{"ingress of old", "apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: i}", 0, "use apiVersion networking.k8s.io/v1"},
	} {
		objects, _, findings := read(c.text, false)
		if len(objects) != c.objects {
			t.Errorf("%s: %d objects, want %d", c.name, len(objects), c.objects)
		}
		first := ""
		if len(findings) > 0 {
			first = findings[0]
		}
		if (first == "") != (c.want == "") || !strings.Contains(first, c.want) {
			t.Errorf("%s: finding %q, want %q in it", c.name, first, c.want)
		}
	}
	_, _, findings := read("a: 1\n---\nb: 1\n c: [\n", false)
	if len(findings) != 2 || !strings.Contains(findings[1], "line 4") && !strings.Contains(findings[1], "line 3") {
		t.Errorf("lines are not counted from the start of the file: %q", findings)
	}
}

func TestOtherDefaults(t *testing.T) {
	objects, _, findings := read(`apiVersion: v1
kind: Secret
metadata: {name: s}
data: {a: YQ==}
stringData: {b: text}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: e}
addressType: IPv4
endpoints: []
ports: [{port: 80}]
---
apiVersion: v1
kind: Namespace
metadata: {name: ns, namespace: x}
---
apiVersion: v1
kind: Service
metadata: {name: s}
spec: {ports: [{port: 80}]}
`, false)
	if len(objects) != 4 || len(findings) != 0 {
		t.Fatalf("%d objects, findings %q", len(objects), findings)
	}
	s := objects[0].Object.(*corev1.Secret)
	if s.Type != corev1.SecretTypeOpaque || string(s.Data["a"]) != "a" || string(s.Data["b"]) != "text" || s.StringData != nil {
		t.Errorf("secret %+v", s)
	}
	if e := objects[1].Object.(*discoveryv1.EndpointSlice); *e.Ports[0].Protocol != "TCP" || *e.Ports[0].Name != "" {
		t.Errorf("slice %+v", e)
	}
	if objects[2].Key != (Key{Name: "ns"}) {
		t.Errorf("key of a namespace %v", objects[2].Key)
	}
	if v := objects[3].Object.(*corev1.Service); v.Spec.Ports[0].Protocol != "TCP" {
		t.Errorf("service %+v", v)
	}
}

func TestProblemString(t *testing.T) {
	p := Problem{File: "a.yaml", Document: 2, Object: "Route n/r", Reason: "is wrong"}
	if got := p.String(); got != "a.yaml, document 2, Route n/r: is wrong" {
		t.Errorf("%q", got)
	}
	p = Problem{File: "a.yaml", Severity: Warning, Reason: "is odd"}
	if got := p.String(); got != "a.yaml: warning: is odd" {
		t.Errorf("%q", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(twoRoutes), false)
	f.Add([]byte(`{"kind":"List","apiVersion":"v1","items":[{}]}`), true)
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool) {
		for _, doc := range Split(data, isJSON) {
			objects, findings := Decode(doc)
			if len(objects) == 0 && len(findings) == 0 && !strings.Contains(string(doc.Data), "List") {
				t.Errorf("document %d vanishes without a word", doc.Number)
			}
		}
	})
}
