// Package process starts programs, watches them and does to them what goes wrong with
// programs: they stop answering, and they die.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Spec is a program to start.
type Spec struct {
	Path   string
	Args   []string
	Env    []string  // whole environment
	Output io.Writer // standard output and error
}

// Process is a started program.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid after done
}

// Start starts the program. It ends with the test at the latest.
func Start(spec Spec) (*Process, error) {
	p := &Process{cmd: exec.Command(spec.Path, spec.Args...), done: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = spec.Env, spec.Output, spec.Output
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", spec.Path, err)
	}
	go p.wait()
	return p, nil
}

func (p *Process) wait() {
	p.err = p.cmd.Wait()
	close(p.done)
}

// PID is the number of the process in this process namespace.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the process ended, nil for success. It is valid when Done is closed.
func (p *Process) Err() error { return p.err }

// Pause stops the process from running; its connections stay open.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume ends what Pause began.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// Kill ends the process without its knowledge and waits for the end.
func (p *Process) Kill() error {
	err := p.signal(syscall.SIGKILL)
	<-p.done
	return err
}

// Stop asks the process to end and waits. It is killed after the patience.
func (p *Process) Stop(patience time.Duration) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.err
	case <-timer.C:
		return errors.Join(fmt.Errorf("%s did not end within %v of SIGTERM", p.cmd.Path, patience), p.Kill())
	}
}

func (p *Process) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot signal %s: %w", p.cmd.Path, err)
	}
	return nil
}
