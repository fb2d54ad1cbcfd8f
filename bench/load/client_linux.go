package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"turnout/bench/site"
)

// maxFailures ends a run: after so many it measures the failures and not the proxy.
const maxFailures = 1000

// run is the state of one Drive, shared by its clients.
type run struct {
	rig      *Rig
	profile  Profile
	meter    *meter
	clients  []*client
	buffer   []byte // what a body is read into
	sent     uint64
	answered uint64
	failures uint64
	first    error // of the failures
	stopping bool  // send no more
	waiting  int   // requests without an answer yet

	began time.Time // with a Rate: of the schedule
	due   uint64    // requests that were scheduled so far
	idle  []*client // with a Rate: those that can send
	times []time.Duration
}

// phase is what a client waits for.
type phase int

const (
	phaseIdle phase = iota // nothing may come
	phaseHead
	phaseBody
	phaseEnd // the proxy closes
)

// client is one connection with at most one request under way, or one after the other when Traffic closes them.
type client struct {
	run       *run
	fd        int // -1 when there is no connection
	rw        io.ReadWriter
	request   []byte
	out       []byte // of it, not sent yet
	blocked   bool   // the loop says when there is room for that
	in        []byte // an answer's head, and of what follows as much as came with it
	have      int
	expected  []byte // body
	at        int    // of it
	phase     phase
	upgraded  bool // the connection is a WebSocket
	scheduled time.Time
}

// open connects the client. It reports a failure to the run and returns false if that does not work.
func (c *client) open() bool {
	r := c.run
	err := site.Try(func() {
		c.fd, c.rw = dial(r.profile.Addr, r.profile.TLS)
		r.rig.loop.add(c.fd, c)
	})
	c.upgraded = false
	if err != nil {
		c.fd = -1
		r.fail(err)
	}
	return err == nil
}

func (c *client) close() {
	if c.fd >= 0 {
		c.run.rig.loop.remove(c.fd)
		c.fd, c.out, c.blocked = -1, nil, false
	}
}

// askNext sends the next request, at once or when it is due.
func (c *client) askNext() {
	if r := c.run; r.profile.Rate > 0 {
		r.idle = append(r.idle, c)
		return
	}
	c.send()
}

// dueAt is when the next request of a run with a Rate is to be sent.
func (r *run) dueAt() time.Time {
	return r.began.Add(time.Duration(float64(r.due) / r.profile.Rate * float64(time.Second)))
}

// pace sends what is due. A request that found no idle connection is late, and its time counts from when it was due.
func (r *run) pace() {
	for now := time.Now(); len(r.idle) > 0; r.due++ {
		at := r.dueAt()
		if at.After(now) {
			return
		}
		c := r.idle[len(r.idle)-1]
		r.idle = r.idle[:len(r.idle)-1]
		c.scheduled = at
		c.send()
	}
}

// send sends the next request, unless the run is ending.
func (c *client) send() {
	r := c.run
	if r.stopping || (r.profile.Requests > 0 && r.sent == r.profile.Requests) || c.fd < 0 && !c.open() {
		return
	}
	c.have, c.at = 0, 0
	switch {
	case c.upgraded:
		c.out, c.expected, c.phase = r.profile.Echo, r.profile.Echo, phaseBody
	case r.profile.Echo != nil:
		c.out, c.expected, c.phase = upgrade, nil, phaseHead
	default:
		var upstream int
		c.request, upstream = r.profile.Traffic.Next(c.request)
		c.out, c.expected, c.phase = c.request, r.rig.backend.bodies[upstream], phaseHead
	}
	r.sent++
	r.waiting++
	if err := c.flush(); err != nil {
		c.broken(fmt.Errorf("cannot send the request: %w", err))
	}
}

// flush sends what the socket takes, and has the loop say when it takes the rest.
func (c *client) flush() error {
	waited := c.blocked
	n, err := c.rw.Write(c.out)
	c.out = c.out[n:]
	if errors.Is(err, io.ErrShortWrite) && c.run.profile.TLS == nil {
		err = nil
	}
	if c.blocked = len(c.out) > 0 && err == nil; c.blocked != waited && err == nil {
		c.run.rig.loop.wants(c.fd, c.blocked)
	}
	return err
}

// ready reads until the answer is complete or the socket is empty: a TLS connection may hold decrypted
// bytes that epoll knows nothing of.
func (c *client) ready() {
	if c.blocked {
		if err := c.flush(); err != nil {
			c.broken(fmt.Errorf("cannot send the request: %w", err))
			return
		}
	}
	for {
		into := c.in[c.have:]
		if c.phase == phaseBody {
			into = c.run.buffer
		}
		n, err := c.rw.Read(into)
		if n > 0 {
			done, bad := c.parse(n)
			if bad != nil {
				c.broken(bad)
				return
			}
			if done {
				c.answered()
				return
			}
			if err == nil {
				continue
			}
		}
		switch {
		case errors.Is(err, errAgain):
			return
		case errors.Is(err, io.EOF) && c.phase == phaseEnd:
			c.close()
			c.answered()
			return
		}
		c.broken(fmt.Errorf("cannot read the answer: %w", err))
		return
	}
}

// parse looks at n bytes that were read, and returns whether they complete what is waited for.
func (c *client) parse(n int) (bool, error) {
	got := c.run.buffer[:n]
	switch c.phase {
	case phaseIdle, phaseEnd:
		return false, ErrExcess
	case phaseHead:
		c.have += n
		size, err := c.head(c.in[:c.have])
		if err != nil {
			return false, err
		}
		if size == 0 {
			if c.have == len(c.in) {
				err = ErrHead
			}
			return false, err
		}
		got, c.have, c.phase = c.in[size:c.have], 0, phaseBody
	case phaseBody:
	}
	switch left := c.expected[c.at:]; {
	case len(got) > len(left):
		return false, ErrExcess
	case !bytes.Equal(got, left[:len(got)]):
		return false, ErrBody
	}
	if c.at += len(got); c.at < len(c.expected) {
		return false, nil
	}
	if c.run.profile.Echo == nil && c.run.profile.Traffic.cfg.Close {
		c.phase = phaseEnd
		return false, nil
	}
	return true, nil
}

// head returns the length of the head at the start of p, 0 as long as it is incomplete.
func (c *client) head(p []byte) (int, error) {
	if c.run.profile.Echo == nil {
		return answerHead(p, len(c.expected), c.run.profile.Traffic.cfg.Close)
	}
	if n := min(len(p), len(statusSwitching)); !bytes.Equal(p[:n], statusSwitching[:n]) {
		return 0, ErrStatus
	}
	end := bytes.Index(p, headEnd)
	if end < 0 {
		return 0, nil
	}
	return end + len(headEnd), nil
}

// answered counts what was answered, but for the answer that makes a connection a WebSocket.
func (c *client) answered() {
	r := c.run
	c.phase = phaseIdle
	r.waiting--
	if r.profile.Echo != nil && !c.upgraded {
		c.upgraded = true
		c.send()
		return
	}
	r.answered++
	if r.profile.Rate > 0 && r.meter.measuring {
		r.times = append(r.times, time.Since(c.scheduled))
	}
	c.askNext()
}

// broken counts a failure and begins again on a new connection.
func (c *client) broken(err error) {
	r := c.run
	c.close()
	if c.phase != phaseIdle {
		c.phase = phaseIdle
		r.waiting--
	}
	if r.stopping {
		return
	}
	r.fail(err)
	if r.failures < maxFailures && c.open() {
		c.askNext()
	}
}

func (r *run) fail(err error) {
	r.failures++
	if r.first == nil {
		r.first = err
	}
}

func (r *run) closeAll() {
	r.stopping = true
	for _, c := range r.clients {
		c.close()
	}
}
