package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Streams are what a program in a running container reads and writes; nil ones are empty.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Terminal gives the program a terminal, whose output is all in Stdout.
	Terminal bool
	// Resize tells sizes of the terminal.
	Resize <-chan Size
}

// Size is that of a terminal, in characters.
type Size struct{ Rows, Columns uint16 }

// ExitError says that a program in a container ended with another code than 0.
type ExitError struct{ Code int }

func (e *ExitError) Error() string {
	return fmt.Sprintf("command terminated with exit code %d", e.Code)
}

// Exec runs a program in the container as the container's user, with the container's
// environment and rights, and waits for it. Its error is an *ExitError when the program ran
// and failed. The end of ctx kills the program.
func (c *Running) Exec(ctx context.Context, args []string, streams Streams) error {
	dir, err := os.MkdirTemp(c.runtime.bundle(c.id), "exec-")
	if err != nil {
		return fmt.Errorf("cannot run %q, as the container is gone: %w", args, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	process := *c.spec.Process
	process.Args, process.Terminal = args, streams.Terminal
	text, err := json.Marshal(process)
	if err != nil {
		return err
	}
	processFile, pidFile, logFile := filepath.Join(dir, "process.json"), filepath.Join(dir, "pid"), filepath.Join(dir, "log")
	if err := os.WriteFile(processFile, text, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "runc", "--root", c.runtime.state(), "--log", logFile, "--log-format", "json",
		"exec", "--process", processFile, "--pid-file", pidFile, c.id)
	// runc cannot pass SIGKILL on. It ends when the program has ended, which leads a session
	// and so a process group.
	cmd.Cancel = func() error {
		for end := time.Now().Add(patience); time.Now().Before(end); {
			if pid, err := readPID(pidFile); err == nil {
				return unix.Kill(-pid, unix.SIGKILL)
			}
			// It has not started the program yet, or has failed.
			if err := cmd.Process.Signal(unix.Signal(0)); err != nil {
				return err
			}
			<-time.After(10 * time.Millisecond)
		}
		return cmd.Process.Kill()
	}
	cmd.WaitDelay = 2 * time.Second
	if streams.Terminal {
		err = withTerminal(cmd, streams)
	} else {
		err = withPipes(cmd, streams)
	}
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("command %q: %w", args, context.Cause(ctx))
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	case errors.As(err, &ended):
		// runc's own failures have the codes of a shell that cannot start the program.
		if message := runcError(logFile); message != "" && ended.ExitCode() == 255 {
			return fmt.Errorf("cannot run %q in the container: %s", args, message)
		}
		return &ExitError{Code: max(ended.ExitCode(), 1)}
	}
	return err
}

// withPipes runs cmd. Its end does not wait for a Stdin that nobody closes.
func withPipes(cmd *exec.Cmd, streams Streams) error {
	cmd.Stdout, cmd.Stderr = streams.Stdout, streams.Stderr
	if streams.Stdin == nil {
		return cmd.Run()
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(stdin, streams.Stdin)
		stdin.Close()
	}()
	return cmd.Wait()
}

// withTerminal runs cmd at a terminal of its own.
func withTerminal(cmd *exec.Cmd, streams Streams) error {
	terminal, err := pty.Start(cmd)
	if err != nil {
		return err
	}
	defer terminal.Close()
	ended := make(chan struct{})
	defer close(ended)
	go resize(terminal, streams.Resize, ended)
	if streams.Stdin != nil {
		go func() { _, _ = io.Copy(terminal, streams.Stdin) }()
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		if streams.Stdout != nil {
			_, _ = io.Copy(streams.Stdout, terminal) // ends with EIO when the other side is closed
		}
	}()
	err = cmd.Wait()
	<-copied
	return err
}

// resize sets the sizes that come until ended.
func resize(terminal *os.File, sizes <-chan Size, ended <-chan struct{}) {
	for {
		select {
		case size, ok := <-sizes:
			if !ok {
				return
			}
			_ = pty.Setsize(terminal, &pty.Winsize{Rows: size.Rows, Cols: size.Columns})
		case <-ended:
			return
		}
	}
}
