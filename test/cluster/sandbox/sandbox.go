// Package sandbox runs a program in a network, process and mount namespace of its own,
// so that API servers, routers, pods and clients have the addresses they would have in a
// cluster, and ports such as 80 are free.
//
// The kernel removes the namespaces, with every process and mount in them, when the
// program ends, however it ends. Control groups are the one thing that it cannot remove
// (see Cgroup).
package sandbox

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

// marker is set in the environment of the process inside, to the number that the process
// outside has there.
const marker = "TURNOUT_SANDBOX"

// Address is the address that connections come from when their maker does not choose.
const Address = "10.0.0.1"

// Config says what a sandbox is like.
type Config struct {
	// Dir is a folder that is empty memory inside; outside it stays as it is.
	Dir string
	// Local are networks of IPv4 all of whose addresses are the sandbox's own. None unless given.
	Local []netip.Prefix
	// Forwards are ports of this machine that lead into the sandbox. None unless given.
	Forwards []Forward
	// Programs are further programs that must be there, with the Debian package of each.
	Programs map[string]string
	// Started is called outside with the number that the process inside has there, if it is not nil.
	Started func(pid int)
}

// Inside reports whether this process is the one in the sandbox.
func Inside() bool { return os.Getenv(marker) != "" }

// Tests is Run for the tests of a package: start, the tests, and stop, which may be nil. What start and stop fail with is printed.
func Tests(m interface{ Run() int }, cfg Config, start func(dir string) error, stop func() error) int {
	return Run(cfg, func(dir string) int {
		if err := start(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if stop == nil {
			return code
		}
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	})
}

// Run calls run inside a sandbox and returns its result, an exit code. Outside of one it
// starts the running program again with the same arguments inside a new one.
func Run(cfg Config, run func(dir string) int) int {
	if Inside() {
		if err := prepare(cfg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return run(cfg.Dir)
	}
	if err := errors.Join(Check(cfg.Programs), os.MkdirAll(cfg.Dir, 0o755)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return enter(cfg)
}

// Check says everything that is missing, so that one round of repairs is enough. Each of
// the programs is named with its Debian package; ip and etcd are always needed.
func Check(programs map[string]string) error {
	var missing []error
	if os.Geteuid() != 0 {
		missing = append(missing, errors.New("root: network namespaces need it; run it with sudo"))
	}
	for _, needed := range []map[string]string{{"etcd": "etcd-server", "ip": "iproute2"}, programs} {
		for name, pkg := range needed {
			if _, err := exec.LookPath(name); err != nil {
				missing = append(missing, fmt.Errorf("%s: apt-get install %s", name, pkg))
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("cannot run a cluster here; missing:\n%w", errors.Join(missing...))
}

// enter starts this program in new namespaces and waits for its end.
func enter(cfg Config) int {
	// The child is killed when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer removeCgroups()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", marker, os.Getpid()))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	err := cmd.Start()
	if err == nil {
		defer relay(cmd.Process)()
		if cfg.Started != nil {
			cfg.Started(cmd.Process.Pid)
		}
		var stop func()
		if stop, err = forward(cfg.Forwards, cmd.Process.Pid); err == nil {
			defer stop()
		} else {
			fmt.Fprintln(os.Stderr, err)
			_ = cmd.Process.Kill()
		}
		err = cmd.Wait()
	}
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

// relay lets the process inside decide when to end: SIGTERM is passed on, and SIGINT has
// come to it too when it came from a terminal. stop ends that.
func relay(inside *os.Process) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM {
				_ = inside.Signal(s) // it may have ended
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

// prepare makes the namespaces usable.
func prepare(cfg Config) error {
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"none", "/", "", syscall.MS_REC | syscall.MS_PRIVATE},
		{"proc", "/proc", "proc", 0},
		{"tmpfs", "/run", "tmpfs", 0}, // for what a pod finds in /var/run/secrets
		{"tmpfs", cfg.Dir, "tmpfs", 0},
	} {
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("cannot mount %s on %s: %w", m.source, m.target, err)
		}
	}
	lines := []string{"link set lo up", "addr add " + Address + "/32 dev lo"}
	for _, prefix := range cfg.Local {
		lines = append(lines, "route add local "+prefix.String()+" dev lo src "+Address)
	}
	for _, line := range lines {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("cannot run ip %s: %w: %s", line, err, out)
		}
	}
	return nil
}
