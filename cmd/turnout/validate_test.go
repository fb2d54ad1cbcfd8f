package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestValidateReportsAll: what is ignored among flags, variables and annotations is reported, each with what counts instead.
func TestValidateReportsAll(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "route.yaml", []byte(`apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: app
  annotations:
    haproxy.router.openshift.io/timeout: soon
    haproxy.router.openshift.io/ip_allowlist: nowhere
    router.openshift.io/haproxy.health.check.interval: often
spec:
  host: app.test
  to: {kind: Service, name: app}
`))
	var out bytes.Buffer
	env := envOf("ROUTER_DEFAULT_SERVER_TIMEOUT", "never", "ROUTER_COOKIE_NAME", "a b", "RELOAD_INTERVAL", "5s", "ROUTER_MAX_CONNECTIONS", "many")
	if err := runValidate([]string{"--v=2", dir}, env, &out); err != nil {
		t.Fatal(err)
	}
	// A router that runs tells the same.
	p := startRouter(t, nil, "--manifests", dir)
	if status, notes := get(t, "http://"+p.admin+"/routes/notes", ""); status != 200 || !strings.Contains(notes, `"name": "app"`) ||
		!strings.Contains(notes, `\"soon\"`) || !strings.Contains(notes, "nobody may connect") {
		t.Errorf("status %d, notes %s", status, notes)
	}
	if status, route := get(t, "http://"+p.admin+"/routes/default/app", ""); status != 200 || !strings.Contains(route, `"host": "app.test"`) {
		t.Errorf("status %d, route %s", status, route)
	}
	for _, want := range []string{
		`warning: ROUTER_DEFAULT_SERVER_TIMEOUT="never" is ignored; `, `warning: ROUTER_COOKIE_NAME="a b" is ignored; `,
		`warning: ROUTER_MAX_CONNECTIONS="many" is ignored; `, "warning: variables of the OpenShift router that have no effect here: RELOAD_INTERVAL\n", "--v",
		`note: default/app: annotation haproxy.router.openshift.io/timeout: "soon" `, "; 30s is used\n",
		"note: default/app: annotation haproxy.router.openshift.io/ip_allowlist: no valid entry; nobody may connect\n",
		`note: default/app: annotation router.openshift.io/haproxy.health.check.interval: "often" `, "; 5s is used\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
