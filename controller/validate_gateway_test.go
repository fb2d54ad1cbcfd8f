package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"turnout/controller/expose"
	"turnout/controller/source"
	"turnout/controller/source/folder"
)

const gatewayManifests = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: shop}
spec:
  gatewayClassName: turnout
  listeners:
  - {name: http, port: 80, protocol: HTTP}
  - name: https
    port: 443
    protocol: HTTPS
    tls: {certificateRefs: [{name: missing}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: good, namespace: shop}
spec:
  parentRefs: [{name: web, sectionName: http}]
  hostnames: [a.test, b.test]
  rules: [{backendRefs: [{name: app, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: lost, namespace: shop}
spec:
  parentRefs: [{name: web, sectionName: ftp}]
  rules: [{backendRefs: [{name: app, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: app, namespace: shop}
spec: {ports: [{port: 80}]}
`

const gatewayClassManifest = `---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: turnout}
spec: {controllerName: turnout.router/gateway}
`

// validated is the report about manifests in a file of the folder that it returns.
func validated(t *testing.T, options Options, text string) (report *Report, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "g.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	content, err := folder.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if report, err = Validate(options, content); err != nil {
		t.Fatal(err)
	}
	return report, file
}

// TestValidateGateways: what the status of an object of the Gateway API would say is said with its place, and fails as a rejected Route does.
func TestValidateGateways(t *testing.T) {
	served := Options{Gateways: GatewayOptions{Controller: "turnout.router/gateway", Own: []expose.Taken{{Addr: "127.0.0.1:80", For: "Routes without TLS"}}}}
	for _, row := range []struct {
		name    string
		options Options
		text    string
		failed  bool
		want    string
	}{
		{"judged", served, gatewayManifests + gatewayClassManifest, true, `FILE:21: rejected: HTTPRoute shop/lost: NoMatchingParent: Gateway shop/web listener ftp: The parent has no listener with this sectionName and port
FILE:1: note: Gateway shop/web: ListenersNotResolved: Listener https: Secret shop/missing does not exist
FILE:1: note: Gateway shop/web: Invalid: listener https: Secret shop/missing does not exist
FILE:1: note: Gateway shop/web: InvalidCertificateRef: listener https: Secret shop/missing does not exist
ok: GatewayClass turnout
ok: HTTPRoute shop/good (a.test, b.test) of Gateway shop/web listener http
ok: Gateway shop/web (http: HTTP, port 80, *; https: HTTPS, port 443, *)
1 files, 5 objects, 0 routes, 1 rejected, 0 problems
`},
		{"without the class", served, gatewayManifests, false, `FILE:5: warning: Gateway shop/web: spec.gatewayClassName: there is no GatewayClass turnout here: nothing is said of the Gateway and its routes
1 files, 4 objects, 0 routes, 0 rejected, 1 problems
`},
		{"not asked for", Options{}, gatewayManifests + gatewayClassManifest, false, `FILE:1: warning: Gateway shop/web: objects of the Gateway API are judged with --gateway-api only
1 files, 5 objects, 0 routes, 0 rejected, 1 problems
`},
	} {
		report, file := validated(t, row.options, row.text)
		var out strings.Builder
		if err := report.Print(&out, nil, false); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(row.want, strings.ReplaceAll(out.String(), file, "FILE")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", row.name, diff)
		}
		if report.Failed() != row.failed {
			t.Errorf("%s: failed is %v", row.name, !row.failed)
		}
	}
}

// TestGatewayFindings: a program that reads the report gets the same, in fields.
func TestGatewayFindings(t *testing.T) {
	report, file := validated(t, Options{Gateways: GatewayOptions{Controller: "turnout.router/gateway"}}, gatewayManifests+gatewayClassManifest)
	want := Finding{
		File: file, Line: 21, Severity: "rejected", Namespace: "shop", Object: "HTTPRoute shop/lost", Reason: "NoMatchingParent",
		Text: "Gateway shop/web listener ftp: The parent has no listener with this sectionName and port",
	}
	if got := report.Findings(nil)[0]; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if n := len(report.Gateways); n != 4 || report.Gateways[0].object() != (source.GatewayClass.String()+" turnout") {
		t.Errorf("%d objects, the first is %q", n, report.Gateways[0].object())
	}
	var out strings.Builder
	if err := report.PrintJSON(&out, nil, false); err != nil || !strings.Contains(out.String(), `"gateways": [`) {
		t.Errorf("%v in %s", err, out.String())
	}
}
