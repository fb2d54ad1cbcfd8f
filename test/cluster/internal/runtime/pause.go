package runtime

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Pause is the first process of a process namespace that containers of a pod share. It
// sleeps, and ignores SIGCHLD, by which the kernel removes children that others left to it.
type Pause struct {
	process *os.Process
	done    chan struct{}
}

// StartPause makes a process namespace.
func StartPause() (*Pause, error) {
	cmd := exec.Command("bash", "-c", `trap "" CHLD; exec -a /pause sleep infinity`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot make a process namespace: %w", err)
	}
	p := &Pause{process: cmd.Process, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
	}()
	return p, nil
}

// Namespace is the path of the process namespace, for Container.ProcessNamespace.
func (p *Pause) Namespace() string { return fmt.Sprintf("/proc/%d/ns/pid", p.process.Pid) }

// Stop kills everything in the process namespace.
func (p *Pause) Stop() {
	_ = p.process.Kill()
	<-p.done
}
