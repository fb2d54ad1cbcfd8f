package tunnel

import (
	"errors"

	"turnout/internal/reactor"
	"turnout/proxy"
	"turnout/routing"
)

// Passthrough relays TLS connections to the endpoints of passthrough routes,
// unopened. All methods are called on the loop.
type Passthrough struct {
	Loop   *reactor.Loop
	Worker *proxy.Worker
}

// Accept takes a client connection. What it has received so far stays unconsumed in
// the connection: it is the first that the endpoint gets.
func (p *Passthrough) Accept(c *reactor.Conn, r *routing.Route, serverName string) reactor.Handler {
	client := proxy.Client{Addr: c.RemoteAddr(), Local: c.LocalAddr(), Secure: true}
	w := &waiting{p: p, client: c, relay: p.Worker.Relay(r, client, serverName)}
	if !w.relay.Admit() {
		w.done = true
		c.CloseNow(false)
		return w
	}
	c.Establish()
	c.PauseUntilFailure() // until the endpoint stands
	w.try()
	return w
}

// waiting is a client whose endpoint is being connected.
type waiting struct {
	p      *Passthrough
	client *reactor.Conn
	relay  *proxy.Relay
	dialed *dialing
	done   bool
}

// try connects the next endpoint, waits for one, or gives the client up.
func (w *waiting) try() {
	w.dialed = nil
	e, wait := w.relay.Next(w.again)
	if wait {
		return
	}
	if e == nil {
		w.giveUp()
		return
	}
	w.dialed = &dialing{w: w}
	w.dialed.c = w.p.Loop.Dial(e.Addr(), w.dialed, w.p.Worker.Timeouts().Connect)
}

// again is try, called by the loop.
func (w *waiting) again() {
	defer w.client.Contain()
	w.try()
}

// giveUp closes the client's connection: there is no endpoint for it.
func (w *waiting) giveUp() {
	w.finish(w.relay.Failure())
	w.client.CloseNow(false)
}

func (w *waiting) finish(r proxy.Reason) {
	if !w.done {
		w.done = true
		w.relay.Done(r)
	}
}

// Connected implements reactor.Handler.
func (w *waiting) Connected(*reactor.Conn) {}

// Data implements reactor.Handler; the connection is paused.
func (w *waiting) Data(*reactor.Conn, []byte) int { return 0 }

// EOF implements reactor.Handler.
func (w *waiting) EOF(c *reactor.Conn) {}

// Drained implements reactor.Handler.
func (w *waiting) Drained(*reactor.Conn) {}

// Closed implements reactor.Handler: the client left before an endpoint stood.
func (w *waiting) Closed(*reactor.Conn, error) {
	if w.done {
		return
	}
	w.finish(proxy.ReasonClientGone)
	if w.dialed != nil {
		w.dialed.c.CloseNow(false)
	}
}

// dialing is the connection to an endpoint until it stands.
type dialing struct {
	w *waiting
	c *reactor.Conn
}

// Connected implements reactor.Handler.
func (d *dialing) Connected(c *reactor.Conn) {
	w := d.w
	if w.done {
		c.CloseNow(false)
		return
	}
	w.done = true
	relay := w.relay
	relay.Connected()
	limits := w.p.Worker.Timeouts()
	t := Join(w.client, c, Config{Idle: relay.Idle(), Opening: relay.Opening(), ClientFin: limits.ClientFin, ServerFin: limits.ServerFin, Stall: limits.Client, Cut: relay.Cut, Moved: relay.Moved, Done: func() {
		relay.Done(proxy.ReasonTunnelClosed)
	}})
	relay.Joined(t.Close)
}

// Data implements reactor.Handler: a server that speaks first waits for the tunnel.
func (d *dialing) Data(*reactor.Conn, []byte) int { return 0 }

// EOF implements reactor.Handler.
func (d *dialing) EOF(*reactor.Conn) {}

// Drained implements reactor.Handler.
func (d *dialing) Drained(*reactor.Conn) {}

// Closed implements reactor.Handler: the attempt failed.
func (d *dialing) Closed(_ *reactor.Conn, why error) {
	switch {
	case errors.Is(why, reactor.ErrPanicked): // perhaps the tunnel is half made
		d.w.client.CloseNow(true)
		d.w.done = true
		d.w.relay.Done(proxy.ReasonInternal)
	case d.w.done:
	case reactor.Exhausted(why):
		d.w.relay.Exhausted()
		d.w.giveUp()
	default:
		d.w.try()
	}
}
