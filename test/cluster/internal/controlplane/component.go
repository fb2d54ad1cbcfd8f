package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"turnout/test/cluster/process"
)

// Patience with a component that was asked to end, and with one that starts.
const (
	stopPatience  = time.Minute // an API server lets its watches end first
	startPatience = 2 * time.Minute
)

// Component is one program of the control plane. Its methods wait for each other.
type Component struct {
	name string // of the program and its log
	path string
	args []string
	logs string                      // folder
	ask  func(context.Context) error // whether it serves; nil: nobody can be asked

	mu      sync.Mutex
	process *process.Process // nil before the first start
}

// Start starts the component, which must not be running, and waits until it serves.
func (c *Component) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.launch(); err != nil {
		return err
	}
	return c.wait(ctx)
}

// launch starts the component. The caller holds mu.
func (c *Component) launch() error {
	log, err := os.OpenFile(filepath.Join(c.logs, c.name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("cannot write the log of %s: %w", c.name, err)
	}
	defer log.Close()
	env := []string{"PATH=" + os.Getenv("PATH")}
	if collect, set := os.LookupEnv("GOGC"); set { // of whose machine is small
		env = append(env, "GOGC="+collect)
	}
	c.process, err = process.Start(process.Spec{Path: c.path, Args: c.args, Output: log, Env: env})
	return err
}

// wait waits until the component serves. The caller holds mu.
func (c *Component) wait(ctx context.Context) error {
	if c.ask == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.ask(ctx)
		if err == nil {
			return nil
		}
		log := filepath.Join(c.logs, c.name+".log")
		select {
		case <-tick.C:
		case <-c.process.Done():
			return fmt.Errorf("%s ended: %w; see %s", c.name, c.process.Err(), log)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; see %s", c.name, err, log)
		}
	}
}

// Stop asks the component to end and waits.
func (c *Component) Stop() error {
	return c.do(func(p *process.Process) error { return p.Stop(stopPatience) })
}

// End stops the component if it runs.
func (c *Component) End() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return nil
	}
	select {
	case <-c.process.Done():
		return nil
	default:
	}
	if err := c.process.Stop(stopPatience); err != nil && !errors.As(err, new(interface{ ExitCode() int })) {
		return err
	}
	return nil
}

// Kill ends the component without its knowledge.
func (c *Component) Kill() error { return c.do((*process.Process).Kill) }

// Pause makes the component silent; connections to it stay open.
func (c *Component) Pause() error { return c.do((*process.Process).Pause) }

// Resume ends what Pause began, and waits until the component serves.
func (c *Component) Resume(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return fmt.Errorf("cannot resume %s: it was never started", c.name)
	}
	if err := c.process.Resume(); err != nil {
		return err
	}
	return c.wait(ctx)
}

// Restart stops the component and starts it again.
func (c *Component) Restart(ctx context.Context) error {
	// How it ended is of no interest: some end with an error after a signal.
	if err := c.Stop(); err != nil && !errors.As(err, new(interface{ ExitCode() int })) {
		return err
	}
	return c.Start(ctx)
}

// PID is the number of the component's process.
func (c *Component) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process.PID()
}

func (c *Component) do(f func(*process.Process) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return fmt.Errorf("%s was never started", c.name)
	}
	return f(c.process)
}
