//go:build !race

package h1_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"

	"turnout/internal/testkit"
)

// gate is an endpoint that answers when all the requests that it needs are there: so many are under way at once.
type gate struct {
	mu     sync.Mutex
	opened sync.Cond
	need   int
	here   int
	round  int
}

func (g *gate) serve(c net.Conn, answer []byte) {
	defer c.Close()
	buf := make([]byte, 1024)
	for n := 0; ; {
		k, err := c.Read(buf[n:])
		if err != nil {
			return
		}
		if n += k; !bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
			continue
		}
		n = 0
		g.pass()
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	round := g.round
	if g.here++; g.here == g.need {
		g.here, g.round = 0, round+1
		g.opened.Broadcast()
	}
	for g.round == round {
		g.opened.Wait()
	}
}

// TestNoAllocationWhenBusy: a request costs no allocation however many connections have one at the same time.
func TestNoAllocationWhenBusy(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 128\r\n\r\n"
	for _, conns := range []int{1, 64, 512, 4096} {
		t.Run(fmt.Sprint(conns), func(t *testing.T) {
			r := testkit.StartRouter(t, 1, discard{})
			together := &gate{need: conns}
			together.opened.L = &together.mu
			said := []byte(answer + strings.Repeat("x", 128))
			r.Publish(t, testkit.Spec("app.test", testkit.Serve(t, func(c net.Conn) { together.serve(c, said) })))
			var all []net.Conn
			defer func() {
				for _, c := range all {
					c.Close()
				}
			}()
			for range conns {
				c, err := net.Dial("tcp", r.Addr.String())
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, c)
			}
			request, buf := []byte("GET / HTTP/1.1\r\nHost: app.test\r\nUser-Agent: test\r\n\r\n"), make([]byte, 512)
			length := len("content-length: 128\r\nHTTP/1.1 200 OK\r\n\r\n") + 128
			round := func() {
				for _, c := range all {
					if _, err := c.Write(request); err != nil {
						t.Fatal(err)
					}
				}
				for _, c := range all {
					if n, err := io.ReadFull(c, buf[:length]); err != nil {
						t.Fatalf("%q, %v", buf[:n], err)
					}
				}
			}
			rounds := max(8192/conns, 4)
			for range 4 {
				round()
			}
			if got := string(buf[:length]); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(got, "\r\n\r\n"+strings.Repeat("x", 128)) {
				t.Fatalf("answer %q", got)
			}
			requests := uint64(rounds * conns)
			var allocs, size uint64
			for range 3 { // a connection that was idle for too long is made again, on a machine that is busy
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				for range rounds {
					round()
				}
				runtime.ReadMemStats(&after)
				allocs, size = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
				t.Logf("%d requests over %d connections: %d allocations, %d bytes", requests, conns, allocs, size)
				if allocs <= requests/2 && size <= requests*64 { // the endpoint's goroutines wait, for which the runtime may need something
					return
				}
			}
			t.Errorf("%.2f allocations of %d bytes per request, want none", float64(allocs)/float64(requests), size/requests)
		})
	}
}
