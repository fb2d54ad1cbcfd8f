package tunnel

import (
	"errors"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/proxy"
	"turnout/routing"
)

// Passthrough relays connections to the endpoints of routes as they come: TLS unopened, what TLS that ended here held, or any TCP. All
// methods are called on the loop.
type Passthrough struct {
	Loop   *reactor.Loop
	Worker *proxy.Worker
	// Secure starts TLS on a fresh connection to an endpoint and calls done on the loop, once. nil: endpoints that speak TLS cannot be reached.
	Secure func(c *reactor.Conn, id *balancer.TLS, done func(error))
}

// Accept takes a connection of a client, whose addresses are those of the connection. What it has received so far stays unconsumed in
// the connection: it is the first that the endpoint gets.
func (p *Passthrough) Accept(c *reactor.Conn, r *routing.Route, client proxy.Client) reactor.Handler {
	w := &waiting{p: p, client: c}
	client.Addr, client.Local, client.TTL = c.RemoteAddr(), c.LocalAddr(), c.ReceivedTTL()
	w.relay = p.Worker.Relay(w, r, client)
	if !w.relay.Admit() {
		return w
	}
	c.Establish()
	c.PauseUntilFailure() // until the endpoint stands
	w.relay.Connect()
	return w
}

// waiting is a client whose endpoint is being connected. It implements proxy.Through, and reactor.Handler for the client's
// connection.
type waiting struct {
	p      *Passthrough
	client *reactor.Conn
	relay  *proxy.Relay
	dialed *reactor.Conn // that of the last Dial, nil before
}

// Dial implements proxy.Through.
func (w *waiting) Dial(e *balancer.Endpoint) {
	w.dialed = w.p.Loop.DialTTL(e.Addr(), &dialing{w, e.TLS()}, w.p.Worker.Timeouts().Connect, w.relay.TTL())
}

// Join implements proxy.Through.
func (w *waiting) Join() (end func()) {
	r, limits := w.relay, w.p.Worker.Timeouts()
	return Join(w.client, w.dialed, Config{
		Idle: r.Idle(), Opening: r.Opening(), ClientFin: limits.ClientFin, ServerFin: limits.ServerFin, Stall: limits.Client,
		Cut: r.Cut, Moved: r.Moved, Done: r.Ended,
	}).Close
}

// Close implements proxy.Through.
func (w *waiting) Close() { w.client.CloseNow(false) }

// Reset implements proxy.Through.
func (w *waiting) Reset() {
	w.client.CloseNow(true)
	if w.dialed != nil {
		w.dialed.CloseNow(true)
	}
}

// Connected implements reactor.Handler.
func (w *waiting) Connected(*reactor.Conn) {}

// Data implements reactor.Handler; the connection is paused.
func (w *waiting) Data(*reactor.Conn, []byte) int { return 0 }

// EOF implements reactor.Handler.
func (w *waiting) EOF(*reactor.Conn) {}

// Drained implements reactor.Handler.
func (w *waiting) Drained(*reactor.Conn) {}

// Closed implements reactor.Handler: the client left before an endpoint stood.
func (w *waiting) Closed(*reactor.Conn, error) {
	w.relay.Gone()
	if w.dialed != nil {
		w.dialed.CloseNow(false)
	}
}

// dialing is the connection to an endpoint until it stands.
type dialing struct {
	w   *waiting
	tls *balancer.TLS // nil = plain
}

// Connected implements reactor.Handler.
func (d *dialing) Connected(c *reactor.Conn) {
	switch {
	case d.tls == nil:
		d.w.relay.Connected()
	case d.w.p.Secure == nil:
		c.CloseNow(false)
	default:
		d.w.p.Secure(c, d.tls, func(err error) {
			if err != nil {
				d.w.relay.Insecure(err)
				return
			}
			c.SetHandler(d)
			d.w.relay.Connected()
		})
	}
}

// Data implements reactor.Handler: a server that speaks first waits for the tunnel.
func (d *dialing) Data(*reactor.Conn, []byte) int { return 0 }

// EOF implements reactor.Handler.
func (d *dialing) EOF(*reactor.Conn) {}

// Drained implements reactor.Handler.
func (d *dialing) Drained(*reactor.Conn) {}

// Closed implements reactor.Handler: the attempt failed, or the client is gone.
func (d *dialing) Closed(_ *reactor.Conn, why error) {
	f := proxy.FaultConnect
	switch {
	case errors.Is(why, reactor.ErrPanicked):
		f = proxy.FaultInternal
	case reactor.Exhausted(why):
		f = proxy.FaultExhausted
	}
	d.w.relay.Failed(f)
}
