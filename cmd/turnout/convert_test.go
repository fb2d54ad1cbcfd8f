package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"turnout/internal/option"
	"turnout/internal/togateway"
)

// lossy is a Route of which something has no equal in the Gateway API, at line 6.
const lossy = `apiVersion: route.openshift.io/v1
kind: Route
metadata:
  name: app
  annotations:
    haproxy.router.openshift.io/timeout-tunnel: 1h
spec:
  host: app.test
  to: {kind: Service, name: app}
  port: {targetPort: 8080}
`

// TestConvert: objects on standard output, the report elsewhere, and an exit status for each outcome.
func TestConvert(t *testing.T) {
	file := write(t, t.TempDir(), "app.yaml", []byte(lossy))
	for _, c := range []struct {
		name      string
		args      []string
		stdin     string
		fails     error
		out, says string
	}{
		{"a file", []string{file}, "", nil, "kind: HTTPRoute\nmetadata:\n  name: app\n", file + ":6: no equal: Route default/app: annotation haproxy.router.openshift.io/timeout-tunnel: "},
		{"what is made", []string{file}, "", nil, "namespace: turnout", "ok: Route default/app: HTTPRoute default/app\n1 objects converted; 1 have no equal in some respect"},
		{"standard input", []string{"-"}, lossy, nil, "kind: HTTPRoute", "stdin:6: no equal: "},
		{"strictly", []string{"--strict", file}, "", togateway.ErrNoEqual, "kind: HTTPRoute", "no equal: "},
		{"strictly, without a loss", []string{"--strict", "-"}, strings.Replace(lossy, "timeout-tunnel", "timeout", 1), nil, "kind: HTTPRoute", "differs: "},
		{"left out", []string{"-"}, strings.Replace(lossy, "timeout-tunnel: 1h", "ip_allowlist: 10.0.0.1", 1), togateway.ErrLeftOut, "", "stdin:6: left out: "},
		{"unguarded", []string{"--unguarded", "-"}, strings.Replace(lossy, "timeout-tunnel: 1h", "ip_allowlist: 10.0.0.1", 1), nil, "kind: HTTPRoute", "stdin:6: no equal: "},
		{"a Route that is rejected", []string{"-"}, strings.Replace(lossy, "host:", "wildcardPolicy: Subdomain\n  host:", 1), togateway.ErrLeftOut, "", "rejected: default/app"},
		{"no document", []string{"-"}, "kind: Route\napiVersion: route.openshift.io/v1\nspec: {path: x}\n", togateway.ErrLeftOut, "", "error: "},
		{"another Gateway and class", []string{"--gateway", "infra/public", "--class", "other", "--http-listener", "8080", file}, "", nil, "gatewayClassName: other\n  listeners:", "ok: "},
		{"options of the router", []string{"--router-domain", "apps.test", "-"}, strings.Replace(lossy, "host: app.test", "subdomain: app", 1), nil, "- app.apps.test", "ok: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, report bytes.Buffer
			if err := runOnce(t.Context(), "convert", c.args, envOf(), strings.NewReader(c.stdin), &out, &report); !errors.Is(err, c.fails) {
				t.Errorf("%v", err)
			}
			if !strings.Contains(out.String(), c.out) || !strings.Contains(report.String(), c.says) {
				t.Errorf("no %q in\n%s\nor no %q in\n%s", c.out, &out, c.says, &report)
			}
		})
	}
	if err := runOnce(t.Context(), "convert", []string{"--gateway", "public", file}, envOf(), nil, nil, nil); !errors.As(err, &option.UsageError{}) {
		t.Errorf("a Gateway without a namespace: %v", err)
	}
	if err := runOnce(t.Context(), "convert", nil, envOf(), nil, nil, nil); !errors.As(err, &option.UsageError{}) || !strings.Contains(err.Error(), "convert needs a folder or file") {
		t.Errorf("nothing to read: %v", err)
	}
}

// TestConvertForMachines: a List of objects, and a report as JSON in a file.
func TestConvertForMachines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	var out, diagnostics bytes.Buffer
	if err := runOnce(t.Context(), "convert", []string{"-o", "json", "--report", file, "-"}, envOf(), strings.NewReader(lossy), &out, &diagnostics); err != nil || diagnostics.Len() > 0 {
		t.Errorf("%v, %s", err, &diagnostics)
	}
	var list struct {
		Kind  string
		Items []struct{ Kind string }
	}
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || list.Kind != "List" || len(list.Items) != 3 || list.Items[2].Kind != "HTTPRoute" {
		t.Errorf("%v, %s", err, &out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Made     []struct{ Object string }
		Findings []struct {
			Severity, Object, Field string
			Line                    int
		}
	}
	if err := json.Unmarshal(text, &report); err != nil || len(report.Made) != 1 || report.Made[0].Object != "Route default/app" {
		t.Errorf("%v, %s", err, text)
	}
	found := false
	for _, f := range report.Findings {
		found = found || f.Severity == "no equal" && f.Line == 6 && f.Object == "Route default/app" && strings.HasSuffix(f.Field, "timeout-tunnel")
	}
	if !found {
		t.Errorf("%s", text)
	}
}

// TestConvertCluster: the Routes of a cluster are converted, and nothing is written there.
func TestConvertCluster(t *testing.T) {
	server := httptest.NewTLSServer(&tinyAPI{wrote: make(chan string, 1)})
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	for _, args := range [][]string{nil, {"--namespace-labels", "served=yes"}} {
		var out, report bytes.Buffer
		err := runOnce(t.Context(), "convert", append([]string{"--kubeconfig", kubeconfig(t, server.URL)}, args...), envOf(), nil, &out, &report)
		if err != nil && !errors.Is(err, togateway.ErrLeftOut) || !strings.Contains(report.String(), "a.test") && !strings.Contains(out.String(), "a.test") {
			t.Errorf("%v\n%s\n%s", err, &out, &report)
		}
	}
}
