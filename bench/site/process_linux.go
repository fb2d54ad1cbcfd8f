// Package site is what a measuring command measures: a router in a process of its own, on ports of loopback that the system
// chooses, before backends in the command's own process.
//
//	apart := site.Apart()                      // each on a core of its own
//	ahead := site.RealTime()                   // before those that attack it, which have LowPriority
//	pods := t.ServeHTTP(handler)               // or ServeConns
//	router := t.Start(site.Config{
//		Alone:     apart,
//		Manifests: route.String() + site.Service{Name: "service", Port: pods.Port()}.String(),
//	})
//	before := router.CPU()                     // and Resident, Descriptors, Metric
//
// A Process is any other child with the same care: it ends with this process, and the end of what it said is kept. A step that
// cannot be done ends the run: see Check and Try.
package site

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// LowPriority is cmd with the time which others leave: no real-time priority, and the lowest of the others.
func LowPriority(cmd *exec.Cmd) *exec.Cmd { return by(cmd, "chrt", "--other", "0", "nice", "-n", "19") }

// Idle is cmd with the time that nobody else wants (sched(7), SCHED_IDLE).
func Idle(cmd *exec.Cmd) *exec.Cmd { return by(cmd, "chrt", "--idle", "0") }

// by has another program start cmd.
func by(cmd *exec.Cmd, starter ...string) *exec.Cmd {
	cmd.Args = append(append(starter, cmd.Path), cmd.Args[1:]...)
	path, err := exec.LookPath(starter[0])
	if cmd.Path = path; err != nil {
		cmd.Err = err
	}
	return cmd
}

// Self is this program in a role, in a process of its own.
func Self(ctx context.Context, role string, args ...string) *exec.Cmd {
	path, err := os.Executable() // not /proc/self/exe, which LowPriority and Idle would take for their own
	cmd := exec.CommandContext(ctx, path, append([]string{role}, args...)...)
	if err != nil {
		cmd.Err = err
	}
	return cmd
}

// AnyCore leaves it to the system where a process runs.
const AnyCore = -1

// Process is a child of this process, which ends when this process does. Stop, Kill or Finish must be called.
type Process struct {
	In       io.WriteCloser
	Out, Err *Pipe // the same one unless the router was started with two

	name   string
	cmd    *exec.Cmd
	ready  chan struct{}
	exited chan struct{}
}

// StartProcess starts cmd on one core, or AnyCore. Name is what errors call it. ready is called with each line of its output until it
// returns true, see Await, and may not keep the line; nil = it is never ready.
func StartProcess(name string, cmd *exec.Cmd, core int, ready func(line []byte) bool) *Process {
	return startProcess(name, cmd, core, ready, false)
}

// startProcess has output and error output apart if two is set, in pipes that few lines fill; ready is about the second then.
func startProcess(name string, cmd *exec.Cmd, core int, ready func([]byte) bool, two bool) *Process {
	p := &Process{name: name, cmd: cmd, ready: make(chan struct{}), exited: make(chan struct{})}
	p.In = Must(cmd.StdinPipe())
	line := func(text []byte) {
		if ready != nil && ready(text) {
			ready = nil
			close(p.ready)
		}
	}
	both, stderr := newPipe(two, line)
	defer stderr.Close() // the child has its own
	p.Out, p.Err, cmd.Stdout, cmd.Stderr = both, both, stderr, stderr
	if two {
		out, stdout := newPipe(two, nil)
		defer stdout.Close()
		p.Out, cmd.Stdout = out, stdout
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if core == AnyCore {
		err = cmd.Start()
	} else {
		err = OnCore(core, cmd.Start)
	}
	Checkf(err, "cannot start %s", name)
	go p.wait()
	return p
}

// wait waits for the end of the process, and a second at most for the end of what it said: a child of its own may go on.
func (p *Process) wait() {
	_ = p.cmd.Wait()
	late := time.NewTimer(time.Second)
	defer late.Stop()
	for _, pipe := range []*Pipe{p.Out, p.Err} {
		select {
		case <-pipe.done:
		case <-late.C:
		}
	}
	close(p.exited)
}

// stopPatience is more than the time a router gives to running requests when it is signalled to end.
const stopPatience = 45 * time.Second

// Stop asks the process to end and waits until it is gone. One that does not end in 45 s is killed.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(os.Interrupt)
	late := time.NewTimer(stopPatience)
	defer late.Stop()
	select {
	case <-p.exited:
	case <-late.C:
		p.Kill()
	}
}

// Kill ends the process at once and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Finish ends the input of the process, by which it learns that its work is over, waits for its end, and returns the end of what
// it said. It ends the run unless the exit code is 0.
func (p *Process) Finish() string {
	_ = p.In.Close()
	<-p.exited
	if p.ExitCode() != 0 {
		Check(p.Died())
	}
	return p.Tail()
}

// Signal sends a signal to the process.
func (p *Process) Signal(sig os.Signal) {
	Checkf(p.cmd.Process.Signal(sig), "cannot signal %s", p.name)
}

// ExitCode is that of a process that has ended, -1 if a signal ended it. Call it after Exited only.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Died is the error of a process that should not have ended, nil if it has not: how it did, and its last words.
func (p *Process) Died() error {
	select {
	case <-p.exited:
		return fmt.Errorf("cannot go on: %s ended (%v), its last words: %s", p.name, p.cmd.ProcessState, p.Tail())
	default:
		return nil
	}
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Tail is the end of what the process wrote to its error output, and to its output unless that is apart, at most 4 KiB.
func (p *Process) Tail() string { return p.Err.Tail() }

// Await waits until the process is ready, or ends the run: when it ends before, or ctx does.
func (p *Process) Await(ctx context.Context) {
	select {
	case <-p.ready:
	case <-p.exited:
		Check(p.Died())
	case <-ctx.Done():
		Stopf("cannot wait for %s: %w: %s", p.name, context.Cause(ctx), p.Tail())
	}
}
