package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"turnout/internal/offline"
	"turnout/internal/option"
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
	if err := runOnce(t.Context(), "validate", []string{"--v=2", dir}, env, nil, &out, io.Discard); err != nil {
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

// flawed has a finding of each kind, and the line of each is known.
const flawed = `# Comments come first.
apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: noted
  annotations:
    haproxy.router.openshift.io/timeout: soon
spec:
  host: noted.test
  to: {kind: Service, name: app}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: rejected}
spec:
  host: rejected.test
  to: {kind: Service, name: app}
  tls:
    termination: nonsense
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: broken}
spec:
  path: x
  to: {kind: Service, name: app}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: secret}
spec:
  host: secret.test
  to: {kind: Service, name: app}
  tls: {termination: edge, externalCertificate: {name: later}}
`

func TestValidateForMachines(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "all.yaml", []byte(flawed))
	var out bytes.Buffer
	if err := runOnce(t.Context(), "validate", []string{"--quiet", dir}, envOf(), nil, &out, io.Discard); !errors.Is(err, offline.ErrInvalid) {
		t.Error(err)
	}
	for _, want := range []string{
		file + ":25: error: Route default/broken: spec.path: must begin with /\n",
		file + `:7: note: default/noted: annotation haproxy.router.openshift.io/timeout: "soon" `,
		file + `:19: rejected: default/rejected (rejected.test): ExtendedValidationFailed: spec.tls.termination: Unsupported value`,
		file + `:28: note: default/secret: secret "later" cannot be read, so that its certificate is not checked: it is not there`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "ok:") || strings.Contains(out.String(), " files, ") {
		t.Errorf("not quiet:\n%s", &out)
	}
	out.Reset()
	if err := runOnce(t.Context(), "validate", []string{"-o", "json", "-"}, envOf(), strings.NewReader(flawed), &out, io.Discard); !errors.Is(err, offline.ErrInvalid) {
		t.Error(err)
	}
	var report struct {
		Rejected int
		Findings []struct {
			File, Severity, Route, Reason, Text string
			Line                                int
		}
		Routes []struct{ Name string }
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || report.Rejected != 1 || len(report.Routes) != 3 {
		t.Fatalf("%v, %s", err, &out)
	}
	seen := false
	for _, f := range report.Findings {
		seen = seen || f.File == "stdin" && f.Line == 19 && f.Severity == "rejected" && f.Route == "rejected" && f.Reason == "ExtendedValidationFailed"
	}
	if !seen {
		t.Errorf("%s", &out)
	}
}

// TestValidateStrict: notes fail only when somebody wants that.
func TestValidateStrict(t *testing.T) {
	noted, _, _ := strings.Cut(flawed, "---\n")
	for _, c := range []struct {
		args []string
		want error
	}{{[]string{"-"}, nil}, {[]string{"-", "--strict"}, offline.ErrNotes}, {[]string{"--strict", "-q", "-"}, offline.ErrNotes}} {
		if err := runOnce(t.Context(), "validate", c.args, envOf(), strings.NewReader(noted), io.Discard, io.Discard); !errors.Is(err, c.want) {
			t.Errorf("%v: %v", c.args, err)
		}
	}
	if err := runOnce(t.Context(), "validate", []string{"--kubeconfig=k", "-"}, envOf(), strings.NewReader(noted), io.Discard, io.Discard); !errors.As(err, &option.UsageError{}) {
		t.Error(err)
	}
}

// TestValidateCluster: what this router would make of a cluster's objects. A secret that it may not read is a note.
func TestValidateCluster(t *testing.T) {
	server := httptest.NewTLSServer(&tinyAPI{wrote: make(chan string, 1)})
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	var out bytes.Buffer
	args := []string{"--kubeconfig", kubeconfig(t, server.URL), "--namespace-labels", "served=yes", "--labels", "color=red"}
	if err := runOnce(t.Context(), "validate", args, envOf(), nil, &out, io.Discard); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"(a.test) edge", "note: ", "cannot be read, so that its certificate is not checked: router serviceaccount does not have permission to get"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
