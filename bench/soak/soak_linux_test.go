package soak

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"turnout/bench/site"
)

// TestSoak is the whole of it in seconds: nothing fails, and everything comes back. What memory does takes minutes to show.
func TestSoak(t *testing.T) {
	program := filepath.Join(t.TempDir(), "turnout")
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "turnout/cmd/turnout").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	var out bytes.Buffer
	scenario := Scenario()
	args := "-turnout " + program + " -duration 5s -settle 2s -window 1s -sample 100ms -report 1s -update 150ms -sockets 100 -growth 300"
	if code, err := scenario.Run(t.Context(), strings.Fields(args), &out); code != 0 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	for _, want := range []string{"WebSockets: 100 of 100 echoed a message", "| 0 | 100 |", "sessions resumed", "resident memory: "} {
		if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, want) {
			t.Errorf("the output has no %q", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", &out)
	}
}

func TestJudge(t *testing.T) {
	base := vitals{resident: 100 << 20, heap: 50 << 20, descriptors: 1000, goroutines: 30, generation: 10}
	for name, tc := range map[string]struct {
		change func(*vitals)
		want   string
	}{
		"as it was":        {func(v *vitals) {}, ""},
		"less":             {func(v *vitals) { v.resident /= 2; v.descriptors, v.goroutines = 10, 10 }, ""},
		"5 %":              {func(v *vitals) { v.resident = 105 << 20 }, ""},
		"more memory":      {func(v *vitals) { v.resident = 106 << 20 }, "resident memory grew by 6.0 %, from 100.0 to 106.0 MiB; at most 5.0 % is allowed"},
		"garbage":          {func(v *vitals) { v.heap *= 2 }, ""},
		"more descriptors": {func(v *vitals) { v.descriptors += 41 }, "descriptors grew from 1000 to 1041"},
		"more goroutines":  {func(v *vitals) { v.goroutines += 11 }, "goroutines grew from 30 to 41"},
		"nothing changed":  {func(v *vitals) { v.generation = 10 }, "the routing table did not change: generation 10, then 10"},
	} {
		last := base
		last.generation++
		tc.change(&last)
		if got := strings.Join(judge(&base, &last, 5), "; "); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	after := base
	after.descriptors++
	after.goroutines++
	if got := after.above(&base); len(got) != 2 {
		t.Errorf("one of each is left: %q", got)
	}
	if got := base.above(&after); got != nil {
		t.Errorf("nothing is left: %q", got)
	}
}

func TestSummary(t *testing.T) {
	got := summary([]vitals{{resident: 9, descriptors: 1, heap: 3}, {resident: 1, descriptors: 2, heap: 1}, {resident: 5, descriptors: 30, heap: 2}})
	if got.resident != 5 || got.descriptors != 2 || got.heap != 1 {
		t.Errorf("%+v", got)
	}
}

func TestOptions(t *testing.T) {
	good := options{duration: time.Hour, settle: time.Minute, window: time.Second, sample: time.Second, report: time.Minute, update: time.Second}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*options){
		"too short":           func(o *options) { o.duration = time.Minute },
		"window of no sample": func(o *options) { o.window = time.Millisecond },
		"no samples":          func(o *options) { o.sample = 0 },
		"no changes":          func(o *options) { o.update = 0 },
	} {
		o := good
		change(&o)
		if o.check() == nil {
			t.Errorf("%s: %+v is taken", name, o)
		}
	}
}

// TestFailuresCount: a router that ends every third connection without an answer, and one that has the wrong one.
func TestFailuresCount(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for n := 0; ; n++ {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			if n%3 != 0 {
				_, _ = c.Read(make([]byte, 1<<10))
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n127.0.0.1:1")
			}
			c.Close()
		}
	}()
	s := &scene{router: &site.Router{HTTP: ln.Addr().String()}}
	c := &counter{kind: kind{name: "test", every: time.Millisecond, lane: lane{host: hostWeb, most: 1}, client: always(lastPage)}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); c.run(ctx, s) }()
	for c.requests.Load() < 30 {
		if err := site.Pause(ctx, time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	<-done
	if n, failed := c.requests.Load(), c.failed.Load(); failed < n/3 || failed > n/3+1 {
		t.Errorf("%d of %d failed, want every third", failed, n)
	}
	m := &mix{counters: []*counter{c}}
	if wrong := m.judge(); len(wrong) != 1 || !strings.Contains(wrong[0], "requests failed, first [") {
		t.Errorf("%q", wrong)
	}
	if wrong := (&mix{counters: []*counter{{kind: kind{name: "idle"}}}}).judge(); len(wrong) != 1 {
		t.Errorf("clients that ask nothing: %q", wrong)
	}
}

// TestStickyNoticesAnotherPod: the cookie of a pod that serves must lead there; that of one that is gone need not.
func TestStickyNoticesAnotherPod(t *testing.T) {
	one := newPod(250)
	defer one.Close()
	s := &scene{router: &site.Router{HTTP: one.name()}, web: []*pod{one}}
	k, l := &session{}, &lane{s: s, host: hostSticky, most: 1}
	defer l.drop()
	if err := site.Try(func() { k.page(l) }); err == nil || !strings.Contains(err.Error(), "0 cookies") {
		t.Errorf("no cookie came: %v", err)
	}
	k.cookie, k.pod = "a=b", one.name()
	if err := site.Try(func() { k.page(l) }); err != nil {
		t.Errorf("the same pod: %v", err)
	}
	other := &pod{}
	s.web = append(s.web, other)
	k.pod = other.name()
	if err := site.Try(func() { k.page(l) }); err == nil || !strings.Contains(err.Error(), "led to") {
		t.Errorf("another pod: %v", err)
	}
}

// TestDeadWebSocketsCount: one of two ends before it is asked.
func TestDeadWebSocketsCount(t *testing.T) {
	p := newPod(251)
	defer p.Close()
	s := &sockets{}
	for range 2 {
		s.all = append(s.all, s.open(p.name(), "", false))
	}
	if n := s.echo(); n != 0 || s.alive() != 2 {
		t.Errorf("%d silent, %d alive", n, s.alive())
	}
	_ = s.all[0].Close()
	<-s.all[0].dead
	if n := s.echo(); n != 1 || s.alive() != 1 {
		t.Errorf("one is closed: %d silent, %d alive", n, s.alive())
	}
	s.close()
	if err := site.Try(func() { s.open(p.name(), "", true) }); err == nil {
		t.Error("a WebSocket was opened where nobody listens")
	}
	refuses := &http.Server{Handler: http.NotFoundHandler()}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = refuses.Serve(ln) }()
	defer refuses.Close()
	if err := site.Try(func() { s.open(ln.Addr().String(), "", false) }); err == nil || !strings.Contains(err.Error(), "bad status") {
		t.Errorf("an answer that is not 101: %v", err)
	}
}
