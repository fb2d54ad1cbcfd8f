package server

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"turnout/routing"
	"turnout/tlsmux"
)

// TestLoopsFollowTheCPULimit: there are no more loops than processors, nor than the CPU limit has, rounded up.
func TestLoopsFollowTheCPULimit(t *testing.T) {
	for _, tc := range []struct {
		processors int
		limit      float64
		want       int
	}{{4, 0, 4}, {2, 0.5, 1}, {2, 1, 1}, {2, 1.5, 2}, {4, 4, 4}, {2, 8, 2}, {1, 0.01, 1}} {
		if got := defaultLoops(tc.processors, tc.limit); got != tc.want {
			t.Errorf("%d processors, limit %v: %d loops, want %d", tc.processors, tc.limit, got, tc.want)
		}
	}
}

// TestSchedulerSlots: one for each loop and one for the rest, and where C is called one that stays idle.
func TestSchedulerSlots(t *testing.T) {
	for _, tc := range []struct {
		loops int
		calls bool
		want  int
	}{{1, false, 2}, {4, false, 5}, {1, true, 3}, {4, true, 6}} {
		if got := schedulerSlots(tc.loops, tc.calls); got != tc.want {
			t.Errorf("%d loops, calls of C %v: %d slots, want %d", tc.loops, tc.calls, got, tc.want)
		}
	}
}

// TestHandshakeSteps: what lets the heap grow are steps of handshakes, those that are not complete too.
func TestHandshakeSteps(t *testing.T) {
	s, err := New(Config{HTTPAddr: "127.0.0.1:0", HTTPSAddr: "127.0.0.1:0", Loops: 1})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tlsmux.SelfSigned("", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	table, _ := routing.Compile(routing.Options{Registry: s.Registry(), DefaultCertificate: certificate}, s.Store().Load(), nil)
	s.Store().Publish(table)
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	if n := s.handshakeSteps(); n != 0 {
		t.Errorf("%d steps before the first handshake", n)
	}
	if c, err := tls.Dial("tcp", s.HTTPS().String(), &tls.Config{ServerName: "a.test"}); err == nil {
		c.Close()
		t.Error("a certificate that signs itself was trusted")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := s.handshakeSteps(); n == 0 {
		t.Error("no step of a handshake was counted")
	}
}
