//go:build !race

package h1_test

import (
	"net"
	"strings"
	"testing"

	"turnout/internal/testkit"
)

// TestNoAllocationPrivate checks that a request on a private connection allocates nothing, with
// credentials and without.
func TestNoAllocationPrivate(t *testing.T) {
	for _, credentials := range []string{"", "Authorization: Negotiate oYG2\r\n"} {
		r := testkit.StartRouter(t, 1, discard{})
		r.Publish(t, testkit.Spec("app.test", testkit.Answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")))
		c, err := net.Dial("tcp", r.Addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		warmed(t, c, []byte("GET / HTTP/1.1\r\nHost: app.test\r\nAuthorization: Negotiate YII\r\n\r\n"))
		trip, answered := warmed(t, c, []byte("GET / HTTP/1.1\r\nHost: app.test\r\n"+credentials+"\r\n"))
		if !strings.HasPrefix(string(answered), "HTTP/1.1 200 OK\r\n") {
			t.Fatalf("answer %q", answered)
		}
		if got := testing.AllocsPerRun(1000, trip); got != 0 {
			t.Errorf("%v allocations per request, want 0", got)
		}
	}
}
