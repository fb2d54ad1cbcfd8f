//go:build image

package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"turnout/deploy/examples"
	"turnout/internal/testkit/testhttp"
)

// maxSize of the image in bytes. The binary is all there is.
const maxSize = 40 << 20

func TestContents(t *testing.T) {
	inspect := func(format string) string {
		return output(t, podman(limited(t), "image", "inspect", "--format", format, name))
	}
	if user, err := strconv.Atoi(inspect("{{.Config.User}}")); err != nil || user == 0 {
		t.Errorf("user %d, %v: runAsNonRoot needs a number other than 0", user, err)
	}
	size, err := strconv.Atoi(inspect("{{.Size}}"))
	if err != nil || size > maxSize {
		t.Errorf("%d bytes, %v; at most %d", size, err, maxSize)
	}
	t.Logf("size of the image: %.1f MiB", float64(size)/(1<<20))
	if got := inspect("{{.Config.Entrypoint}} {{index .Labels \"org.opencontainers.image.version\"}}"); got != "[/usr/bin/turnout] "+version {
		t.Errorf("entry point and version: %s", got)
	}

	id := output(t, podman(limited(t), "create", name))
	t.Cleanup(func() { output(t, podman(context.Background(), "rm", id)) })
	export := podman(limited(t), "export", id)
	archive, err := export.Output()
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeDir {
			files = append(files, h.Name)
		}
	}
	slices.Sort(files)
	if want := []string{"usr/bin/openshift-router", "usr/bin/turnout"}; !slices.Equal(files, want) {
		t.Errorf("files %v, want %v", files, want)
	}
}

func TestVersion(t *testing.T) {
	for _, program := range []string{"/usr/bin/turnout", "/usr/bin/openshift-router"} {
		args := append([]string{"run", "--rm", "--network", "none", "--entrypoint", program}, asInACluster()...)
		if got := output(t, podman(limited(t), append(args, name, "version")...)); !strings.HasPrefix(got, "turnout "+version+" go1.") {
			t.Errorf("%s version: %s", program, got)
		}
	}
}

// manifests is a folder with the examples of the demo and an endpoint at addr for
// the service of host-route.
func manifests(t *testing.T, addr net.Addr) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, examples.Files()); err != nil {
		t.Fatal(err)
	}
	slice := fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: host-service-1
  namespace: examples
  labels: {kubernetes.io/service-name: host-service}
addressType: IPv4
ports: [{name: http, port: %d}]
endpoints: [{addresses: [127.0.0.1]}]
`, addr.(*net.TCPAddr).Port)
	if err := os.WriteFile(filepath.Join(dir, "host-service-endpoints.yaml"), []byte(slice), 0o644); err != nil {
		t.Fatal(err)
	}
	// The router's user is neither root nor this one.
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return errors.Join(err, os.Chmod(path, 0o644))
		}
		return os.Chmod(path, 0o755)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// get returns status and body of a GET for host at addr.
func get(t *testing.T, addr any, host, path string) (int, string) {
	t.Helper()
	return testhttp.Page(t, fmt.Sprintf("http://%v%s", addr, path), host)
}

// TestPage runs the image on ports of the system's choice and gets a page of a
// backend through it, looks at the process, and stops it.
func TestPage(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "page "+r.URL.Path)
	}))
	defer backend.Close()
	options := append(asInACluster(), "--network", "host", "-v", manifests(t, backend.Listener.Addr())+":/manifests:ro",
		"--env", "ROUTER_GRACEFUL_SHUTDOWN_DELAY=100ms")
	c := start(t, "page", options, name, "run", "--manifests", "/manifests",
		"--http-addr", "127.0.0.1:0", "--https-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0")

	if status, body := get(t, c.listened["http"], "host-route.example.com", "/a"); status != 200 || body != "page /a" {
		t.Errorf("page: %d %q", status, body)
	}
	for _, path := range []string{"/healthz", "/healthz/ready", "/metrics"} {
		if status, body := get(t, c.listened["admin"], "", path); status != 200 {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
	checkProcess(t, c.pid(), "1001")

	output(t, podman(limited(t), "kill", "--signal", "TERM", c.name))
	if log, status := c.rest(); status != 0 || strings.Contains(log, `"level":"error"`) {
		t.Errorf("exit status %d", status)
	}
}

// checkProcess looks at a router as the kernel sees it.
func checkProcess(t *testing.T, pid, user string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		t.Fatal(err)
	}
	const onlyNetBindService = "0000000000000400"
	want := map[string]string{"Uid": user, "NoNewPrivs": "1", "CapEff": onlyNetBindService, "CapPrm": onlyNetBindService,
		"CapBnd": onlyNetBindService, "CapAmb": "0000000000000000"}
	for line := range strings.Lines(string(text)) {
		field := strings.Fields(line)
		if len(field) < 2 {
			continue
		}
		key := strings.TrimSuffix(field[0], ":")
		if w, ok := want[key]; ok && w != field[1] {
			t.Errorf("%s is %s, want %s", key, field[1], w)
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("/proc/%s/status lacks %v", pid, want)
	}
	mounts, err := os.ReadFile(filepath.Join("/proc", pid, "mountinfo"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		// The fifth field is the place, the sixth its options.
		if f := strings.Fields(line); f[4] == "/" && !slices.Contains(strings.Split(f[5], ","), "ro") {
			t.Errorf("the root file system can be written: %s", line)
		}
	}
}

// TestPrivilegedPorts runs the image with the command line of the OpenShift
// operator's Deployment, as a user that OpenShift made up, on ports 80, 443 and 1936
// of a network of its own.
func TestPrivilegedPorts(t *testing.T) {
	const user = "1000680000"
	ln, err := net.Listen("tcp", "127.0.0.1:0") // its port: nobody listens there in the router's network
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	options := append(asInACluster(), "--network", "none", "--user", user+":0", "--entrypoint", "/usr/bin/openshift-router",
		"-v", manifests(t, ln.Addr())+":/manifests:ro")
	c := start(t, "ports", options, name, "--v=2", "--manifests=/manifests")
	if c.listened["http"] != "0.0.0.0:80" || c.listened["https"] != "0.0.0.0:443" {
		t.Errorf("listening: %v", c.listened)
	}
	if n := strings.Count(c.seen.String(), "flags of the OpenShift router that have no effect here: --v"); n != 1 {
		t.Errorf("%d lines about --v, want 1", n)
	}
	pid := c.pid()
	checkProcess(t, pid, user)
	curl := func(args ...string) string {
		args = append([]string{"-t", pid, "-n", "curl", "-sk", "--noproxy", "*", "--max-time", "20", "-o", os.DevNull, "-w", "%{http_code}"}, args...)
		return output(t, exec.CommandContext(limited(t), "nsenter", args...))
	}
	for _, want := range []struct{ status, url, host string }{
		{"302", "http://127.0.0.1/", "route-edge-secured-redirect-insecure.example.com"},
		{"503", "http://127.0.0.1/", "host-route.example.com"},
		{"503", "https://127.0.0.1/", "unknown.example.com"},
		{"200", "http://127.0.0.1:1936/healthz/ready", "localhost"},
	} {
		if got := curl("-H", "Host: "+want.host, want.url); got != want.status {
			t.Errorf("%s for %s: %s, want %s", want.url, want.host, got, want.status)
		}
	}

	output(t, podman(limited(t), "kill", "--signal", "INT", c.name))
	if _, status := c.rest(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// TestWithoutCapability: a pod that drops all capabilities and adds none back does
// not start; deploy/README.md says so.
func TestWithoutCapability(t *testing.T) {
	c := podman(limited(t), "run", "--rm", "--network", "none", "--cap-drop", "ALL", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=1000:1000",
		name, "version")
	if text, err := c.CombinedOutput(); err == nil || !strings.Contains(string(text), "operation not permitted") {
		t.Errorf("%v: %s", err, text)
	}
}
