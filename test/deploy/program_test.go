package deploy

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"turnout/internal/testkit/testhttp"
)

// options are the variables of the table in docs/options.md; a test next to the
// options compares it with the code.
func options(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "options.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"ROUTER_SERVICE_NAMESPACE": true} // ROUTER_SERVICE_NAME asks for it
	for _, m := range regexp.MustCompile("(?m)^\\| `--[a-z0-9-]+` \\| `([A-Z0-9_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		known[m[1]] = true
	}
	if len(known) < 20 {
		t.Fatalf("only %d variables found in docs/options.md", len(known))
	}
	return known
}

// TestVariables: every variable in the manifests is an option.
func TestVariables(t *testing.T) {
	loaded, known := load(t), options(t)
	check := func(file, name string) {
		if !known[name] {
			t.Errorf("%s sets %s, which has no effect", file, name)
		}
	}
	for _, w := range workloads(t, loaded) {
		for _, e := range w.template.Spec.Containers[0].Env {
			check(w.file, e.Name)
		}
	}
	for _, e := range the[*appsv1.Deployment](t, loaded, "shard/shard.yaml").Spec.Template.Spec.Containers[0].Env {
		check("shard/shard.yaml", e.Name)
	}
	variables := 0
	for file, k := range loaded.kustomizations {
		for _, p := range k.Patches {
			var operations []struct {
				Op    string          `json:"op"`
				Path  string          `json:"path"`
				Value json.RawMessage `json:"value"`
			}
			if err := yaml.UnmarshalStrict([]byte(p.Patch), &operations); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			for _, o := range operations {
				if !strings.HasSuffix(o.Path, "/env/-") {
					continue
				}
				var e corev1.EnvVar
				if err := yaml.UnmarshalStrict(o.Value, &e); err != nil {
					t.Errorf("%s: %v", file, err)
				}
				check(file, e.Name)
				variables++
			}
		}
	}
	if variables != 1 {
		t.Errorf("%d variables in patches, want that of the default certificate", variables)
	}
}

// TestProgram runs the real program with arguments and environment of each workload
// on other ports. Those that select nothing of a cluster serve a folder, and are
// asked what the probes and Prometheus ask.
func TestProgram(t *testing.T) {
	loaded := load(t)
	program := filepath.Join(t.TempDir(), "turnout")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/turnout")
	build.Dir = filepath.Join("..", "..")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	for _, w := range workloads(t, loaded) {
		if w.file == behindOperator {
			continue // it has the operator's Secrets: test/cluster runs it
		}
		c := w.template.Spec.Containers[0]
		admin := start(t, program, w.file, c, "ready", "--manifests", folder(t))
		for _, path := range []string{c.StartupProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path, "/metrics"} {
			if status := get(t, admin, path); status != http.StatusOK {
				t.Errorf("%s: %s: %d", w.file, path, status)
			}
		}
	}

	// This one selects routes, which only a cluster can. Nobody answers at this one.
	c := workloads(t, loaded)[0].template.Spec.Containers[0]
	const file = "shard/shard.yaml"
	c.Env = append(c.Env, the[*appsv1.Deployment](t, loaded, file).Spec.Template.Spec.Containers[0].Env...)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	const nobody = `{"apiVersion": "v1", "kind": "Config", "current-context": "x", "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
		"users": [{"name": "x", "user": {}}], "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(nobody), 0o600); err != nil {
		t.Fatal(err)
	}
	admin := start(t, program, file, c, "listening", "--kubeconfig", kubeconfig)
	if live, ready := get(t, admin, c.LivenessProbe.HTTPGet.Path), get(t, admin, c.ReadinessProbe.HTTPGet.Path); live != 200 || ready != 500 {
		t.Errorf("without an API server: live %d, ready %d; want 200, 500", live, ready)
	}
}

// folder holds one example.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	example, err := os.ReadFile(filepath.Join("..", "..", "deploy", "examples", "host-route.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "route.yaml"), example, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// start runs the program as container until the log has the line until, and returns
// the address of its admin server. No line before may be a complaint.
func start(t *testing.T, program, file string, container corev1.Container, until string, more ...string) string {
	t.Helper()
	args := slices.Concat(container.Args, []string{"--http-addr", "127.0.0.1:0", "--https-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"}, more)
	p := exec.CommandContext(t.Context(), program, args...)
	p.Env = []string{}
	for _, e := range container.Env {
		if e.ValueFrom != nil {
			e.Value = "turnout" // the namespace
		}
		p.Env = append(p.Env, e.Name+"="+e.Value)
	}
	pipe, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(3*time.Minute, func() { _ = p.Process.Kill() })
	t.Cleanup(func() {
		watchdog.Stop()
		_ = p.Process.Kill() // it has nothing to finish
		_ = p.Wait()         // killed
	})
	admin := ""
	for lines := bufio.NewReader(pipe); ; {
		text, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: no line %q: %v", file, until, err)
		}
		var line struct{ Level, Msg, Admin string }
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%s: %v: %s", file, err, text)
		}
		if line.Level != "info" {
			t.Errorf("%s: the program complains: %s", file, text)
		}
		if line.Msg == "listening" {
			admin = line.Admin
		}
		if line.Msg == until {
			return admin
		}
	}
}

// get returns the status of a GET of the admin server.
func get(t *testing.T, admin, path string) int {
	t.Helper()
	status, _ := testhttp.Page(t, "http://"+admin+path, "")
	return status
}
