package server

import (
	"sync"
	"time"

	"turnout/internal/reactor"
)

// drain ends idle connections and waits for the others, as long as they may take.
func (s *Server) drain() {
	now := s.now.Load()
	deadline := time.NewTimer(now.Proxy.Timeouts.Drain)
	defer deadline.Stop()
	var left sync.WaitGroup
	for loop, ln := range s.loops {
		left.Add(2)
		if !loop.Post(func() {
			ln.Drain(now.KeepIdle || s.handedOver.Load(), left.Done)
		}) {
			left.Add(-2)
		}
	}
	drained := make(chan struct{})
	go func() { left.Wait(); close(drained) }()
	look := time.NewTicker(drainLook)
	defer look.Stop()
	connections := true
	for quiet := 0; quiet < 2; { // a connection that passes from a handshake to a server is in neither count for a moment
		select {
		case <-drained:
			connections, drained = false, nil
		case <-look.C: // nobody tells when the last handshake or tunnel ends
			if quiet++; connections || s.busy() {
				quiet = 0
			}
		case <-deadline.C:
			s.cfg.Log(Warning, "requests were still running when the drain time was over", Field{"drain", now.Proxy.Timeouts.Drain})
			return
		}
	}
}

// Drain ends idle connections of HTTP, or with keepIdle leaves those of HTTP/1.1 open until they have had one more answer, and the
// others after what they are about. done is called for each of the two protocols when it has no connection any more. It is called on
// the loop, after the listeners have closed.
func (ln *PerLoop) Drain(keepIdle bool, done func()) {
	ln.Worker.Drain()
	ln.HTTP1.Drain(keepIdle, done)
	ln.HTTP2.Drain(done)
	ln.Datagrams.Drain()
}

// retire has the connections that came in by a port that is gone end, as Drain has all.
func (ln *PerLoop) retire(p *reactor.Port) {
	ln.Loop.Retire(p)
	ln.HTTP1.PortClosed()
	ln.HTTP2.PortClosed()
}

// busy says that connections remain of which Drain does not tell: tunnels, and those that
// were accepted before it began and had not finished their handshake.
func (s *Server) busy() bool {
	t := s.Stats()
	return t.Active > 0 || s.mux.Pending() > 0 || t.Open[0]+t.Open[1] > 0
}

// drainLook is how often a router that stops looks whether anything is left.
const drainLook = 20 * time.Millisecond
