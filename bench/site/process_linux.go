package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"turnout/bench/load"
)

// The cores of a router that has one of its own, and of everything else.
const (
	RouterCore = 0
	LoadCore   = 1
)

// Apart binds this process, and the children it starts from now on, to LoadCore, which leaves RouterCore to a router that is
// Alone. On a machine with one core it does nothing and returns false.
func Apart() (bool, error) {
	if runtime.NumCPU() < 2 {
		return false, nil
	}
	return true, load.PinSelf(LoadCore)
}

// RealTime gives this process, and the children it starts from now on, a real-time priority: whatever else runs on the machine,
// those who attack a router above all, then does not take their time. It returns false without the permission (CAP_SYS_NICE).
func RealTime() bool { return load.RealTime() == nil }

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

// Talker is a child of this process that is spoken to through its input and output. Its error output is this process's.
type Talker struct {
	In  io.WriteCloser
	Out io.Reader

	cmd *exec.Cmd
}

// StartTalker starts cmd. Wait must be called; the child ends with this process at the latest.
func StartTalker(cmd *exec.Cmd) (*Talker, error) {
	p := &Talker{cmd: cmd}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err1, err2 error
	p.In, err1 = cmd.StdinPipe()
	p.Out, err2 = cmd.StdoutPipe()
	err := errors.Join(err1, err2)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", cmd, err)
	}
	return p, nil
}

// Wait waits for the end of the child, whose output must have been read by then.
func (p *Talker) Wait() error {
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%s failed: %w", p.cmd, err)
	}
	return nil
}

// Reset closes a connection at once, with RST, so that no port is kept for later.
func Reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails on what is closed already
	}
	_ = c.Close()
}

// AnyCore leaves it to the system where a process runs.
const AnyCore = -1

// Process is a child of this process, which ends when this process does. Stop or Kill must be called.
type Process struct {
	name   string
	cmd    *exec.Cmd
	output *output
	exited chan struct{}
}

// StartProcess starts cmd on one core, or AnyCore. Name is what errors call it. What it writes is kept, not shown: see Tail.
func StartProcess(name string, cmd *exec.Cmd, core int) (*Process, error) {
	return startProcess(name, cmd, core, nil)
}

// startProcess calls line with each line of output that is not longer than tailSize; it may not keep it. Output that cmd has
// a place for already is left alone.
func startProcess(name string, cmd *exec.Cmd, core int, line func([]byte)) (*Process, error) {
	p := &Process{name: name, cmd: cmd, output: &output{each: line}, exited: make(chan struct{})}
	if cmd.Stdout == nil && cmd.Stderr == nil {
		cmd.Stdout, cmd.Stderr = p.output, p.output
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	var err error
	if core == AnyCore {
		err = cmd.Start()
	} else {
		err = load.OnCore(core, cmd.Start)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	go p.wait()
	return p, nil
}

func (p *Process) wait() {
	_ = p.cmd.Wait() // why it ended is in what it said; that it ended is what counts
	close(p.exited)
}

// stopPatience is more than the time a router gives to running requests when it is told to end.
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

// Signal sends a signal to the process.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("cannot signal %s: %w", p.name, err)
	}
	return nil
}

// ExitCode is that of a process that has ended, -1 if a signal ended it. Call it after Exited only.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Died is the error of a process that should not have ended: how it did, and its last words. Call it after Exited only.
func (p *Process) Died() error {
	return fmt.Errorf("cannot go on: %s ended (%v), its last words: %s", p.name, p.cmd.ProcessState, p.Tail())
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Tail is the end of what the process wrote to its output and error output, at most 4 KiB.
func (p *Process) Tail() string { return p.output.tail() }

// await returns when done is closed; an error when the process ends, or ctx does, before that.
func (p *Process) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-p.exited:
		return p.Died()
	case <-ctx.Done():
		return fmt.Errorf("cannot wait for %s: %w: %s", p.name, context.Cause(ctx), p.Tail())
	}
}

// output keeps the end of what is written and hands out its lines.
type output struct {
	each func(line []byte) // nil = nobody is interested

	mu   sync.Mutex
	line []byte // incomplete
	last []byte
}

// tailSize is how many bytes are kept.
const tailSize = 4 << 10

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = append(o.last, p...)
	if extra := len(o.last) - tailSize; extra > 0 {
		o.last = append(o.last[:0], o.last[extra:]...)
	}
	if o.each == nil {
		return len(p), nil
	}
	o.line = append(o.line, p...)
	rest := o.line
	for {
		line, after, ok := bytes.Cut(rest, []byte("\n"))
		if !ok {
			break
		}
		o.each(line)
		rest = after
	}
	if len(rest) > tailSize {
		rest = nil
	}
	o.line = append(o.line[:0], rest...)
	return len(p), nil
}

func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(string(o.last))
}
