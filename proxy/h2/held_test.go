package h2

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
)

// TestMemoryOfStreamsIsBounded: clients whose windows let nothing out lose their connections when the loop holds too much for
// them; another client is served, and what was held is free in the end.
func TestMemoryOfStreamsIsBounded(t *testing.T) {
	const most = 2 << 20
	r := newRigWith(t, memnet.New(1), reactor.Config{HeldBytes: most})
	p := r.pod(1, always(ok(strings.Repeat("x", 30<<10))))
	r.route("app", "app.test", nil, p.Addr)
	good := r.connect()
	for i := range 8 {
		c := r.connectFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(i % 2)}))
		c.grant = false
		_ = c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		c.run()
		for id := uint32(1); id < 40; id += 2 {
			c.get(id, "/")
		}
		c.run()
		r.net.Advance(200 * time.Millisecond)
		if held := r.loop.HeldBytes(reactor.HeldStreams); held > most {
			t.Fatalf("after %d clients %d bytes are held", i+1, held)
		}
	}
	if r.loop.ShedConns() == 0 {
		t.Error("nobody was ended: nothing was shown")
	}
	good.get(1, "/")
	good.run()
	good.want(1, 200, strings.Repeat("x", 30<<10))
	r.net.Advance(time.Hour)
	if held := r.loop.HeldBytes(reactor.HeldStreams); held != 0 {
		t.Errorf("%d bytes are held in the end", held)
	}
}
