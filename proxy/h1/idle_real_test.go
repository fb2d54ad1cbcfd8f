package h1_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"turnout/internal/testkit"
	"turnout/proxy"
)

var (
	idleRequests = flag.Int("idle-requests", 0, "requests of TestIdleCloseLosesNoRequest; 0 = 100000, with -short 3000")
	idleFrom     = flag.Duration("idle-from", 50*time.Millisecond, "shortest time after which its endpoint closes an idle connection; the longest is five times that")
)

// TestIdleCloseLosesNoRequest: an endpoint closes idle connections after a random time,
// under clients whose pauses are as long: again and again a request meets a connection
// that is just being closed. No client sees an error.
func TestIdleCloseLosesNoRequest(t *testing.T) {
	requests, clients := *idleRequests, 800
	if requests == 0 {
		if requests = 100_000; testing.Short() {
			requests, clients = 3000, 100
		}
	}
	if *idleFrom >= time.Second {
		clients = 2000
	}
	endpoint := &impatient{from: *idleFrom}
	addr := testkit.Serve(t, endpoint.serve)
	r := testkit.StartRouter(t, 2, nil)
	r.Publish(t, testkit.Spec("app.test", addr))
	var left, failed atomic.Int64
	left.Store(int64(requests))
	var wg sync.WaitGroup
	for n := range clients {
		wg.Go(func() { ask(t, r.Addr.String(), uint64(n), *idleFrom, &left, &failed) })
	}
	wg.Wait()
	var sums proxy.Totals
	for _, w := range r.Workers {
		w.Totals(&sums)
	}
	t.Logf("%d requests, %d errors; the endpoint closed %d idle connections, %d requests met one and were sent again",
		requests, failed.Load(), endpoint.closed.Load(), sums.Retries)
	if failed.Load() > 0 || endpoint.closed.Load() == 0 {
		t.Errorf("%d of %d requests failed", failed.Load(), requests)
	}
}

// ask makes requests, with pauses, on one connection, until none are left.
func ask(t *testing.T, addr string, seed uint64, from time.Duration, left, failed *atomic.Int64) {
	random := rand.New(rand.NewPCG(seed, 1))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for left.Add(-1) >= 0 {
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n")
		status, err := in.ReadString('\n')
		if err != nil {
			t.Error(err)
			failed.Add(1)
			return
		}
		length := 0
		for line := ""; line != "\r\n" && err == nil; {
			line, err = in.ReadString('\n')
			_, _ = fmt.Sscanf(line, "content-length: %d", &length)
		}
		if _, e := io.CopyN(io.Discard, in, int64(length)); e != nil || err != nil || !strings.HasPrefix(status, "HTTP/1.1 200 ") {
			failed.Add(1)
		}
		<-time.After(time.Duration(random.Int64N(int64(6 * from)))) // pauses around the idle time are what is tested
	}
}

// impatient is an endpoint that closes each connection when it was idle for a random
// time.
type impatient struct {
	from   time.Duration
	closed atomic.Int64
}

func (e *impatient) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for first := true; ; first = false {
		if !first { // as servers do: a new connection has time
			_ = c.SetReadDeadline(time.Now().Add(e.from + rand.N(4*e.from)))
			if _, err := in.Peek(1); err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					e.closed.Add(1)
				}
				return
			}
			_ = c.SetReadDeadline(time.Time{})
		}
		for line := ""; line != "\r\n"; {
			var err error
			if line, err = in.ReadString('\n'); err != nil {
				return
			}
		}
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
			return
		}
	}
}
