package adversary

import (
	"bytes"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/internal/reactor/memnet"
)

// evilConn2 is a connection of a pod that speaks HTTP/2 as far as it likes once a request of the namespace evil came on it.
type evilConn2 struct {
	*side

	good  *goodConn2
	evil  bool
	steps int
}

func (w *world) evilPod2(peer *memnet.Peer) {
	g := w.goodPod2(peer, habits{})
	c := &evilConn2{side: g.side, good: g, steps: 2 + w.n(10)}
	head, data := g.onHead, g.onData
	c.onHead = func(f *flow, fields []hpack.HeaderField, end bool) {
		host := fieldsOf(fields)[":authority"]
		switch {
		case isEvil(host):
			if !c.evil {
				c.evil = true
				w.net.After(w.pause(), c.act)
			}
			c.asked(f, fields)
		case c.evil && host != "":
			w.failf("a request of %s came on a connection of the adversary", host)
		case c.evil: // trailers
		default:
			head(f, fields, end)
		}
	}
	c.onData = func(f *flow, p []byte, end bool) {
		if !c.evil {
			data(f, p, end)
		}
	}
}

// asked answers a request some time, or does not.
func (c *evilConn2) asked(f *flow, fields []hpack.HeaderField) {
	m := fieldsOf(fields)
	q := &call{p: planOf(m[":path"]), method: m[":method"]}
	f.of = q
	c.w.net.After(c.w.pause(), func() {
		if !c.gone && !f.closed() && !f.localEnd {
			c.answerBadly(f, q)
			c.flush()
		}
	})
}

func (c *evilConn2) answerBadly(f *flow, q *call) {
	w, p := c.w, q.p
	switch w.n(18) {
	case 0: // never
	case 1:
		c.reset(f, oneOf(w, http2.ErrCodeRefusedStream, http2.ErrCodeCancel, http2.ErrCodeInternal, http2.ErrCodeNo, http2.ErrCodeProtocol, http2.ErrCodeHTTP11Required))
	case 2:
		c.headers(f, false, ":status", "200", "x-token", p.token)
		c.reset(f, oneOf(w, http2.ErrCodeCancel, http2.ErrCodeNo, http2.ErrCodeRefusedStream))
	case 3:
		for range w.n(30) {
			c.headers(f, false, ":status", "103", "link", "x")
		}
		c.good.answer(f, q)
	case 4: // half an answer
		c.headers(f, false, ":status", "200", "x-token", p.token, "content-length", "100")
		c.send(f, []byte("half"), false, nil)
	case 5:
		c.headers(f, false, ":status", "200", "x-token", p.token, "content-length", "3")
		c.send(f, []byte("too long"), true, nil)
	case 6:
		c.headers(f, true, ":status", "200", "x-token", p.token, "content-length", "3")
	case 7:
		c.headers(f, true, ":status", oneOf(w, "204", "304", "404", "500", "503", "999", "abc", "101", ""))
	case 8:
		c.headers(f, true, "x-token", p.token)
	case 9:
		c.headers(f, false, ":status", "200", "x-token", p.token)
		for range w.n(50) {
			_ = c.fr.WriteData(f.id, false, nil)
		}
		c.send(f, bytes.Repeat([]byte("d"), w.n(300000)), w.chance(50), nil)
	case 10: // HEAD and the like, too
		c.headers(f, false, ":status", "200", "x-token", p.token)
		_ = c.fr.WriteData(f.id, true, nil)
		f.localEnd = true
	case 11:
		c.headers(f, false, ":status", "200", "x-token", p.token)
		c.headers(f, true, "x-trailer", "z")
		if w.chance(30) {
			c.wrong = true
			_ = c.fr.WriteData(f.id, false, []byte("after the end"))
		}
	case 12:
		c.headers(f, false, ":status", "200", "x-token", p.token, "x-large", strings.Repeat("l", w.n(100000)))
	default:
		c.good.answer(f, q)
	}
}

// act does something to the connection and comes back later.
func (c *evilConn2) act() {
	w := c.w
	if c.gone || w.calm {
		return
	}
	if c.steps--; c.steps < 0 {
		return
	}
	switch w.n(16) {
	case 0:
		c.settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(oneOf(w, 0, 1, w.n(100000)))})
	case 1:
		c.settings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(oneOf(w, 0, 1, w.n(10), 1000))})
	case 2:
		_ = c.fr.WriteGoAway(oneOf(w, 0, c.lastID, 1<<31-1), oneOf(w, http2.ErrCodeNo, http2.ErrCodeEnhanceYourCalm), nil)
		c.wrong = true // it goes on to answer what it said it would not
	case 3:
		for range w.n(50) {
			c.pings++
			_ = c.fr.WritePing(false, [8]byte{2})
		}
	case 4:
		c.mute = !c.mute
	case 5:
		c.peer.StopReading()
		w.net.After(w.pause(), c.peer.StartReading)
	case 6:
		c.peer.CloseWrite()
	case 7:
		c.peer.Reset()
		c.gone = true
	case 8:
		c.peer.Stall()
	case 9:
		c.wrong = true
		_ = c.fr.WriteRawFrame(oneOf(w, http2.FrameData, http2.FrameHeaders, http2.FrameSettings, http2.FramePushPromise, http2.FrameContinuation),
			0, c.lastID, bytes.Repeat([]byte{0x82}, w.n(20)))
	case 10:
		c.settings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: uint32(w.n(9000))}, http2.Setting{ID: http2.SettingMaxFrameSize, Val: 16384})
	case 11:
		c.grant(0, 1+w.n(100))
	}
	if c.gone {
		return
	}
	c.flush()
	w.net.After(w.pause(), c.act)
}
