package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// role is set in the environment of a process that is to be a sandbox instead of a test.
const role = "TURNOUT_SANDBOX_TEST"

// code is what the process inside ends with.
const code = 7

func TestMain(m *testing.M) {
	if os.Getenv(role) == "" {
		os.Exit(m.Run())
	}
	cfg := Config{Dir: os.Getenv(role), Started: func(pid int) { fmt.Println("pid", pid) }}
	if !Inside() {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		cfg.Forwards = []Forward{{Listener: listener, To: Address + ":80"}}
		fmt.Println("port", listener.Addr())
	}
	os.Exit(Run(cfg, inside))
}

// inside answers one connection to port 80 and ends when its standard input does.
func inside(dir string) int {
	listener, err := net.Listen("tcp", Address+":80")
	if err != nil {
		panic(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), nil, 0o644), os.Mkdir(filepath.Join(cgroupRoot, "memory", Cgroup()), 0o755)); err != nil {
		panic(err)
	}
	fmt.Println("cgroup", Cgroup())
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_, _ = io.WriteString(conn, "from inside")
			_ = conn.Close()
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
	return code
}

// start starts a sandbox and returns what it says, by first word.
func start(t *testing.T, dir string) (cmd *exec.Cmd, stdin io.WriteCloser, stdout io.Reader, said map[string]string) {
	t.Helper()
	cmd = exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), role+"="+dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err = cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	said = map[string]string{}
	for lines := bufio.NewScanner(stdout); len(said) < 3 && lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		said[word] = rest
	}
	return cmd, stdin, stdout, said
}

// A port of this machine leads inside, the result comes out, and nothing is left behind.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	cmd, stdin, _, said := start(t, dir)
	conn, err := net.Dial("tcp", said["port"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if text, err := io.ReadAll(conn); err != nil || string(text) != "from inside" {
		t.Errorf("got %q, %v", text, err)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != code {
		t.Errorf("got %v, want exit code %d", err, code)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("left behind: %v, %v", files, err)
	}
	if _, err := os.Stat(filepath.Join(cgroupRoot, "memory", said["cgroup"])); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the control group is left behind: %v", err)
	}
}

// When the process outside is killed, the one inside dies, and the next sandbox removes the control group.
func TestKilled(t *testing.T) {
	cmd, _, stdout, said := start(t, t.TempDir())
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The process inside has the other end too.
	if _, err := io.Copy(io.Discard, stdout); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // how it ended is known
	next, stdin, _, _ := start(t, t.TempDir())
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	_ = next.Wait() // with code
	if _, err := os.Stat(filepath.Join(cgroupRoot, "memory", said["cgroup"])); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the control group is left behind: %v", err)
	}
}
