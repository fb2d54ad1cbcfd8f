package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"turnout/bench/site"
)

// marker is set in the environment of the process inside.
const marker = "TURNOUT_CHAOS"

// missing says everything that is not there, so that one round of repairs is enough.
func missing() error {
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("root: namespaces need it"))
	}
	for _, tool := range [][2]string{{"ip", "iproute2"}, {"iptables", "iptables"}} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			errs = append(errs, fmt.Errorf("%s: apt-get install %s", tool[0], tool[1]))
		}
	}
	if errs == nil {
		return nil
	}
	return fmt.Errorf("cannot make all faults; missing:\n%w", errors.Join(errs...))
}

// enter runs this program again in network, process and mount namespaces of its own, and returns its exit code. The kernel
// removes them, with all processes, mounts and rules in them, when the process inside ends, however it ends; and it ends
// with this one.
func enter() int {
	// The child is killed when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), marker+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	err := cmd.Start()
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: cannot make namespaces (a container needs --privileged for this): %v\n", err)
		return 1
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // it may have ended by itself
		}
	}()
	var ended *exec.ExitError
	if err = cmd.Wait(); errors.As(err, &ended) {
		return max(ended.ExitCode(), 1)
	}
	return 0
}

// logSpace is the size of the file system of the access log.
const logSpace = "size=256m"

// prepare makes the namespaces usable and returns a folder with nothing in it but the file system of the log.
func prepare(ctx context.Context) string {
	const dir = "/run"
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"none", "/", "", syscall.MS_REC | syscall.MS_PRIVATE, ""},
		{"proc", "/proc", "proc", 0, ""},
		{"tmpfs", dir, "tmpfs", 0, ""},
		{"tmpfs", dir + "/log", "tmpfs", 0, logSpace},
	} {
		err := errors.Join(os.MkdirAll(m.target, 0o755), syscall.Mount(m.source, m.target, m.kind, m.flags, m.data))
		site.Checkf(err, "cannot mount %s on %s", m.source, m.target)
	}
	out, err := exec.CommandContext(ctx, "ip", "link", "set", "lo", "up").CombinedOutput()
	site.Checkf(err, "cannot run ip link set lo up: %s", out)
	return dir
}
