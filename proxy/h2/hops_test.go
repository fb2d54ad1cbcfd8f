package h2

import (
	"testing"

	"turnout/proxy"
	"turnout/routing"
)

// TestLoopsEnd: a route that leads back to the router over HTTP/2 ends a request after as many hops as it may have.
func TestLoopsEnd(t *testing.T) {
	for name, change := range map[string]func(*routing.RouteSpec){"HTTP/2": h2c, "HTTP/1.1": func(*routing.RouteSpec) {}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.route("app", "app.test", func(s *routing.RouteSpec) {
				change(s)
				s.Policy.Forwarded = routing.ForwardedNever
			}, frontAddr)
			c := r.connect()
			c.get(1, "/")
			c.request(3, false, "POST", "/")
			c.data(3, true, "hello")
			c.run()
			for _, id := range []uint32{1, 3} {
				if a := c.stream(id); a.status != "508" {
					t.Errorf("stream %d: status %s", id, a.status)
				}
			}
			if len(r.logged) != 18 || r.logged[0].Reason != proxy.ReasonLoop {
				t.Errorf("%d requests, the first one ended for %v", len(r.logged), r.logged[0].Reason)
			}
		})
	}
}
