package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// idleCase is one kind of idle connection.
type idleCase struct {
	name  string
	bound float64 // KiB per connection; 0 = none
}

func idleCases() []idleCase {
	return []idleCase{{"plain", 0.5}, {"tls13", 8}, {"tls12", 8}, {"h2", 0}}
}

// idle opens so many connections with one request each and looks at the router's memory once garbage is collected and
// returned, which the router does in quiet minutes. The router has one loop.
func idle(ctx context.Context, o *options) error {
	if err := makeRoom(&o.number, 1); err != nil {
		return err
	}
	fmt.Printf("%-8s %11s %11s %11s %9s\n", "", "before MiB", "after MiB", "KiB each", "at most")
	var failed error
	for _, c := range idleCases() {
		if o.kinds != "" && !strings.Contains(","+o.kinds+",", ","+c.name+",") {
			continue
		}
		before, after, err := idleMemory(ctx, o, c.name)
		if err != nil {
			return fmt.Errorf("cannot measure %s: %w", c.name, err)
		}
		each := float64(after-before) / 1024 / float64(o.number)
		bound := "-"
		if c.bound > 0 {
			bound = strconv.FormatFloat(c.bound, 'f', 1, 64)
			if each > c.bound {
				failed = errors.Join(failed, fmt.Errorf("an idle connection of %s takes %.2f KiB, more than %s", c.name, each, bound))
			}
		}
		fmt.Printf("%-8s %11.1f %11.1f %11.2f %9s\n", c.name, float64(before)/(1<<20), float64(after)/(1<<20), each, bound)
	}
	return failed
}

func idleMemory(ctx context.Context, o *options, kind string) (before, after int64, err error) {
	r, err := startRig(ctx, o, false)
	if err != nil {
		return 0, 0, err
	}
	defer r.stop()
	// What the first connections bring in for good is not theirs.
	some, err := startClients(ctx, r, kind, 100)
	if err != nil {
		return 0, 0, err
	}
	if err := some.close(); err != nil {
		return 0, 0, err
	}
	if before, err = r.Resident(); err != nil {
		return 0, 0, err
	}
	all, err := startClients(ctx, r, kind, o.number)
	if err != nil {
		return 0, 0, err
	}
	after, err = settled(ctx, r, o.settle)
	return before, after, errors.Join(err, all.close())
}

// settled returns the least memory within d.
func settled(ctx context.Context, r *rig, d time.Duration) (least int64, err error) {
	end := time.NewTimer(d)
	defer end.Stop()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		now, err := r.Resident()
		if err != nil {
			return 0, err
		}
		if least == 0 || now < least {
			least = now
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err() //nolint:wrapcheck // interrupted
		case <-end.C:
			return least, nil
		case <-look.C:
		}
	}
}

// clientProcess holds connections until it is closed.
type clientProcess struct {
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Scanner
}

// startClients starts a process of clients and waits until all their connections are open.
func startClients(ctx context.Context, r *rig, kind string, n int) (*clientProcess, error) {
	p := &clientProcess{cmd: exec.CommandContext(ctx, "/proc/self/exe", clientWord, kind, r.HTTP, r.HTTPS, strconv.Itoa(n))}
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start clients: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start clients: %w", err)
	}
	p.in, p.out = in, bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start clients: %w", err)
	}
	if !p.out.Scan() || p.out.Text() != clientsReady {
		_ = p.close()
		return nil, errors.New("the clients could not open their connections")
	}
	return p, nil
}

// close ends the clients and returns what they could not do.
func (p *clientProcess) close() error {
	_ = p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("the clients failed: %w", err)
	}
	return nil
}
