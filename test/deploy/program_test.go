package deploy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// options are the variables that docs/options.md says have an effect; a test next
// to the options compares that page with the code.
func options(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "options.md"))
	if err != nil {
		t.Fatal(err)
	}
	there, _, found := strings.Cut(string(text), "## Variables that are not there yet")
	if !found {
		t.Fatal("docs/options.md has no section about variables that are not there yet")
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile("`([A-Z][A-Z0-9_]+)`").FindAllStringSubmatch(there, -1) {
		known[m[1]] = true
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
	for _, e := range the[*appsv1.Deployment](t, loaded, "openshift/deployment.yaml").Spec.Template.Spec.Containers[0].Env {
		check("openshift/deployment.yaml", e.Name)
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

// TestProgram runs the real program with arguments and environment of each workload,
// on a folder instead of the cluster and on other ports, and asks what the probes and
// Prometheus ask.
func TestProgram(t *testing.T) {
	loaded := load(t)
	program := filepath.Join(t.TempDir(), "turnout")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/turnout")
	build.Dir = filepath.Join("..", "..")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	more := the[*appsv1.Deployment](t, loaded, "openshift/deployment.yaml").Spec.Template.Spec.Containers[0].Env
	for i, w := range workloads(t, loaded) {
		c := w.template.Spec.Containers[0]
		run(t, program, w.file, c)
		if i == 0 {
			c.Env = append(c.Env, more...)
			run(t, program, "openshift/deployment.yaml", c)
		}
	}
}

func run(t *testing.T, program, file string, container corev1.Container) {
	t.Helper()
	dir := t.TempDir()
	example, err := os.ReadFile(filepath.Join("..", "..", "deploy", "examples", "host-route.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "route.yaml"), example, 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(append([]string{}, container.Args...), "--manifests", dir,
		"--http-addr", "127.0.0.1:0", "--https-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0")
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
	watchdog := time.AfterFunc(time.Minute, func() { _ = p.Process.Kill() })
	defer func() {
		watchdog.Stop()
		_ = p.Process.Kill() // it has nothing to finish
		_ = p.Wait()         // killed
	}()
	admin, lines := "", bufio.NewReader(pipe)
	for ready := false; !ready; {
		text, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: not ready: %v: %s", file, err, text)
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
		ready = line.Msg == "ready"
	}
	for _, path := range []string{container.StartupProbe.HTTPGet.Path, container.LivenessProbe.HTTPGet.Path, container.ReadinessProbe.HTTPGet.Path, "/metrics"} {
		resp, err := http.Get(fmt.Sprintf("http://%s%s", admin, path))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s: %s, %v", file, path, resp.Status, err)
		}
	}
}
