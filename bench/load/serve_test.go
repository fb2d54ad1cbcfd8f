//go:build linux

package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// ask sends requests to the backend one after the other until stop is closed, and counts the answers.
func ask(t *testing.T, r *Rig, stop <-chan struct{}) <-chan uint64 {
	t.Helper()
	conn, err := net.Dial("tcp", r.Upstreams()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	count := make(chan uint64, 1)
	go func() {
		defer func() { _ = conn.Close() }()
		answered := uint64(0)
		buf := make([]byte, 4096)
		for {
			select {
			case <-stop:
				count <- answered
				return
			default:
			}
			if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
				count <- answered
				return
			}
			if n, err := conn.Read(buf); err != nil || n == 0 {
				count <- answered
				return
			}
			answered++
		}
	}()
	return count
}

func TestServeCountsWhatReachesTheBackend(t *testing.T) {
	r, err := NewRig(1)
	if err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	count := ask(t, r, stop)
	var marks []bool
	var atStart, atEnd uint64
	res, err := r.Serve(t.Context(), Span{
		Warmup: 20 * time.Millisecond, Measure: 50 * time.Millisecond,
		Mark: func(end bool) {
			if end {
				atEnd = r.backend.served
				close(stop)
				close(done)
			} else {
				atStart = r.backend.served
			}
			marks = append(marks, end)
		},
	}, done)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(marks) != "[false true]" || atStart == 0 {
		t.Errorf("marks %v, %d requests before the first", marks, atStart)
	}
	if res.Requests == 0 || res.Requests != atEnd-atStart || res.Elapsed < 50*time.Millisecond || res.Connects != 0 {
		t.Errorf("result %+v with %d requests between the marks", res, atEnd-atStart)
	}
	r.Close()
	if answered := <-count; answered < res.Requests {
		t.Errorf("%d answers are less than %d counted", answered, res.Requests)
	}
}

func TestServeFails(t *testing.T) {
	ended := make(chan struct{})
	close(ended)
	broken := errors.New("broken")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	for _, c := range []struct {
		name, want string
		ctx        context.Context
		span       Span
		done       chan struct{}
	}{
		{"client ends early", "the client ended too early", t.Context(), Span{Measure: time.Second}, ended},
		{"no request", "no answer for 1ms", t.Context(), Span{Measure: time.Second, Patience: time.Millisecond}, make(chan struct{})},
		{"cancelled", "broken", cancelled, Span{Measure: time.Second}, make(chan struct{})},
		{"no length", "neither Measure nor done", t.Context(), Span{}, ended},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := NewRig(1)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if _, err := r.Serve(c.ctx, c.span, c.done); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
