// Package pulse finds out whether the router answers requests: it sends one to each event loop, at a listener of its own, as a
// client would. What answers clients answers it; no route of a tenant has a part in it, nor has how many connections are open.
package pulse

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"turnout/internal/bound"
	"turnout/internal/reactor"
)

const (
	// timeout is how long a loop has to answer. Probes wait for it, and kubelets wait a second for them as a rule.
	timeout = 900 * time.Millisecond
	// fresh is how long what was found is believed, however many probes come.
	fresh = 500 * time.Millisecond
	// lost is after how long without an answer the process is not alive.
	lost = 30 * time.Second
	// visitors is how many connections each loop serves of those who ask. With one more the oldest goes, which has had its answer
	// long ago or is not the router's.
	visitors = 8
)

// Config is what a Pulse needs. Group and Accept are required.
type Config struct {
	Group *reactor.Group
	// Accept gives a connection of the router to itself to the HTTP/1.1 server of its loop.
	Accept func(c *reactor.Conn) reactor.Handler
	Bounds *bound.Counts // counts loops that did not answer; nil = nobody does
}

// Pulse knows whether requests are answered. Any goroutine may use it.
type Pulse struct {
	loops  []netip.AddrPort // where each of them listens
	bounds *bound.Counts
	clock  func() time.Time

	mu      sync.Mutex
	asked   time.Time // when all had been asked last
	found   error     // then
	since   time.Time // when found became an error; zero = it is none
	stopped bool
}

// New has each loop listen on a port of its own, on a loopback address.
func New(cfg Config) (*Pulse, error) {
	if cfg.Group == nil || cfg.Accept == nil {
		return nil, errors.New("cannot check event loops: Group and Accept are required")
	}
	recent := map[*reactor.Loop]*recentConns{} // nobody writes to the map any more when loops run
	for _, l := range cfg.Group.Loops() {
		recent[l] = newRecentConns()
	}
	addrs, err := cfg.Group.ListenOwn(func(c *reactor.Conn) reactor.Handler {
		recent[c.Loop()].addConn(c)
		return cfg.Accept(c)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot check event loops: %w", err)
	}
	return &Pulse{loops: addrs, bounds: cfg.Bounds, clock: time.Now}, nil
}

// Serving says why requests are not answered, nil if they are. It takes no longer than about a second.
func (p *Pulse) Serving() error {
	_, found := p.look()
	return found
}

// Alive says why the router cannot be expected to answer again, nil if it can: it has not done so for 30 s, as those know who
// asked meanwhile.
func (p *Pulse) Alive() error {
	since, found := p.look()
	if found == nil || p.clock().Sub(since) < lost {
		return nil
	}
	return found
}

// Stop ends the questions, because the loops are about to stop listening. From then on nothing is found to be wrong.
func (p *Pulse) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped, p.found, p.since = true, nil, time.Time{}
}

// look is what was found last, or is found now, and since when it is so if it is an error.
func (p *Pulse) look() (since time.Time, found error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || !p.asked.IsZero() && p.clock().Sub(p.asked) < fresh {
		return p.since, p.found
	}
	began := p.clock()
	p.found = p.ask()
	p.asked = p.clock()
	switch {
	case p.found == nil:
		p.since = time.Time{}
	case p.since.IsZero():
		p.since = began
	}
	return p.since, p.found
}

// ask asks all loops at the same time.
func (p *Pulse) ask() error {
	errs := make([]error, len(p.loops))
	var all sync.WaitGroup
	for i, addr := range p.loops {
		all.Go(func() {
			if err := askLoop(addr); err != nil {
				p.bounds.Reached(bound.LoopTooBusy)
				errs[i] = fmt.Errorf("event loop %d does not answer: %w", i, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

const (
	question = "GET / HTTP/1.1\r\nHost: turnout\r\nConnection: close\r\n\r\n"
	answer   = "HTTP/1.1 200 "
)

// askLoop sends one request.
func askLoop(addr netip.AddrPort) error {
	end := time.Now().Add(timeout)
	c, err := (&net.Dialer{Deadline: end}).Dial("tcp", addr.String())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(end); err != nil {
		return err
	}
	if _, err := io.WriteString(c, question); err != nil {
		return err
	}
	begin := make([]byte, len(answer))
	if _, err := io.ReadFull(c, begin); err != nil {
		return err
	}
	if !strings.HasPrefix(string(begin), answer) {
		return fmt.Errorf("answered %q", begin)
	}
	return nil
}

// recentConns holds the last connections of one loop, the oldest first.
type recentConns struct{ conns []*reactor.Conn }

func newRecentConns() *recentConns { return &recentConns{make([]*reactor.Conn, 0, visitors)} }

// addConn adds c, and closes the oldest when there are too many.
func (g *recentConns) addConn(c *reactor.Conn) {
	if len(g.conns) == visitors {
		g.conns[0].CloseNow(true)
		g.conns = append(g.conns[:0], g.conns[1:]...)
	}
	g.conns = append(g.conns, c)
}
