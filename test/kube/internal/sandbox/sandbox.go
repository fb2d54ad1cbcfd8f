// Package sandbox runs a test binary in a network, process and mount namespace of its
// own. All of 10.0.0.0/8 is local there, so that API servers, routers, pods and clients
// have the addresses they would have in a cluster, and ports such as 80 are free.
//
// The kernel removes the namespaces, with every process and mount in them, when the test
// process ends, however it ends.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// marker is set in the environment of the process inside.
const marker = "TURNOUT_SANDBOX"

// Address is the address that connections come from when their maker does not choose.
const Address = "10.0.0.1"

// Run calls run inside a sandbox and returns its result, an exit code. Outside of one it
// starts the running program again with the same arguments inside a new one. dir is a
// folder that is empty memory inside; outside it stays as it is.
func Run(dir string, run func(dir string) int) int {
	if os.Getenv(marker) != "" {
		if err := prepare(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return run(dir)
	}
	if err := errors.Join(Check(), os.MkdirAll(dir, 0o755)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return enter()
}

// Check says everything that is missing, so that one round of repairs is enough.
func Check() error {
	var missing []error
	if os.Geteuid() != 0 {
		missing = append(missing, errors.New("root: network namespaces need it; run sudo make e2e"))
	}
	for name, pkg := range map[string]string{"etcd": "etcd-server", "ip": "iproute2"} {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, fmt.Errorf("%s: apt-get install %s", name, pkg))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("cannot run the tests on a real API server; missing:\n%w", errors.Join(missing...))
}

// enter starts this program in new namespaces and waits for its end.
func enter() int {
	// The child is killed when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), marker+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	err := cmd.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return max(ended.ExitCode(), 1)
	}
	fmt.Fprintf(os.Stderr, "cannot start in namespaces of its own: %v\n(a container needs --privileged for this)\n", err)
	return 1
}

// prepare makes the namespaces usable.
func prepare(dir string) error {
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"none", "/", "", syscall.MS_REC | syscall.MS_PRIVATE},
		{"proc", "/proc", "proc", 0},
		{"tmpfs", "/run", "tmpfs", 0}, // for what a pod finds in /var/run/secrets
		{"tmpfs", dir, "tmpfs", 0},
	} {
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("cannot mount %s on %s: %w", m.source, m.target, err)
		}
	}
	for _, line := range []string{
		"link set lo up",
		"addr add " + Address + "/32 dev lo",
		"route add local 10.0.0.0/8 dev lo src " + Address,
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("cannot run ip %s: %w: %s", line, err, out)
		}
	}
	return nil
}
