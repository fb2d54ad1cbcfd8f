package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// TestBackend: a Service without pods is served from a port of this machine.
func TestBackend(t *testing.T) {
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "from the laptop") }))
	defer pod.Close()
	_, port, _ := net.SplitHostPort(pod.Listener.Addr().String())
	dir := t.TempDir()
	write(t, dir, "all.yaml", []byte(`apiVersion: v1
kind: Service
metadata: {name: app}
spec: {selector: {app: app}, ports: [{name: web, port: 80}]}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: app}
spec: {host: app.test, to: {kind: Service, name: app}, port: {targetPort: web}}
`))
	p := startRouter(t, nil, "--manifests", dir, "--backend", "default/app="+port, "--backend", "default/late=1")
	missing := func(want bool) {
		t.Helper()
		if _, text := get(t, "http://"+p.admin+"/problems", ""); strings.Contains(text, `"Service default/late"`) != want {
			t.Errorf("problems are %s, want a missing Service %v", text, want)
		}
	}
	missing(true)
	replace(t, filepath.Join(dir, "late.yaml"), []byte("apiVersion: v1\nkind: Service\nmetadata: {name: late}\nspec: {ports: [{port: 80}]}\n"))
	p.line("manifest repaired")
	missing(false)
	if status, text := get(t, "http://"+p.http+"/", "app.test"); status != 200 || text != "from the laptop" {
		t.Errorf("status %d, %q", status, text)
	}
	for _, c := range []struct{ args, want string }{
		{"--backend=x", `--backend "x" is not valid; allowed: NAMESPACE/SERVICE=PORT, such as default/app=3000`},
		{"--backend=default/app=3000 --kubeconfig=k", "--backend is for services of --manifests"},
	} {
		if _, _, err := parseOptions(strings.Fields(c.args), envOf()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.args, err)
		}
	}
}
