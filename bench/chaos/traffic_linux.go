package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"turnout/bench/site"
)

// Outcomes of a request that has no status, or no whole answer. Others are the status.
const (
	fine      = "200"
	refused   = "refused"   // no connection
	wasReset  = "reset"     // before an answer
	wasClosed = "closed"    // the same, without a reset
	wasCut    = "cut off"   // within the answer, and so that a client can tell
	silence   = "no answer" // for patience
	garbled   = "garbled"   // the answer is no HTTP, or not what the pod sent
)

// patience is how long a client waits for the next byte.
const patience = 15 * time.Second

// traffic is clients that ask one after the other, each over a connection of its own. They do not try again: what they
// see is what the router did.
type traffic struct {
	addr    string // of the router
	from    netip.Addr
	host    string
	method  string // GET or POST
	clients int
	pace    time.Duration // between two requests of a client
	fresh   bool          // each request over a new connection
}

// sample is one request.
type sample struct {
	began   time.Time
	took    time.Duration
	outcome string
}

func (s *sample) over() time.Time { return s.began.Add(s.took) }

// tally is what clients have seen. Any goroutine may read it.
type tally struct {
	mu      sync.Mutex
	samples []sample
}

func (t *tally) add(s sample) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.samples = append(t.samples, s)
}

// during returns the requests that were under way in a span of time.
func (t *tally) during(from, to time.Time) []sample {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []sample
	for _, s := range t.samples {
		if s.over().After(from) && s.began.Before(to) {
			out = append(out, s)
		}
	}
	return out
}

// since returns the requests that were under way at a time, or began after it.
func (t *tally) since(from time.Time) []sample { return t.during(from, from.Add(time.Hour)) }

// all returns all requests.
func (t *tally) all() []sample {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.samples)
}

// start lets the clients ask until ctx is done. wait returns when the last of them has its answer.
func (t *traffic) start(ctx context.Context) (seen *tally, wait func()) {
	seen = &tally{}
	callers, done := make([]*caller, t.clients), make(chan struct{})
	go func() {
		defer close(done)
		site.Paced(ctx, t.clients, max(t.pace, time.Microsecond), func(i, _ int) { callers[i] = t.once(callers[i], seen) }) // what fails is a sample
		for _, c := range callers {
			c.close()
		}
	}()
	return seen, func() { <-done }
}

// once asks, over a new connection if there is none, and returns the connection if it can be used again.
func (t *traffic) once(c *caller, seen *tally) *caller {
	s := sample{began: time.Now()}
	if c == nil {
		c, s.outcome = t.dial()
	}
	if c != nil {
		s.outcome = c.ask(t)
	}
	s.took = time.Since(s.began)
	seen.add(s)
	if s.outcome != fine && !c.kept() || t.fresh {
		c.close()
		return nil
	}
	return c
}

// caller is one connection of a client.
type caller struct {
	conn net.Conn
	r    *bufio.Reader
	end  bool // the next request needs another one
}

func (t *traffic) dial() (*caller, string) {
	d := net.Dialer{Timeout: patience}
	if t.from.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(t.from, 0))
	}
	conn, err := d.Dial("tcp4", t.addr)
	if err != nil {
		return nil, refused
	}
	return &caller{conn: conn, r: bufio.NewReader(conn)}, ""
}

func (c *caller) close() {
	if c != nil {
		c.conn.Close()
	}
}

func (c *caller) kept() bool { return c != nil && !c.end }

// ask sends one request and returns its outcome.
func (c *caller) ask(t *traffic) string {
	c.end = true
	_ = c.conn.SetDeadline(time.Now().Add(patience)) // fails on what is closed already
	text := t.method + " / HTTP/1.1\r\nHost: " + t.host + "\r\n"
	if t.method == http.MethodPost {
		text += "Content-Length: 5\r\n\r\nhello"
	} else {
		text += "\r\n"
	}
	if _, err := io.WriteString(c.conn, text); err != nil {
		return before(err)
	}
	a, err := http.ReadResponse(c.r, &http.Request{Method: t.method})
	if err != nil {
		return before(err)
	}
	defer a.Body.Close()
	got, err := io.ReadAll(a.Body)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return silence
	case err != nil:
		return wasCut
	}
	c.end = a.Close
	if a.StatusCode == http.StatusOK && string(got) != body {
		return garbled
	}
	return strconv.Itoa(a.StatusCode)
}

// before is the outcome of a request without an answer.
func before(err error) string {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return silence
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return wasReset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return wasClosed
	}
	return garbled
}

// summary is what a number of samples have in common.
type summary struct {
	site.Latency
	asked    int
	outcomes map[string]int
}

func summarize(samples []sample) summary {
	s := summary{asked: len(samples), outcomes: make(map[string]int)}
	times := make([]time.Duration, 0, len(samples))
	for _, one := range samples {
		s.outcomes[one.outcome]++
		times = append(times, one.took)
	}
	s.Latency = site.LatencyOf(times)
	return s
}

func (s *summary) failed() int { return s.asked - s.outcomes[fine] }

// String lists the outcomes, the good one first.
func (s *summary) String() string {
	out := make([]string, 0, len(s.outcomes))
	for _, k := range slices.Sorted(maps.Keys(s.outcomes)) {
		out = append(out, fmt.Sprintf("%d %s", s.outcomes[k], k))
	}
	return strings.Join(out, ", ")
}
