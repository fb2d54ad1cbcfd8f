package h1

import (
	"strings"
	"testing"
	"time"

	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

// badLog is an access log that panics over one reason.
type badLog struct{ over proxy.Reason }

func (l *badLog) Log(r *proxy.Record) {
	if r.Reason == l.over {
		panic("a mistake")
	}
}

// badClock panics once while it is to.
type badClock struct {
	proxy.Clock
	bad *bool
}

func (c *badClock) Now() int64 {
	if *c.bad {
		*c.bad = false
		panic("a mistake")
	}
	return c.Clock.Now()
}

// TestPanicsOutsideOfConnections: what panics in an exchange's timer, or in mail for it, ends that exchange and gives back what it
// held, however often it happens.
func TestPanicsOutsideOfConnections(t *testing.T) {
	const rounds = 100 // more than there are places, compressors and endpoints of anything
	for name, x := range map[string]struct {
		over  proxy.Reason
		send  string
		pod   string // what it answers
		cause func(r *rig, p *pod, clock *badClock)
	}{
		"timer, before it is accounted for": {proxy.ReasonMonitor, get, "", func(r *rig, _ *pod, clock *badClock) {
			*clock.bad = true
			r.net.Advance(31 * time.Second)
		}},
		"timer of a request": {proxy.ReasonServerTimeout, get, "", func(r *rig, _ *pod, _ *badClock) { r.net.Advance(31 * time.Second) }},
		"timer of a body": {
			proxy.ReasonServerTimeout, "GET / HTTP/1.1\r\nHost: app.test\r\nAccept-Encoding: gzip\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\nhalf of it", func(r *rig, _ *pod, _ *badClock) { r.net.Advance(31 * time.Second) },
		},
		"timer of the queue": {proxy.ReasonQueueTimeout, get, "", func(r *rig, p *pod, _ *badClock) {
			second := r.say(get)
			r.net.Advance(6 * time.Second)
			if !second.ResetSeen() {
				r.t.Errorf("the one that waited got %q", second.Received())
			}
			r.finish(p, len(p.Conns)-1)
		}},
		"mail": {proxy.ReasonNoEndpoint, get, "", func(r *rig, p *pod, _ *badClock) {
			second := r.say(get)
			targets := r.Specs[0].Targets
			r.change(func(s *routing.RouteSpec) { s.Targets = nil })
			if !second.ResetSeen() {
				r.t.Errorf("the one that waited got %q", second.Received())
			}
			r.change(func(s *routing.RouteSpec) { s.Targets = targets })
			r.finish(p, len(p.Conns)-1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			log, clock, panics := &badLog{x.over}, &badClock{bad: new(bool)}, 0
			var r *rig
			compression := proxy.NewCompression("text/html")
			r = newRigWith(t, memnet.New(1), rigConfig{
				worker: func(c *proxy.Config) {
					clock.Clock = c.Clock
					c.AccessLog, c.Compression, c.Clock = log, compression, clock
				},
				loop: reactor.Config{Panicked: func(*reactor.Loop, any, []byte) { panics++; r.worker.Interrupted() }},
			})
			p := r.pod(1, always(x.pod))
			r.route("app", "app.test", atMost(1), p.Addr)
			for i := range rounds {
				c := r.say(x.send)
				x.cause(r, p, clock)
				if panics != i+1 {
					t.Fatalf("%d panics, want %d", panics, i+1)
				}
				if !c.ResetSeen() && !strings.HasSuffix(string(c.Received()), "done") {
					t.Fatalf("the client got %q", c.Received())
				}
				c.Reset()
				r.net.Run()
			}
			r.wantQuiet()
			p.Answer = always("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\ngood")
			c := r.say("GET / HTTP/1.1\r\nHost: app.test\r\nAccept-Encoding: gzip\r\n\r\n")
			r.wantStatus(c, 200)
			if !strings.Contains(string(c.Received()), "content-encoding: gzip") {
				t.Errorf("not compressed: %q", c.Received())
			}
		})
	}
}
