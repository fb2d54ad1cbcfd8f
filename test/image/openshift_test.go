//go:build image

package image

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// openshift is the image for the operator's Deployment.
const openshift = name + ":openshift"

// asOpenShift are the options of a container of the operator's pod: a user of the
// namespace's range, group 0, a root file system that is read-only.
func asOpenShift() []string {
	return []string{"--rm", "--network", "none", "--user", "1000680000:0", "--read-only", "--read-only-tmpfs=false",
		"--cap-drop", "KILL,MKNOD,SETGID,SETUID", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=1000:1000"}
}

// runs executes a command in the image and returns its exit status and what it printed.
func runs(t *testing.T, options []string, command ...string) (status int, stdout, stderr string) {
	t.Helper()
	args := append(append(append([]string{"run", "--entrypoint", command[0]}, asOpenShift()...), options...), openshift)
	c := podman(limited(t), append(args, command[1:]...)...)
	var out, complaints bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaints
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), out.String(), complaints.String()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, out.String(), complaints.String()
}

// TestOpenShiftImage executes what the operator's pods execute: the router, the init
// container, the sidecar with its probes; and what they do not.
func TestOpenShiftImage(t *testing.T) {
	if got := output(t, podman(limited(t), "image", "inspect", "--format", "{{.Config.Entrypoint}} {{.Config.User}}", openshift)); got != "[/usr/bin/openshift-router] 1001" {
		t.Errorf("entry point and user: %s", got)
	}
	if status, stdout, _ := runs(t, nil, "/usr/bin/openshift-router", "version"); status != 0 || !strings.HasPrefix(stdout, "turnout "+version) {
		t.Errorf("version: %d %q", status, stdout)
	}
	for _, command := range [][]string{{"/bin/sh"}, {"/bin/bash", "-c", "id"}, {"/sbin/rsyslogd", "-v"}, {"/var/lib/haproxy/start-haproxy", "-v"}} {
		if status, _, stderr := runs(t, nil, command...); status != 127 || !strings.Contains(stderr, "Turnout's stand-in for") {
			t.Errorf("%q: %d %q", command, status, stderr)
		}
	}

	volume := t.TempDir()
	if err := os.Chmod(volume, 0o777); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := runs(t, []string{"-v", volume + ":/mnt/config"}, "/bin/bash", "-c", "cp -R -p /var/lib/haproxy/* /mnt/config/"); status != 0 {
		t.Fatalf("init container: %d %q", status, stderr)
	}
	args := append([]string{"run", "--name", "sidecar", "--entrypoint", "/var/lib/haproxy/start-haproxy", "-v", volume + ":/var/lib/haproxy"}, asOpenShift()...)
	sidecar := podman(t.Context(), append(args, openshift, "-W", "-db", "-S", "/var/lib/haproxy/run/admin.sock,mode,600", "-f", "/var/lib/haproxy/conf/haproxy.config")...)
	pipe, err := sidecar.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sidecar.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = podman(context.Background(), "rm", "-f", "-t", "0", "sidecar").Run() })
	first := make([]byte, 512)
	if n, err := pipe.Read(first); err != nil || !strings.HasPrefix(string(first[:n]), "turnout stand-in, not HAProxy") {
		t.Fatalf("%q %v", first[:n], err)
	}
	for _, socket := range []string{"admin.sock", "haproxy.sock"} {
		probe := "echo show version | socat - /var/lib/haproxy/run/" + socket
		if got := output(t, podman(limited(t), "exec", "sidecar", "/bin/sh", "-c", probe)); !strings.HasPrefix(got, "turnout stand-in, not HAProxy") {
			t.Errorf("%s: %q", socket, got)
		}
	}
	pid := output(t, podman(limited(t), "inspect", "--format", "{{.State.Pid}}", "sidecar"))
	text, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] == "VmHWM:" {
			n, err := strconv.Atoi(f[1])
			t.Logf("sidecar: at most %d KiB resident", n)
			if err != nil || n > 5<<10 {
				t.Errorf("sidecar: %s", line)
			}
		}
	}
	output(t, podman(limited(t), "kill", "--signal", "TERM", "sidecar"))
	if err := sidecar.Wait(); err != nil {
		t.Errorf("the sidecar does not end well: %v", err)
	}
}
