//go:build !race

package h1_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"turnout/internal/testkit"
)

// TestNoAllocationWhenBusy: a request costs no allocation however many connections have one at the same time.
func TestNoAllocationWhenBusy(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 128\r\n\r\n"
	for _, conns := range []int{1, 64, 512, 4096} {
		t.Run(fmt.Sprint(conns), func(t *testing.T) {
			r := testkit.StartRouter(t, 1, discard{})
			r.Publish(t, testkit.Spec("app.test", testkit.Answering(t, answer+strings.Repeat("x", 128))))
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
			size := len("content-length: 128\r\nHTTP/1.1 200 OK\r\n\r\n") + 128
			round := func() {
				for _, c := range all {
					if _, err := c.Write(request); err != nil {
						t.Fatal(err)
					}
				}
				for _, c := range all {
					if n, err := io.ReadFull(c, buf[:size]); err != nil {
						t.Fatalf("%q, %v", buf[:n], err)
					}
				}
			}
			rounds := max(8192/conns, 8)
			for range max(rounds/4, 8) {
				round()
			}
			if got := string(buf[:size]); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(got, "\r\n\r\n"+strings.Repeat("x", 128)) {
				t.Fatalf("answer %q", got)
			}
			requests := uint64(rounds * conns)
			var allocs, bytes uint64
			for range 5 { // more at once than ever before is no garbage
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				for range rounds {
					round()
				}
				runtime.ReadMemStats(&after)
				allocs, bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
				t.Logf("%d requests over %d connections: %d allocations, %d bytes", requests, conns, allocs, bytes)
				if allocs <= requests/20 && bytes <= requests*16+64<<10 {
					return
				}
			}
			t.Errorf("%.2f allocations of %d bytes per request, want none", float64(allocs)/float64(requests), bytes/requests)
		})
	}
}
