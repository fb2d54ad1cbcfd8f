package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// The router's defaults, and what a busy machine may need on top.
const (
	headTimeout   = 10 * time.Second
	clientTimeout = 30 * time.Second
	grace         = 8 * time.Second
)

// stalled is a client that begins a request and then does nothing.
type stalled struct {
	name   string
	sends  string
	reads  bool          // what comes is read; else only what has come when the time is over
	within time.Duration // the connection ends
	answer string        // what the answer begins with
}

func stalls() []stalled {
	return []stalled{
		{"a head that does not end", "GET / HTTP/1.1\r\nHost: localhost\r\nX-", true, headTimeout, "HTTP/1.1 408 "},
		{"a body that does not end", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc", true, clientTimeout, "HTTP/1.1 408 "},
		{"a reader that stops", "GET /huge HTTP/1.1\r\nHost: localhost\r\n\r\n", false, clientTimeout, "HTTP/1.1 200 "},
	}
}

// deadlines stalls n connections of each kind and says of which kinds one was not answered, or not ended, in time.
func deadlines(ctx context.Context, addr string, n int) error {
	kinds := stalls()
	errs := make([]error, n*len(kinds))
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = kinds[i%len(kinds)].wait(ctx, addr) })
	}
	all.Wait()
	seen := map[string]int{}
	for _, err := range errs {
		if err != nil {
			seen[err.Error()]++
		}
	}
	var bad []error
	for text, times := range seen {
		bad = append(bad, fmt.Errorf("%s (%d of %d)", text, times, n))
	}
	return errors.Join(bad...)
}

func (s *stalled) wait(ctx context.Context, addr string) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("cannot connect: %w", err)
	}
	defer c.Close()
	if !s.reads {
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10) // makes it sooner, not different
	}
	if _, err := c.Write([]byte(s.sends)); err != nil {
		return fmt.Errorf("cannot send %s: %w", s.name, err)
	}
	over := time.Now().Add(s.within + grace)
	if !s.reads {
		wait := time.NewTimer(time.Until(over))
		defer wait.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // interrupted
		case <-wait.C:
		}
		over = over.Add(2 * time.Second)
	}
	_ = c.SetReadDeadline(over)
	var got bytes.Buffer
	_, err = io.Copy(&got, c)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s: the connection lives after %s", s.name, s.within+grace)
	case !strings.HasPrefix(got.String(), s.answer):
		return fmt.Errorf("%s: want %q, got %.60q", s.name, s.answer, got.String())
	}
	return nil
}
