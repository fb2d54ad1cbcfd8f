package server

import (
	"time"

	"turnout/internal/overload"
	"turnout/internal/reactor"
	"turnout/internal/traffic"
	"turnout/proxy"
	"turnout/tlsmux"
)

// Health is what is counted about endpoints that fail.
type Health struct {
	Checks    uint64 // checks that have ended
	Failed    uint64 // those of them that failed
	Downs     uint64 // endpoints that went down
	Ejections uint64 // servers that were ejected because of requests that failed
}

// Load is what is counted about having too much to do.
type Load struct {
	Reasons   [overload.Reasons]overload.Stat
	Waiting   [2]int               // connections that wait to be accepted, on plain ports and on those of TLS
	Held      [reactor.Helds]int64 // bytes that event loops hold, by what for
	Addresses int64                // source addresses for which limits of routes have memory
}

// Health are the counters about endpoints that fail. Any goroutine may call it.
func (s *Server) Health() Health {
	stats := s.health.Stats()
	failed := stats.Failed.Load() // first: no more than the checks
	return Health{Checks: stats.Checks.Load(), Failed: failed, Downs: stats.Downs.Load(), Ejections: s.cfg.Registry.Ejections()}
}

// Load is what is counted about having too much to do. Any goroutine may call it.
func (s *Server) Load() Load {
	l := Load{Reasons: s.guard.Stats()}
	for _, p := range s.openPorts() {
		if p.kind == PortUDP {
			continue
		}
		l.Waiting[p.kind.sessions()] += s.group.Waiting(p.bound.Port())
	}
	if s.cfg.Rates != nil {
		l.Addresses = s.cfg.Rates.Addresses()
	}
	for _, loop := range s.group.Loops() {
		for what := range reactor.Helds {
			l.Held[what] += loop.HeldBytes(what)
		}
	}
	return l
}

// Connected returns how many clients are connected to the plain and to the TLS port now, those whose TLS is passed through
// not among them.
func (p *RequestPath) Connected() (plain, secure int64) {
	for _, ln := range p.loops {
		plain += ln.HTTP1.Open(false) + ln.HTTP2.Open(false)
		secure += ln.HTTP1.Open(true) + ln.HTTP2.Open(true)
	}
	return plain, secure
}

// Stats sums the counters of all loops.
func (p *RequestPath) Stats() proxy.Totals {
	var t proxy.Totals
	for _, ln := range p.loops {
		ln.Worker.Totals(&t)
	}
	for i := range p.sessions {
		t.Connections[i] = p.sessions[i].Total()
	}
	t.Open[0], t.Open[1] = p.Connected()
	s := p.mux.Stats()
	t.Panics = p.panics.count.Load()
	t.Handshakes = s.Terminated.Load()
	t.HandshakeErrors = s.BadHello.Load() + s.Strict.Load() + s.InspectTimeouts.Load() + s.HandshakeTimeouts.Load() + s.Shed.Load() + s.Failed.Load()
	return t
}

// Stats sums the counters of all loops. Any goroutine may call it.
func (s *Server) Stats() proxy.Totals {
	t := s.RequestPath.Stats()
	t.HeaderErrors = s.front.Rejected()
	return t
}

// Sessions are the connections of clients to plain ports and to those of TLS, tunnels and those whose TLS handshake is not complete among
// them.
func (p *RequestPath) Sessions() *[2]traffic.Sessions { return &p.sessions }

// Now is about the time of the event loops, in nanoseconds.
func (p *RequestPath) Now() int64 { return int64(time.Since(p.began)) }

// MaxConnections is how many connections of clients there may be.
func (p *RequestPath) MaxConnections() int {
	files := connectionFiles(descriptorLimit())
	if most := p.now.Load().Limits.Connections; most > 0 && (files <= 0 || most < files) {
		return most
	}
	return files
}

// Handshakes is what TLS handshakes cost.
func (p *RequestPath) Handshakes() tlsmux.Load { return p.mux.Load() }

// Tunnels are those that are open, by route.
func (p *RequestPath) Tunnels() map[proxy.TunnelRoute]int {
	sum := make(map[proxy.TunnelRoute]int)
	for _, ln := range p.loops {
		ln.Worker.Tunnels(sum)
	}
	return sum
}
