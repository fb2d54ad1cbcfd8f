package controller

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"time"

	"turnout/controller/source"
	"turnout/controller/translate"
	"turnout/internal/bound"
	"turnout/internal/keyed"
	"turnout/internal/target"
)

// Controller makes routing tables of objects. It is made by New.
type Controller struct {
	cfg   Config // as New was given it: Options may be others by now, which the owner has in state.cfg
	inbox *inbox
	state *state
	views views
	ready chan struct{}
	asks  chan func(*state) // the owner calls them

	waiting atomic.Int64 // objects with changes that wait for the next batches
}

// New returns a controller that has published nothing yet. It fails when cfg cannot be
// used.
func New(cfg Config) (*Controller, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	c := &Controller{cfg: cfg, inbox: newInbox(), ready: make(chan struct{}), asks: make(chan func(*state))}
	c.views.routes, c.views.outside = keyed.New(func(v *view) source.Key { return v.kept.key }), make(map[string]map[string]*aside)
	c.views.setOptions(cfg.Options)
	own := cfg
	if c.state, err = newState(&own, &c.views); err != nil {
		return nil, fmt.Errorf("cannot make controller: %w", err)
	}
	return c, nil
}

// Sink returns a sink for one feeder. It must be called before Run; nothing is
// published until each sink is synced. origin is shown to people where an event names
// none.
func (c *Controller) Sink(origin string) source.Sink {
	c.inbox.mu.Lock()
	defer c.inbox.mu.Unlock()
	c.inbox.waiting++
	return &sink{inbox: c.inbox, origin: origin}
}

// Ready returns a channel that is closed when the first complete table is published.
func (c *Controller) Ready() <-chan struct{} { return c.ready }

// SetDefaultCertificate has next, which must not be changed any more, served when no route
// has a certificate. Any goroutine may call it.
func (c *Controller) SetDefaultCertificate(next *tls.Certificate) { c.inbox.setCertificate(next) }

// SetDefaultDestinationCA replaces Options.DefaultDestinationCA by next, PEM that must not be changed any more. It fails, and
// nothing changes, when next holds no certificate. Any goroutine may call it.
func (c *Controller) SetDefaultDestinationCA(next []byte) error {
	if err := translate.CheckDestinationCA(next); err != nil {
		return err
	}
	c.inbox.setDestinationCA(next)
	return nil
}

// SetOwn replaces the set of the router's own listeners. Endpoints there are refused. Any
// goroutine may call it.
func (c *Controller) SetOwn(own *target.Own) { c.inbox.setOwn(own) }

// SetGatewayRefusals says why Gateways do not get the objects that they need, all of them each time; the map is the controller's. Any goroutine may call it.
func (c *Controller) SetGatewayRefusals(refused map[source.Key]string) {
	leave(c.inbox, &c.inbox.refused, refused)
}

// Wait returns nil when everything delivered before the call is published and stands in
// the status of routes, and the error of ctx when that ends first. A route whose secret
// has been asked for and is not there yet is not waited for, but for the first table.
func (c *Controller) Wait(ctx context.Context) error { return c.inbox.wait(ctx) }

// Run owns all state and handles events until ctx is done. It returns nil then. It must
// be called once.
func (c *Controller) Run(ctx context.Context) error {
	sweep := time.NewTicker(c.cfg.SweepEvery)
	defer sweep.Stop()
	overdue := time.NewTimer(time.Hour) // for secrets that do not come
	defer overdue.Stop()
	var last time.Time // of the last trigger
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-sweep.C:
			c.state.sweep()
			c.state.warnExpiry(c.cfg.Clock())
			continue
		case look := <-c.asks:
			look(c.state)
			continue
		case <-overdue.C:
			c.state.giveUp(time.Now())
			c.handle()
		case <-c.inbox.trigger:
			if now := time.Now(); now.Sub(last) < c.cfg.HoldOff && c.waiting.Load() == 0 {
				if !c.quiet(ctx) {
					return nil
				}
			}
			last = time.Now()
			c.handle()
		}
		if due, ok := c.state.due(); ok {
			overdue.Reset(time.Until(due))
		} else {
			overdue.Stop()
		}
	}
}

// few is how many events of twice HoldOff, 400 in a second, are not waited with any longer.
const few = 8

// quiet waits until no trigger came for HoldOff, at most for Ceiling, and for twice HoldOff while there are few events. The bool is false
// when ctx is done.
func (c *Controller) quiet(ctx context.Context) bool {
	ceiling := time.NewTimer(c.cfg.Ceiling)
	defer ceiling.Stop()
	soon := time.NewTimer(2 * c.cfg.HoldOff)
	defer soon.Stop()
	quiet := time.NewTimer(c.cfg.HoldOff)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ceiling.C:
			return true
		case <-soon.C:
			if c.inbox.len() <= few {
				return true
			}
		case <-quiet.C:
			return true
		case <-c.inbox.trigger:
			quiet.Reset(c.cfg.HoldOff)
		}
	}
}

// handle takes what is there and publishes what it leads to.
func (c *Controller) handle() {
	events, number, arrived, ok := c.inbox.takeEvents()
	if !ok {
		return
	}
	c.state.stamp = number
	if next := c.inbox.takeCertificate(); next != nil {
		c.state.setDefaultCertificate(next)
	}
	if next := c.inbox.takeDestinationCA(); next != nil {
		c.state.setDestinationCA(next)
	}
	if next := c.inbox.takeOwn(); next != nil {
		c.state.setOwn(next)
	}
	if next := takeLeft(c.inbox, &c.inbox.refused); next != nil {
		c.state.setGatewayRefusals(next)
	}
	if next := takeLeft(c.inbox, &c.inbox.options); next != nil {
		c.state.setOptions(*next)
	}
	later := c.state.published
	c.state.reached = false
	if !c.state.apply(events) {
		return
	}
	if later && c.state.reached && !arrived.IsZero() {
		c.state.timing.propagated(time.Since(arrived))
	}
	select {
	case <-c.ready:
	default:
		close(c.ready)
	}
	waiting, oldest := c.state.unfinished()
	c.inbox.finish(min(number, oldest-1))
	if c.waiting.Store(int64(waiting)); waiting > 0 {
		c.state.cfg.Bounds.Reached(bound.BatchWork)
		c.inbox.wake()
	}
}
