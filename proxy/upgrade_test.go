package proxy

import (
	"testing"
	"time"

	"turnout/internal/wire/protocol"
	"turnout/routing"
	"turnout/routing/header"
)

// TestUpgrades: a 101 that is what the client asked for makes a tunnel; anything else is 502.
func TestUpgrades(t *testing.T) {
	const refused = "up1 abort canceled, down head 502 close, down body <502 Bad Gateway>, down end"
	for name, x := range map[string]struct {
		line     string
		asked    string // protocol of the client
		answered string // of the endpoint
		status   int    // negative: the connection is shared
		h2       bool
		agrees   bool
		said     string
		logged   int // status
	}{
		"agreed":               {"GET /", "websocket", "WebSocket", 101, false, true, "join 101 idle 1h0m0s, up1 detach", 101},
		"over HTTP/2":          {"GET /", "websocket", "websocket", 101, true, true, "join 200 idle 1h0m0s, up1 detach", 200},
		"not to be detached":   {"GET /", "websocket", "websocket", -101, false, true, refused, 502},
		"another protocol":     {"GET /", "websocket", "h2c", 101, false, true, refused, 502},
		"no protocol":          {"GET /", "websocket", "", 101, false, true, refused, 502},
		"not asked for":        {"GET /", "", "websocket", 101, false, true, "up1 abort canceled, down head 502, down body <502 Bad Gateway>, down end", 502},
		"the client disagrees": {"GET /", "websocket", "websocket", 101, false, false, refused, 502},
		"within a body":        {"POST / 10", "websocket", "websocket", 101, false, true, refused, 502},
		"200 over HTTP/2":      {"GET /", "websocket", "", 200, true, true, refused, 502},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.agrees = x.agrees
			r.begin(Client{})
			h, end := request(x.line, "upgrade: "+x.asked)
			if x.asked != "" {
				h.Upgrade = []byte(x.asked)
			}
			if x.h2 {
				h.Spoken = protocol.HTTP2
			}
			r.ex.Request(h, end)
			if r.ex.NeedsHTTP1() != (x.asked != "") {
				t.Error("whether it upgrades is not known")
			}
			r.ready()
			r.heard()
			answer := r.switching(x.answered)
			if x.answered == "" {
				answer.Upgrade = nil
			}
			if answer.Status = x.status; x.status < 0 {
				answer.Status, answer.Detach = -x.status, nil
			}
			r.ex.ResponseHead(answer, true)
			r.want(x.said)
			if x.logged == 502 {
				r.ended(ReasonUpstreamHead, 502)
				return
			}
			open := map[TunnelRoute]int{}
			if r.w.Tunnels(open); open[TunnelRoute{"ns", "app"}] != 1 || r.totals().Tunnels != 1 {
				t.Errorf("open tunnels %v", open)
			}
			r.moved(10, 20)
			copy(h.Method, "XXX") // the memory of the codec is used again
			r.clock.advance(time.Minute)
			r.over()
			rec := r.ended(ReasonTunnelClosed, x.logged)
			if rec.BytesIn != 10 || rec.BytesOut != 20 || !rec.Tunnel || rec.Total != time.Minute || string(rec.Method) != "GET" {
				t.Errorf("logged %+v", rec)
			}
			if n := r.totals(); n.Ports[0].BytesIn != rec.HeadIn+10 || n.Ports[0].BytesOut != rec.HeadOut+20 {
				t.Errorf("counted %+v", n)
			}
		})
	}
}

// TestUpgradeThatGrowsTooLarge is answered 500 before anything was joined.
func TestUpgradeThatGrowsTooLarge(t *testing.T) {
	r := newRig(t, func(c *Config, _ *routing.RouteSpec) {
		c.ResponseActions, c.MaxRewrite = compiled(t, header.Response, "x-long", "0123456789"), 5
	})
	r.upgrade()
	r.want("acquire a, up1 head GET /ws end, up1 abort canceled, down head 500 close, down body <500 Internal Server Error>, down end")
	r.ended(ReasonRewrite, 500)
}

// TestTunnelsOfRoutesThatAreGone end so long after it, those of others do not; a route that comes back keeps them.
func TestTunnelsOfRoutesThatAreGone(t *testing.T) {
	r := newRig(t, func(c *Config, _ *routing.RouteSpec) { c.CloseTunnels = 10 * time.Second })
	other := r.specs[0]
	other.Name, other.UID, other.Host = "other", "2", "other.test"
	r.specs = append(r.specs, other)
	r.publish()
	r.upgrade()
	over, ex := []func(){r.over}, r.ex
	r.upgrade()
	over = append(over, r.over)
	r.begin(Client{})
	h, _ := request("GET /", "upgrade: websocket")
	h.Authority, h.Upgrade = []byte("other.test"), []byte("websocket")
	r.ex.Request(h, true)
	r.ready()
	r.ex.ResponseHead(r.switching("websocket"), true)
	over = append(over, r.over)
	r.heard()

	app := r.specs[0]
	set := func(specs ...routing.RouteSpec) {
		r.specs = specs
		r.publish()
		r.w.RoutesChanged(r.store.Load())
	}
	set(other)
	r.clock.advance(5 * time.Second)
	set(app, other)
	r.clock.advance(time.Minute)
	r.want("")
	app.Host = "moved.test"
	set(app, other)
	r.clock.advance(5 * time.Second)
	set(app, other) // again
	r.clock.advance(4 * time.Second)
	r.want("")
	over[1]() // this one ends by itself
	r.clock.advance(2 * time.Second)
	r.want("tunnel ends") // the other one of the route
	r.ex = ex
	over[0]()
	over[2]()
	r.specs = append([]routing.RouteSpec{app}, other)
	r.wantNothingLeft()
	if len(r.logged) != 3 {
		t.Errorf("logged %+v", r.logged)
	}

	r.logged = nil
	r.specs[0].Host = "app.test"
	r.publish()
	r.begin(Client{})
	h, _ = request("GET /", "upgrade: websocket")
	h.Upgrade = []byte("websocket")
	r.ex.Request(h, true)
	r.specs[0].Host = "moved.test" // before there is a tunnel
	r.publish()
	r.w.RoutesChanged(r.store.Load())
	r.ready()
	r.ex.ResponseHead(r.switching("websocket"), true)
	r.heard()
	r.clock.advance(11 * time.Second)
	r.want("tunnel ends")
	r.over()
	r.ended(ReasonTunnelClosed, 101)
}

// TestTunnelsStayWithoutCloseTunnels though their route is gone.
func TestTunnelsStayWithoutCloseTunnels(t *testing.T) {
	r := newRig(t, nil)
	r.upgrade()
	r.heard()
	r.specs[0].Host = "moved.test"
	r.publish()
	r.w.RoutesChanged(r.store.Load())
	r.clock.advance(time.Hour)
	r.want("")
	r.windUp()
}
