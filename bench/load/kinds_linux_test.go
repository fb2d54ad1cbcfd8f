package load

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"turnout/bench/site"
)

// direct drives the rig's own backend.
func direct(t *testing.T, r *Rig, p Profile, cfg TrafficConfig) Result {
	t.Helper()
	p.Addr, p.Traffic = r.Upstreams()[0], traffic(t, cfg)
	if p.Conns == 0 {
		p.Conns = 3
	}
	res, err := r.Drive(t.Context(), p)
	if err != nil || res.Failures > 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	return res
}

func TestDriveBodies(t *testing.T) {
	r := newRig(t, 1)
	for _, size := range []int{1000, 64 << 10, 3 << 20} { // the last is more than a socket takes at once
		r.Answers(size)
		if res := direct(t, r, Profile{Requests: 40}, TrafficConfig{}); res.Requests != 40 {
			t.Errorf("answers of %d bytes: %+v", size, res)
		}
		r.Answers(BodySize)
		before := r.backend.served
		if res := direct(t, r, Profile{Requests: 40}, TrafficConfig{Upload: size}); res.Requests != 40 || r.backend.served-before != 40 {
			t.Errorf("uploads of %d bytes: %+v, %d served", size, res, r.backend.served-before)
		}
	}
}

// TestBackendRefusesOtherUploads: what a proxy changes in a body is a failure.
func TestBackendRefusesOtherUploads(t *testing.T) {
	r := newRig(t, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		body := string(uploaded(500))
		for _, sent := range []string{body, body[:499] + "x"} {
			resp, err := http.Post("http://"+r.Upstreams()[0].String()+"/", "", strings.NewReader(sent))
			if (err == nil) != (sent == body) {
				t.Errorf("%.10q...: %v", sent[490:], err)
			}
			if err == nil {
				_ = resp.Body.Close()
			}
		}
		http.DefaultClient.CloseIdleConnections()
	}()
	r.Answer(done)
}

func TestDriveClosesConnections(t *testing.T) {
	kept := serve(t, nil, func(c net.Conn) { answerAll(c, func(int) string { return ok(0) }) })
	closed := serve(t, nil, func(c net.Conn) {
		once := false
		answerAll(c, func(int) string {
			if once {
				return ""
			}
			once = true
			_, _ = io.WriteString(c, strings.Replace(ok(0), "\r\n", "\r\nConnection: close\r\n", 1))
			return ""
		})
	})
	r := newRig(t, 1)
	p := Profile{Addr: closed, Conns: 2, Requests: 50, Traffic: traffic(t, TrafficConfig{Close: true})}
	if res, err := r.Drive(t.Context(), p); err != nil || res.Requests != 50 || res.Failures != 0 {
		t.Errorf("closed: %+v, %v", res, err)
	}
	p.Addr, p.Patience = kept, 50*time.Millisecond
	if res, err := r.Drive(t.Context(), p); err == nil {
		t.Errorf("a proxy that keeps connections open: %+v", res)
	}
	p.Addr, p.Traffic = closed, traffic(t, TrafficConfig{})
	if res, err := r.Drive(t.Context(), p); err == nil && !errors.Is(res.First, ErrClose) {
		t.Errorf("a proxy that closes unasked: %+v, %v", res, err)
	}
}

func TestDriveEchoes(t *testing.T) {
	r := newRig(t, 1)
	for _, size := range []int{128, 64 << 10, 2 << 20} {
		before := r.backend.accepted
		if res := direct(t, r, Profile{Requests: 43, Echo: Message(size)}, TrafficConfig{}); res.Requests != 40 || r.backend.accepted-before != 3 {
			t.Errorf("%d bytes: %+v on %d connections; want 40 besides what makes 3 WebSockets", size, res, r.backend.accepted-before)
		}
	}
	plain := serve(t, nil, func(c net.Conn) { answerAll(c, func(int) string { return ok(0) }) })
	p := Profile{Addr: plain, Conns: 1, Requests: 1, Echo: Message(10), Traffic: traffic(t, TrafficConfig{})}
	if res, _ := r.Drive(t.Context(), p); !errors.Is(res.First, ErrStatus) {
		t.Errorf("a proxy without WebSockets: %+v", res)
	}
}

// TestDriveKeepsARate: as many as were scheduled, and their times.
func TestDriveKeepsARate(t *testing.T) {
	r := newRig(t, 1)
	for _, cfg := range []TrafficConfig{{}, {Upload: 100}} {
		res := direct(t, r, Profile{Rate: 500, Span: Span{Warmup: 20 * time.Millisecond, Measure: 200 * time.Millisecond}}, cfg)
		rate := float64(res.Requests) / res.Elapsed.Seconds()
		if rate < 400 || rate > 600 || res.Latency.P50 <= 0 || res.Latency.P99 < res.Latency.P50 {
			t.Errorf("%.0f per second, %+v", rate, res)
		}
	}
	// Those that wait for a connection are late: their times count from when they were due.
	slow := serve(t, nil, func(c net.Conn) {
		answerAll(c, func(int) string {
			_ = site.Pause(t.Context(), 10*time.Millisecond)
			return ok(0)
		})
	})
	p := Profile{Addr: slow, Conns: 1, Rate: 200, Traffic: traffic(t, TrafficConfig{}), Span: Span{Measure: 300 * time.Millisecond}}
	if res, err := r.Drive(t.Context(), p); err != nil || res.Latency.Max < 100*time.Millisecond {
		t.Errorf("twice as many as can be answered: %+v, %v", res, err)
	}
}

// TestSpanHasItsRequests: a slow proxy is measured until it has answered as many as are asked for, in the warm-up too.
func TestSpanHasItsRequests(t *testing.T) {
	slow := serve(t, nil, func(c net.Conn) {
		answerAll(c, func(int) string {
			_ = site.Pause(t.Context(), time.Millisecond)
			return ok(0)
		})
	})
	r := newRig(t, 1)
	answered := 0
	p := Profile{Addr: slow, Conns: 1, Traffic: traffic(t, TrafficConfig{}), Span: Span{Warmup: time.Nanosecond, Measure: time.Nanosecond, Least: 20}}
	p.Mark = func(bool) { answered++ }
	began := time.Now()
	if res, err := r.Drive(t.Context(), p); err != nil || res.Requests < 20 || answered != 2 || time.Since(began) < 40*time.Millisecond {
		t.Errorf("%+v in %v, %v", res, time.Since(began), err)
	}
}
