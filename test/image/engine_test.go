//go:build image

package image

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	name    = "localhost/turnout-under-test"
	version = "v0.0.0-under-test"
)

// store is where the image and its containers live: nothing of the machine's own
// storage is touched, and vfs works on every file system.
var store string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if err := build(); err != nil {
			fmt.Fprintln(os.Stderr, "test/image:", err)
			return 1
		}
		defer func() {
			if err := os.RemoveAll(store); err != nil {
				fmt.Fprintln(os.Stderr, "test/image: cannot clean up:", err)
			}
		}()
		return m.Run()
	}())
}

// build makes the image as a user does, with make image.
func build() error {
	if os.Geteuid() != 0 {
		return errors.New("needs root, because it runs containers")
	}
	var missing []string
	for _, tool := range []string{"make", "buildah", "podman", "runc", "nsenter", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, tool)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("needs %s; on Debian: apt-get install make buildah podman runc util-linux curl", strings.Join(missing, ", "))
	}
	var err error
	if store, err = os.MkdirTemp("", "turnout-image-"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	// -s: its lines are not ours. MAKEFLAGS of a make around us are not for this one.
	c := exec.CommandContext(ctx, "make", "-s", "image", "IMAGE="+name, "VERSION="+version, "BUILDER=buildah "+strings.Join(storage(), " "))
	c.Dir = filepath.Join("..", "..")
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("make image: %w\n%s", err, text)
	}
	return nil
}

func storage() []string {
	return []string{"--root", filepath.Join(store, "root"), "--runroot", filepath.Join(store, "run"), "--storage-driver", "vfs"}
}

// podman is a podman command on the store.
func podman(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "podman", append(append(storage(), "--runtime", "runc", "--cgroup-manager", "cgroupfs"), args...)...)
}

// output runs c, which must succeed, and returns what it printed.
func output(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	c.Stderr = &stderr
	text, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(c.Args, " "), err, stderr.Bytes())
	}
	return strings.TrimSpace(string(text))
}

// patience is how long anything may take on a machine with more to do.
const patience = 3 * time.Minute

// limited returns a context of the test that ends when patience does.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// asInACluster are the options that Kubernetes gives a container with the
// securityContext of deploy/manifests. The limits are those that a sandbox without
// CAP_SYS_RESOURCE can set.
func asInACluster() []string {
	return []string{"--read-only", "--read-only-tmpfs=false", "--cap-drop", "ALL", "--cap-add", "NET_BIND_SERVICE",
		"--security-opt", "no-new-privileges", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=1000:1000"}
}

// container is a running router.
type container struct {
	t        *testing.T
	name     string
	run      *exec.Cmd
	log      *bufio.Reader
	seen     strings.Builder // of the log
	listened map[string]any  // the line "listening"
}

// start runs the image with options and args and waits until the router is ready.
func start(t *testing.T, name string, options []string, args ...string) *container {
	t.Helper()
	c := &container{t: t, name: name}
	c.run = podman(t.Context(), append(append([]string{"run", "--name", c.name}, options...), args...)...)
	pipe, err := c.run.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.log = bufio.NewReader(pipe)
	if err := c.run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if text, err := podman(ctx, "rm", "-f", "-t", "0", c.name).CombinedOutput(); err != nil {
			t.Errorf("podman rm: %v\n%s", err, text)
		}
		if t.Failed() {
			t.Logf("log of the router:\n%s", c.seen.String())
		}
	})
	// A router that hangs ends with its container, and so the log.
	watchdog := time.AfterFunc(patience, func() { _ = podman(context.Background(), "kill", c.name).Run() })
	t.Cleanup(func() { watchdog.Stop() })
	c.listened = c.line("listening")
	c.line("ready")
	return c
}

// line reads the log up to the line with msg.
func (c *container) line(msg string) map[string]any {
	c.t.Helper()
	for {
		text, err := c.log.ReadString('\n')
		c.seen.WriteString(text)
		if err != nil {
			c.t.Fatalf("no line %q in the log: %v\n%s", msg, err, c.seen.String())
		}
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) == nil && line["msg"] == msg {
			return line
		}
	}
}

// rest reads the log to its end and returns all of it and the exit status.
func (c *container) rest() (log string, status int) {
	c.t.Helper()
	text, err := io.ReadAll(c.log)
	if err != nil {
		c.t.Fatal(err)
	}
	c.seen.Write(text)
	err = c.run.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return c.seen.String(), exit.ExitCode()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return c.seen.String(), 0
}

// pid of the router, as this machine sees it.
func (c *container) pid() string {
	return output(c.t, podman(limited(c.t), "inspect", "--format", "{{.State.Pid}}", c.name))
}
