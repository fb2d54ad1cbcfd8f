package h2

import (
	"testing"

	"turnout/internal/bound"
	"turnout/internal/reactor/memnet"
	"turnout/internal/wire/h2session"
	"turnout/proxy"
)

// TestAnswersOfAnIteration: a pod that answers many requests at once has a few of its answers relayed in each iteration, and requests of
// others are served in between.
func TestAnswersOfAnIteration(t *testing.T) {
	const streams = 100
	for seed := range uint64(5) {
		r := newRigOn(t, memnet.New(seed))
		held := r.pod2(1, func(*podConn, *podRequest) {})
		p := r.pod(2, always(ok("x")))
		r.route("held", "held.test", h2c, held.addr)
		r.route("app", "app.test", nil, p.Addr)
		other := r.connect()
		other.get(1, "/")
		other.run()
		crowd := r.connect()
		for i := range uint32(streams) {
			crowd.ask(2*i+1, "held.test")
		}
		crowd.run()
		before := len(r.logged)
		for _, pc := range held.conns {
			for _, q := range pc.order {
				pc.say(q.id, "200", "")
			}
			pc.flush()
		}
		other.get(3, "/")
		other.run()
		crowd.run()
		other.want(3, 200, "x")
		if n := len(r.logged) - before; n != streams+1 {
			t.Fatalf("seed %d: %d requests were answered", seed, n)
		}
		for i, rec := range r.logged[before:] {
			// A request takes three iterations.
			if most := 4 * len(held.conns) * proxy.IterationAnswers; string(rec.Host) == "app.test" && i > min(most, streams-1) {
				t.Errorf("seed %d: the other request ended after %d of %d answers", seed, i, streams)
			}
		}
		if r.bounds.Of(bound.IterationAnswers) == 0 {
			t.Errorf("seed %d: the bound was not counted", seed)
		}
		r.wantQuiet()
	}
}

// TestFramesOfAnIteration: of small frames a connection has so many taken in an iteration, in both directions.
func TestFramesOfAnIteration(t *testing.T) {
	const frames = 20000
	for name, flood := range map[string]func(r *rig, c *client) (written func() int, arrived func() int){
		"upload": func(r *rig, c *client) (func() int, func() int) {
			sink := r.pod2(1, func(*podConn, *podRequest) {})
			r.route("flood", "flood.test", h2c, sink.addr)
			c.headers(1, false, ":method", "POST", ":scheme", "http", ":authority", "flood.test", ":path", "/")
			c.run()
			for range frames {
				c.data(1, false, "x")
			}
			c.peer.Write(c.out.Bytes())
			c.out.Reset()
			pc := sink.conns[0]
			return func() int { return pc.peer.Total() }, func() int { return len(pc.order[0].body) }
		},
		"download": func(r *rig, c *client) (func() int, func() int) {
			source := r.pod2(1, func(*podConn, *podRequest) {})
			r.route("flood", "flood.test", h2c, source.addr)
			c.ask(1, "flood.test")
			c.run()
			pc := source.conns[0]
			pc.headers(pc.order[0].id, false, ":status", "200")
			for range frames {
				_ = pc.fr.WriteData(pc.order[0].id, false, []byte("x"))
			}
			pc.flush()
			return c.peer.Total, func() int { c.run(); return len(c.streams[1].body) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				var counts bound.Counts
				r := newRigOn(t, memnet.New(seed), func(cfg *proxy.Config) { cfg.Bounds = &counts })
				p := r.pod(2, nil)
				r.route("app", "app.test", nil, p.Addr)
				other := r.connect()
				written, arrived := flood(r, r.connect())
				before, during := written(), 0
				p.Answer = func(int, string) string { during = written() - before; return ok("x") }
				other.get(1, "/")
				other.run()
				other.want(1, 200, "x")
				if most := 4 * h2session.MostFrames * len("123456789x"); during > most {
					t.Errorf("seed %d: %d bytes of the flood came before the other request, want at most %d", seed, during, most)
				}
				if n := arrived(); n != frames {
					t.Errorf("seed %d: %d bytes arrived of %d", seed, n, frames)
				}
				if counts.Of(bound.IterationFrames)+r.bounds.Of(bound.IterationFrames) == 0 {
					t.Errorf("seed %d: the bound was not counted", seed)
				}
			}
		})
	}
}
