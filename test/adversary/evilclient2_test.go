package adversary

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// evil2 is a client that speaks HTTP/2 as far as it likes, with streams of a bystander on the same connection if it is gentle:
// then it does nothing to the connection that would have to end it.
type evil2 struct {
	*side

	b      *bystander2 // gentle: whose requests are on the connection as well
	steps  int
	resets int
	left   bool
}

// theirs is a request of the adversary.
type theirs struct{ token string }

func (w *world) startEvil2(gentle bool) {
	e := &evil2{side: newSide(w, "adversary (HTTP/2)", w.net.Connect(plainPort), true), steps: w.some(1, 40)}
	var list []http2.Setting
	if gentle {
		e.b = &bystander2{w: w, host: oneOf(w, peaceful...), name: "bystander beside an adversary", s: e.side}
		e.b.attach(e.side)
		e.steps += 20
	}
	if w.chance(50) {
		list = append(list, http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(oneOf(w, 0, 1, w.n(100), w.n(70000)))})
	}
	if w.chance(20) {
		list = append(list, http2.Setting{ID: http2.SettingHeaderTableSize, Val: uint32(w.n(10000))})
	}
	if w.chance(20) {
		list = append(list, http2.Setting{ID: http2.SettingMaxFrameSize, Val: 16384 + uint32(w.n(100000))})
	}
	e.wrap()
	e.greet(list...)
	e.flush()
	w.net.After(w.pause(), e.act)
}

// wrap puts the adversary's streams beside those of the bystander.
func (e *evil2) wrap() {
	head, data, reset := e.onHead, e.onData, e.onReset
	e.onHead = func(f *flow, fields []hpack.HeaderField, end bool) {
		q, mine := f.of.(*theirs)
		if !mine {
			head(f, fields, end)
			return
		}
		if got := fieldsOf(fields)["x-token"]; e.w.isToken(got) && q.token != "" && got != q.token {
			e.failf("the answer to %s came to %s", got, q.token)
		}
	}
	e.onData = func(f *flow, p []byte, end bool) {
		if _, mine := f.of.(*theirs); !mine {
			data(f, p, end)
		}
	}
	e.onReset = func(f *flow, code http2.ErrCode) {
		if _, mine := f.of.(*theirs); !mine {
			reset(f, code)
		}
	}
}

// act does something and comes back later.
func (e *evil2) act() {
	w := e.w
	if w.calm || e.gone || e.left {
		return
	}
	if e.steps--; e.steps < 0 {
		if e.b == nil {
			e.leave()
		}
		return
	}
	switch k := w.n(100); {
	case e.b != nil && k < 25:
		for range oneOf(w, 1, 1, 3, 8) {
			e.bystand()
		}
	case k < 55:
		for range oneOf(w, 1, 1, 2, 10) {
			e.request()
		}
	case k < 80:
		e.onStream()
	case k < 90:
		e.onConnection()
	case e.b == nil && k < 94:
		e.unlawful()
	case e.b == nil && k < 97:
		e.leave()
		return
	}
	if e.gone {
		return
	}
	e.flush()
	w.net.After(w.pause(), e.act)
}

// bystand has the bystander ask something, with windows of its own that are open.
func (e *evil2) bystand() {
	if e.away || e.openFlows() > 80 {
		return
	}
	before := e.lastID
	e.b.ask(e.side)
	if f := e.flows[e.lastID]; f != nil && e.lastID != before && e.own < 1<<20 {
		e.grant(f.id, 1<<20)
	}
}

// request opens a stream of the adversary.
func (e *evil2) request() {
	w := e.w
	if e.away || e.b != nil && e.openFlows() > 60 || e.openFlows() >= int(e.room) {
		return
	}
	p, host := w.evilPlan(), w.evilHost()
	q := &theirs{p.token}
	if isEvil(host) {
		q.token = "" // what its pods say without being asked is the answer to anybody
	}
	method := oneOf(w, "GET", "GET", "HEAD", "POST", "PUT")
	pairs := []string{":method", method, ":scheme", "http", ":authority", host, ":path", p.target()}
	if p.typ == "text/compressible" {
		pairs = append(pairs, "accept-encoding", "gzip")
	}
	if w.chance(10) {
		pairs = append(pairs, "cookie", strings.Repeat("a=b; ", w.n(500))+"c=d")
	}
	if w.chance(7) && e.connect {
		e.open(false, q, ":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":authority", host, ":path", p.target()).mute = e.b != nil
		return
	}
	if method == "POST" || method == "PUT" {
		n := oneOf(w, 0, 1, w.n(2000), w.n(20000), w.n(200000))
		if w.chance(30) {
			pairs = append(pairs, "content-length", strconv.Itoa(n))
		}
		if w.chance(20) {
			pairs = append(pairs, "expect", "100-continue")
		}
		f := e.open(false, q, pairs...)
		f.mute = e.b != nil
		e.send(f, bytes.Repeat([]byte("y"), n), w.chance(70), nil)
		return
	}
	e.open(true, q, pairs...).mute = e.b != nil
}

// any is one of the adversary's streams, nil without one.
func (e *evil2) any() *flow {
	e.openFlows()
	var list []*flow
	for _, f := range e.order {
		if _, mine := f.of.(*theirs); mine {
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return oneOf(e.w, list...)
}

// onStream does something to one of its streams.
func (e *evil2) onStream() {
	w, f := e.w, e.any()
	if f == nil {
		return
	}
	switch w.n(6) {
	case 0:
		if e.resets++; e.resets < 100 {
			e.reset(f, oneOf(w, http2.ErrCodeCancel, http2.ErrCodeNo, http2.ErrCodeInternal, http2.ErrCodeRefusedStream))
		}
	case 1:
		e.grant(f.id, 1+w.n(10))
	case 2:
		e.grant(f.id, 1+w.n(100000))
	case 3:
		if !f.localEnd {
			e.send(f, bytes.Repeat([]byte("z"), w.n(1000)), w.chance(30), nil)
		}
	case 4:
		if !f.localEnd && len(f.pending) == 0 && !f.pendingEnd {
			e.headers(f, true, "x-trailer", "z")
		}
	case 5: // padding and empty frames
		if n := int64(w.n(200)); !f.localEnd && len(f.pending) == 0 && min(f.window, e.window) > n+300 {
			_ = e.fr.WriteDataPadded(f.id, false, bytes.Repeat([]byte("p"), int(n)), make([]byte, w.n(255)))
			f.window, e.window = f.window-n-256, e.window-n-256
		}
	}
}

// onConnection does what everybody may do, at most as often as a connection may.
func (e *evil2) onConnection() {
	w := e.w
	switch w.n(8) {
	case 0:
		for range w.n(20) {
			e.pings++
			_ = e.fr.WritePing(false, [8]byte{1})
		}
	case 1:
		for range w.n(5) {
			e.settings()
		}
	case 2:
		if e.b == nil {
			e.settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(oneOf(w, 0, 1, w.n(70000)))})
		}
	case 3:
		_ = e.fr.WritePriority(e.lastID+2, http2.PriorityParam{Weight: 7})
		_ = e.fr.WriteRawFrame(0xbb, 0, 0, []byte("unknown"))
	case 4:
		if e.b == nil {
			e.peer.StopReading()
			w.net.After(w.pause(), func() { e.peer.StartReading(); e.peer.StartReading() })
		}
	case 5:
		if e.b == nil {
			e.mute = !e.mute
		}
	case 6:
		e.grant(0, 1+w.n(1000))
	case 7:
		if e.b == nil && w.chance(30) {
			_ = e.fr.WriteGoAway(0, http2.ErrCodeNo, []byte("bye"))
		}
	}
}

// unlawful breaks the rules. From here on the router may end the connection.
func (e *evil2) unlawful() {
	w := e.w
	e.wrong = true
	id := e.lastID
	switch w.n(12) {
	case 0:
		_ = e.fr.WriteWindowUpdate(id, 0)
	case 1:
		_ = e.fr.WriteWindowUpdate(0, 1<<31-1)
	case 2:
		_ = e.fr.WriteData(id+2, false, []byte("idle"))
	case 3:
		_ = e.fr.WriteData(id, true, []byte("closed?"))
	case 4:
		_ = e.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 2, BlockFragment: []byte{0x82}, EndHeaders: true})
	case 5:
		_ = e.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id + 2, BlockFragment: []byte{0x82}, EndHeaders: false})
	case 6:
		_ = e.fr.WriteContinuation(id, true, []byte{0x82})
	case 7:
		_ = e.fr.WritePushPromise(http2.PushPromiseParam{StreamID: max(id, 1), PromiseID: 2, BlockFragment: []byte{0x82}, EndHeaders: true})
	case 8:
		_ = e.fr.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 7))
	case 9:
		_ = e.fr.WriteRawFrame(http2.FrameData, 0, max(id, 1), make([]byte, 20000))
	case 10:
		for range 300 {
			if f := e.open(true, &theirs{}, ":method", "GET", ":scheme", "http", ":authority", w.evilHost(), ":path", "/"); f != nil {
				e.reset(f, http2.ErrCodeCancel)
			}
		}
	case 11:
		for range 5000 {
			_ = e.fr.WritePing(false, [8]byte{})
		}
	}
}

// leave ends the connection in one of the ways there are, or stays silent for ever.
func (e *evil2) leave() {
	e.left = true
	e.wrong = true
	switch e.w.n(6) {
	case 0:
		e.flush()
		e.peer.Close()
		e.gone = true
	case 1:
		e.peer.Reset()
		e.gone = true
	case 2:
		e.flush()
		e.peer.CloseWrite()
	case 3:
		e.peer.Stall()
	case 4:
		e.peer.StopReading()
	}
}

// startAdversary starts a client of the adversary; more follow.
func (w *world) startAdversary() {
	if w.calm {
		return
	}
	switch k := w.n(10); {
	case k < 3:
		w.startEvil1()
	case k < 6:
		w.startEvil2(false)
	case k < 9:
		w.startEvil2(true)
	default:
		w.startEvilTunnel()
	}
	w.net.After(w.pause()+time.Duration(w.n(3000))*time.Millisecond, w.startAdversary)
}
