package load

import (
	"errors"
	"fmt"
	"io"

	"turnout/bench/site"
)

// maxFailures ends a run: after so many it measures the failures and not the proxy.
const maxFailures = 1000

// run is the state of one Drive, shared by its clients.
type run struct {
	rig      *Rig
	profile  Profile
	clients  []*client
	sent     uint64
	answered uint64
	failures uint64
	first    error // of the failures
	stopping bool  // send no more
	waiting  int   // requests without an answer yet
}

// client is one keep-alive connection with at most one request under way.
type client struct {
	run     *run
	fd      int // -1 when there is no connection
	rw      io.ReadWriter
	request []byte
	body    []byte
	in      []byte
	have    int
	busy    bool // a request is under way
}

// open connects the client. It reports a failure to the run and returns false if that does not work.
func (c *client) open() bool {
	r := c.run
	err := site.Try(func() {
		c.fd, c.rw = dial(r.profile.Addr, r.profile.TLS)
		r.rig.loop.add(c.fd, c)
	})
	if err != nil {
		c.fd = -1
		r.fail(err)
	}
	return err == nil
}

func (c *client) close() {
	if c.fd >= 0 {
		c.run.rig.loop.remove(c.fd)
		c.fd = -1
	}
}

// send sends the next request, unless the run is ending.
func (c *client) send() {
	r := c.run
	if r.stopping || (r.profile.Requests > 0 && r.sent == r.profile.Requests) {
		return
	}
	var upstream int
	c.request, upstream = r.profile.Traffic.Next(c.request)
	c.body = r.rig.backend.bodies[upstream]
	c.have = 0
	c.busy = true
	r.sent++
	r.waiting++
	if _, err := c.rw.Write(c.request); err != nil {
		c.broken(fmt.Errorf("cannot send the request: %w", err))
	}
}

// ready reads until the answer is complete or the socket is empty: a TLS connection may hold decrypted
// bytes that epoll knows nothing of.
func (c *client) ready() {
	for {
		n, err := c.rw.Read(c.in[c.have:])
		c.have += n
		if errors.Is(err, errAgain) && c.have == 0 {
			return
		}
		if n > 0 {
			if !c.busy {
				c.broken(ErrExcess)
				return
			}
			size, bad := CheckAnswer(c.in[:c.have], c.body)
			if bad != nil {
				c.broken(bad)
				return
			}
			if size > 0 {
				c.answered()
				return
			}
		}
		if errors.Is(err, errAgain) {
			return
		}
		if err != nil {
			c.broken(fmt.Errorf("cannot read the answer: %w", err))
			return
		}
		if c.have == len(c.in) {
			c.broken(ErrHead)
			return
		}
	}
}

func (c *client) answered() {
	r := c.run
	c.busy = false
	r.waiting--
	r.answered++
	c.have = 0
	c.send()
}

// broken counts a failure and begins again on a new connection.
func (c *client) broken(err error) {
	r := c.run
	c.close()
	if c.busy {
		c.busy = false
		r.waiting--
	}
	if r.stopping {
		return
	}
	r.fail(err)
	if r.failures < maxFailures && c.open() {
		c.send()
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
