package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Runtime starts containers. It is safe for concurrent use.
type Runtime struct {
	dir    string
	cgroup string
}

// Config is what a Runtime needs.
type Config struct {
	Dir    string // folder for bundles and runc's state; made if it is missing
	Cgroup string // parent of the containers' cgroups, such as /turnout-7; "" is /
}

// New returns a Runtime. This process becomes the parent of processes that its descendants
// leave behind.
func New(c Config) (*Runtime, error) {
	if _, err := exec.LookPath("runc"); err != nil {
		return nil, fmt.Errorf("cannot run containers: %w (Debian: apt-get install runc)", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("cannot become the parent of containers: %w", err)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	r := &Runtime{dir: dir, cgroup: c.Cgroup}
	if err := errors.Join(os.MkdirAll(r.state(), 0o700), os.MkdirAll(r.bundle(""), 0o711)); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Runtime) state() string           { return filepath.Join(r.dir, "runc") }
func (r *Runtime) bundle(id string) string { return filepath.Join(r.dir, "bundles", id) }

// runc is a command on the runtime's containers.
func (r *Runtime) runc(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "runc", append([]string{"--root", r.state()}, args...)...)
}

// Running is a started container.
type Running struct {
	runtime *Runtime
	spec    *specs.Spec
	id      string
	process *os.Process
	done    chan struct{}
	exit    Exit // valid after done
}

// Exit is how a container ended.
type Exit struct {
	Code        int  // exit code; 128 + signal when a signal ended it
	Signal      int  // the signal, 0 for none
	OutOfMemory bool // the kernel ended a process of it at its memory limit
	Finished    time.Time
}

// Start starts the container and returns when its first process runs. Output goes to the
// container's Stdout and Stderr, which remain the caller's.
func (r *Runtime) Start(ctx context.Context, c *Container) (*Running, error) {
	spec := c.spec(r.cgroup)
	bundle := r.bundle(c.ID)
	if err := os.MkdirAll(bundle, 0o700); err != nil {
		return nil, err
	}
	config, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), config, 0o600); err != nil {
		return nil, err
	}
	pidFile, logFile := filepath.Join(bundle, "pid"), filepath.Join(bundle, "runc.log")
	cmd := exec.CommandContext(ctx, "runc", "--root", r.state(), "--log", logFile, "--log-format", "json",
		"run", "--detach", "--bundle", bundle, "--pid-file", pidFile, c.ID)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	if err := cmd.Run(); err != nil {
		reason := runcError(logFile)
		r.remove(c.ID)
		return nil, fmt.Errorf("cannot start %s: %w: %s", strings.Join(c.Process.Args, " "), err, reason)
	}
	pid, err := readPID(pidFile)
	if err != nil {
		r.remove(c.ID)
		return nil, err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		r.remove(c.ID)
		return nil, err
	}
	running := &Running{runtime: r, spec: spec, id: c.ID, process: process, done: make(chan struct{})}
	go running.wait()
	return running, nil
}

// wait waits for the end of the first process. The container stays until Remove.
func (c *Running) wait() {
	defer close(c.done)
	state, err := c.process.Wait()
	c.exit.Finished = time.Now()
	if err != nil {
		c.exit.Code = 255
		return
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	c.exit.Code = status.ExitStatus()
	if status.Signaled() {
		c.exit.Signal = int(status.Signal())
		c.exit.Code = 128 + c.exit.Signal
	}
	c.exit.OutOfMemory = c.outOfMemory()
}

// Done is closed when the container's first process has ended.
func (c *Running) Done() <-chan struct{} { return c.done }

// Exit is how the container ended. It is valid when Done is closed.
func (c *Running) Exit() Exit { return c.exit }

// PID is the first process of the container, as this process sees it.
func (c *Running) PID() int { return c.process.Pid }

// Signal sends a signal to the container's first process. One that has ended is no error.
func (c *Running) Signal(s unix.Signal) error {
	if err := c.process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot send %v to the container: %w", s, err)
	}
	return nil
}

// Kill ends the container's first process without its knowledge and waits for its end.
func (c *Running) Kill() error {
	err := c.Signal(unix.SIGKILL)
	<-c.done
	return err
}

// Remove kills what still runs of the container and frees what it held.
func (c *Running) Remove() {
	_ = c.Kill()
	c.runtime.remove(c.id)
}

// remove frees what runc holds for a container. In a process namespace that is shared, other
// processes of the container outlive its first one, until here.
func (r *Runtime) remove(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = r.runc(ctx, "kill", "--all", id, "KILL").Run()
	_ = r.runc(ctx, "delete", "--force", id).Run()
	_ = os.RemoveAll(r.bundle(id))
}

// patience is how long runc may take.
const patience = time.Minute

// outOfMemory reads the kernel's count of processes that it ended at the memory limit.
func (c *Running) outOfMemory() bool {
	for _, file := range []string{
		filepath.Join("/sys/fs/cgroup/memory", c.spec.Linux.CgroupsPath, "memory.oom_control"),
		filepath.Join("/sys/fs/cgroup", c.spec.Linux.CgroupsPath, "memory.events"),
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
			if n, err := strconv.Atoi(value); name == "oom_kill" && err == nil {
				return n > 0
			}
		}
	}
	return false
}

func readPID(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("cannot read %s: %w", file, err)
	}
	return pid, nil
}

// runcError is what runc wrote into its log about its end.
func runcError(file string) string {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "runc said nothing"
	}
	var last string
	for line := range bytes.Lines(text) {
		var entry struct{ Level, Msg string }
		if json.Unmarshal(line, &entry) == nil && entry.Level == "error" {
			last = entry.Msg
		}
	}
	return last
}
