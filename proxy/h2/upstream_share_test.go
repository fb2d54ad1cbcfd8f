package h2

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/internal/bound"
)

// sent keeps to the windows that the router has opened: it is what a pod may send on a connection and its streams.
type sender struct {
	c    *podConn
	sent map[uint32]int
}

// room is how many bytes may be sent on a stream now.
func (s *sender) room(id uint32) int {
	conn, stream := 65535+int(s.c.granted[0]), 65535+int(s.c.granted[id])
	for _, n := range s.sent {
		conn -= n
	}
	return min(conn, stream-s.sent[id])
}

// send sends what the windows allow, up to n bytes.
func (s *sender) send(id uint32, n int) int {
	n = min(n, s.room(id))
	for left := n; left > 0; {
		k := min(left, 16384)
		_ = s.c.fr.WriteData(id, false, make([]byte, k))
		left -= k
	}
	s.sent[id] += n
	s.c.flush()
	return n
}

// TestSlowReaderStarvesNobody: a client that opens 20 streams and reads none of them takes nothing from the others that share
// the connection to the pod.
func TestSlowReaderStarvesNobody(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		c.headers(q.id, false, ":status", "200")
	})
	r.route("app", "app.test", h2c, p.addr)
	slow := r.connect()
	slow.grant = false
	_ = slow.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	for i := range uint32(20) {
		slow.get(1+2*i, "/")
	}
	slow.run()
	pc := p.conns[0]
	s := &sender{c: pc, sent: map[uint32]int{}}
	for range 50 {
		for i := range uint32(20) {
			s.send(pc.order[i].id, 100000)
		}
		r.net.Run()
	}
	held := 0
	for _, n := range s.sent {
		held += n
	}
	if held < 20*65535 || held > 20*(65535+16384) {
		t.Errorf("the pod could send %d bytes to 20 streams that are not read", held)
	}
	for i := range 32 {
		c := r.connect()
		c.get(1, "/")
		c.run()
		q := pc.order[len(pc.order)-1]
		for left := 300 << 10; left > 0; {
			n := s.send(q.id, left)
			if left -= n; n == 0 {
				t.Fatalf("request %d of others stops with %d bytes to come", i, left)
			}
			c.run()
		}
		_ = pc.fr.WriteData(q.id, true, nil)
		pc.flush()
		c.run()
		c.want(1, 200, string(make([]byte, 300<<10)))
	}
	if len(p.conns) != 1 {
		t.Errorf("%d connections", len(p.conns))
	}
}

// TestShutConnectionIsNotPicked: where the endpoint takes no more bodies on a connection, new requests get another one.
func TestShutConnectionIsNotPicked(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) { c.say(q.id, "200", "x") })
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	c.request(1, false, "POST", "/stuck")
	c.run()
	p.conns[0].deaf = true
	_ = p.conns[0].fr.WriteWindowUpdate(1, 1<<20)
	p.conns[0].flush()
	for range 6 {
		c.data(1, false, strings.Repeat("u", 16000))
	}
	c.run()
	c.get(3, "/") // for which it does not matter, for a moment
	c.run()
	c.want(3, 200, "x")
	if len(p.conns) != 1 {
		t.Errorf("%d connections", len(p.conns))
	}
	for i := range uint32(32) {
		id := 5 + 2*i
		c.request(id, false, "POST", "/")
		c.data(id, true, "body")
		c.run()
		c.want(id, 200, "x")
	}
	if len(p.conns) != 2 {
		t.Errorf("%d connections", len(p.conns))
	}
	r.net.Advance(150 * time.Millisecond)
	p.conns[1].peer.Close()
	c.run()
	c.get(101, "/") // and then it does
	c.run()
	c.want(101, 200, "x")
	if len(p.conns) != 3 {
		t.Errorf("%d connections", len(p.conns))
	}
}

// TestClientsThatLeave: what is on its way to streams that clients gave up ends nothing, however many there are, at once or one after the
// other.
func TestClientsThatLeave(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		c.headers(q.id, false, ":status", "200")
		if strings.Contains(q.line, "/good") {
			_ = c.fr.WriteData(q.id, true, []byte("good"))
		}
	})
	r.route("app", "app.test", h2c, p.addr)
	other, next := r.connect(), uint32(1)
	events := func(id uint32, pc *podConn) {
		for range 30 {
			_ = pc.fr.WriteData(id, false, []byte("data: event\n\n"))
		}
	}
	bystander := func() {
		t.Helper()
		other.get(next, "/good")
		other.run()
		other.want(next, 200, "good")
		next += 2
	}
	for round, many := range []int{10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 90, 90, 90, 90, 90} {
		c := r.connect()
		for i := range uint32(many) {
			c.get(1+2*i, "/events")
		}
		c.run()
		bystander()
		c.peer.Close()
		for _, pc := range p.conns { // the events leave before the pod knows
			for _, q := range pc.order {
				if q.reset == "" && strings.Contains(q.line, "/events") {
					events(q.id, pc)
				}
			}
		}
		r.net.Run()
		for _, pc := range p.conns {
			for _, q := range pc.order {
				if q.reset == "CANCEL" { // and some later
					events(q.id, pc)
					q.reset = "seen"
				}
			}
			pc.flush()
		}
		bystander()
		r.net.Advance(60 * time.Millisecond)
		for i, pc := range p.conns {
			if pc.goAway != nil && pc.goAway.ErrCode != http2.ErrCodeNo {
				t.Fatalf("round %d: connection %d ended with %v", round, i, pc.goAway)
			}
		}
	}
	r.wantQuiet()
	if n := r.bounds.Of(bound.UpstreamFrames); n != 0 {
		t.Errorf("%d floods were seen", n)
	}
}

// TestManyResetsWearAConnectionOut: servers take those that cancel much for attackers, so a connection is left before that.
func TestManyResetsWearAConnectionOut(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		if strings.Contains(q.line, "/good") {
			c.say(q.id, "200", "good")
		}
	})
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	for i := range uint32(350) {
		c.get(1+4*i, "/")
		c.get(3+4*i, "/good")
		c.run()
		c.want(3+4*i, 200, "good")
		_ = c.fr.WriteRSTStream(1+4*i, http2.ErrCodeCancel)
		c.run()
		r.net.Advance(100 * time.Millisecond)
	}
	if len(p.conns) != 4 {
		t.Errorf("%d connections", len(p.conns))
	}
	for _, pc := range p.conns {
		resets := 0
		for _, q := range pc.order {
			if q.reset != "" {
				resets++
			}
		}
		if resets > maxResets {
			t.Errorf("%d streams of a connection were reset", resets)
		}
	}
	if n := r.pools.Open(); n > 1 {
		t.Errorf("%d connections are open", n)
	}
}

// TestWornConnectionsAreBetterThanNone: clients who leave, and others whose streams last, use up what there may be of connections,
// and requests are served nevertheless.
func TestWornConnectionsAreBetterThanNone(t *testing.T) {
	r := newRig(t)
	r.pools.cfg.MaxConns = 2
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		switch {
		case strings.Contains(q.line, "/good"):
			c.say(q.id, "200", "good")
		case strings.Contains(q.line, "/events"):
			c.headers(q.id, false, ":status", "200")
		}
	})
	r.route("app", "app.test", h2c, p.addr)
	c, lasting := r.connect(), r.connect()
	for i := range uint32(400) {
		if i%50 == 0 {
			lasting.get(1+2*i, "/events")
			lasting.run()
		}
		c.get(1+4*i, "/")
		c.get(3+4*i, "/good")
		c.run()
		c.want(3+4*i, 200, "good")
		_ = c.fr.WriteRSTStream(1+4*i, http2.ErrCodeCancel)
		c.run()
		r.net.Advance(60 * time.Millisecond)
	}
	if len(p.conns) != 2 {
		t.Errorf("%d connections", len(p.conns))
	}
}

// TestHeadWithEmptyData: an answer to HEAD, or 304, that ends with an empty frame of its own is complete, and nothing is reset
// for it.
func TestHeadWithEmptyData(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		status := "200"
		if strings.HasPrefix(q.line, "GET") {
			status = "304"
		}
		c.headers(q.id, false, ":status", status, "content-length", "12")
		_ = c.fr.WriteData(q.id, true, nil)
	})
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	for i := range uint32(3000) {
		c.request(1+4*i, true, "HEAD", "/")
		c.get(3+4*i, "/")
		c.run()
		c.want(1+4*i, 200, "")
		c.want(3+4*i, 304, "")
		if i%100 == 0 {
			c.frames = nil
		}
	}
	pc := p.conns[0]
	if len(p.conns) != 1 || pc.goAway != nil {
		t.Errorf("%d connections, GOAWAY %v", len(p.conns), pc.goAway)
	}
	for _, q := range pc.order {
		if q.reset != "" {
			t.Fatalf("%s was reset with %s", q.line, q.reset)
		}
	}
	r.wantQuiet()
}

// TestHeadThatNeverEnds: the stream of an answer that is complete without its END_STREAM is given up soon, and at once if there
// are many.
func TestHeadThatNeverEnds(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) { c.headers(q.id, false, ":status", "200") })
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	for i := range uint32(30) {
		c.request(1+2*i, true, "HEAD", "/")
	}
	c.run()
	given := func() (n int) {
		for _, q := range p.conns[0].order {
			if q.reset == "CANCEL" {
				n++
			}
		}
		return n
	}
	for i := range uint32(30) {
		c.want(1+2*i, 200, "")
	}
	if n := given(); n != 30-maxUnended {
		t.Errorf("%d streams were given up at once", n)
	}
	r.net.Advance(4 * time.Second)
	if n := given(); n != 30 {
		t.Errorf("%d streams were given up", n)
	}
	r.wantQuiet()
}

// TestMalformedAnswersEndNoOthers: what a pod breaks is the answer to the client that asked for it.
func TestMalformedAnswersEndNoOthers(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		if strings.Contains(q.line, "/bad") {
			c.headers(q.id, false, ":status", "200", "content-length", "5")
			_ = c.fr.WriteData(q.id, true, []byte("too long"))
		}
	})
	r.route("app", "app.test", h2c, p.addr)
	other := r.connect()
	other.get(1, "/")
	other.run()
	c := r.connect()
	for i := range uint32(1000) {
		c.get(1+2*i, "/bad")
		c.run()
	}
	p.conns[0].say(1, "200", "good")
	p.conns[0].flush()
	other.run()
	other.want(1, 200, "good")
}

// TestFramesNobodyAskedFor: what no request asked for is bounded, on streams that this side gave up as well.
func TestFramesNobodyAskedFor(t *testing.T) {
	for name, frame := range map[string]func(c *podConn, i int){
		"PING":               func(c *podConn, _ int) { _ = c.fr.WritePing(false, [8]byte{}) },
		"DATA after a reset": func(c *podConn, _ int) { _ = c.fr.WriteData(1, false, []byte(strings.Repeat("x", 1000))) },
		"HEADERS after a reset": func(c *podConn, _ int) {
			c.headers(1, false, ":status", "200")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod2(1, func(*podConn, *podRequest) {})
			r.route("app", "app.test", h2c, p.addr)
			c := r.connect()
			c.get(1, "/")
			c.run()
			_ = c.fr.WriteRSTStream(1, http2.ErrCodeCancel)
			c.run()
			pc := p.conns[0]
			i := 0
			for ; i < 10000 && pc.goAway == nil; i++ {
				frame(pc, i)
				pc.flush()
				r.net.Run()
			}
			if pc.goAway == nil || i > 2500 || r.bounds.Of(bound.UpstreamFrames) != 1 {
				t.Errorf("GOAWAY %v after %d frames, %d floods were counted", pc.goAway, i, r.bounds.Of(bound.UpstreamFrames))
			}
			r.wantQuiet()
		})
	}
}

// TestPodThatDoesNotRead: heads are bounded as bodies are: a connection on which much waits gets no more of either, the
// requests wait for their time, and others are not concerned.
func TestPodThatDoesNotRead(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) { c.say(q.id, "200", "x") })
	good := r.pod2(2, func(c *podConn, q *podRequest) { c.say(q.id, "200", "good") })
	r.route("app", "app.test", h2c, p.addr)
	r.route("good", "good.test", h2c, good.addr)
	warm := r.connect()
	warm.get(1, "/")
	warm.run()
	warm.want(1, 200, "x")
	p.mute = true
	p.conns[0].peer.StopReading()
	field := strings.Repeat("v", 15000)
	var all []*client
	for range 20 {
		c := r.connect()
		for i := range uint32(50) {
			c.get(1+2*i, "/", "x-large", field)
			c.run()
		}
		all = append(all, c)
	}
	pending := 0
	for _, q := range r.pools.byID {
		if q == nil {
			continue
		}
		for _, cc := range q.conns {
			if n := cc.c.Pending(); n > 64<<10 {
				t.Errorf("%d bytes are queued on a connection", n)
			}
			pending += cc.c.Pending()
		}
		if len(q.conns) > 40 {
			t.Errorf("%d connections to a pod that does not read, for 1000 requests", len(q.conns))
		}
	}
	if pending > 2<<20 {
		t.Errorf("%d bytes are queued for a pod that does not read", pending)
	}
	other := r.connect()
	other.headers(1, true, ":method", "GET", ":scheme", "http", ":authority", "good.test", ":path", "/")
	other.run()
	other.want(1, 200, "good")
	r.net.Advance(7 * time.Second) // those for whom there was no room
	statuses := map[string]int{}
	for _, c := range all {
		c.run()
		for _, a := range c.streams {
			statuses[a.status]++
		}
	}
	if statuses["503"] < 800 {
		t.Errorf("answers %v", statuses)
	}
	if r.bounds.Of(bound.OutputUpstream) == 0 {
		t.Error("the bound was not counted")
	}
	r.net.Advance(2 * time.Minute)
	for _, c := range all {
		c.run()
	}
	r.wantQuiet()
	if n := r.pools.Open(); n > 1 {
		t.Errorf("%d connections are left", n)
	}
}
