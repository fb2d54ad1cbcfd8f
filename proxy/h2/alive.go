package h2

import (
	"time"

	"turnout/internal/bound"
	"turnout/internal/wire/h2frame"
)

// alive is what a connection knows of its endpoint's health. A connection with streams is looked at four times in each connect
// timeout. If nothing has come since the last look the endpoint is sent a PING; as long as that is not answered
// the connection gets no new streams, and after the ack timeout it is closed, unless the endpoint still takes bytes.
type alive struct {
	heard     int64  // when bytes came last, or the first stream was opened
	probedAt  int64  // when the last PING was sent, or the endpoint took bytes after it
	pings     int    // sent since the last HEADERS or DATA
	asked     bool   // a stream was opened since the last PING
	written   uint64 // bytes that had left at the last look
	silent    bool   // a PING is not answered
	late      bool   // a stream has timed out, and nothing came on any since
	vanished  bool   // the connection was given up because the endpoint is silent
	dozing    bool   // the timer waits for the end of an idle connection
	idleSince int64
	unended   []*clientStream // complete for the pipeline, but not for the endpoint: see linger
}

const (
	// politePings are sent without the endpoint having sent anything but answers to them; gRPC servers take more than two
	// within politeTime for an attack and end the connection.
	politePings = 2
	politeTime  = 5 * time.Minute
	// maxUnended bounds the streams that wait for an END_STREAM that says nothing.
	maxUnended = 16
)

// begun notes that a stream was opened.
func (cc *clientConn) begun() {
	cc.asked = true
	if cc.session.Streams() == 1 {
		cc.heard = cc.ps.cfg.Loop.Now()
		if cc.dozing {
			cc.dozing = false
			cc.timer.Reset(cc.pool.tick())
		}
	}
}

// came notes that something came on a stream.
func (cc *clientConn) came() { cc.answered, cc.late, cc.pings = true, false, 0 }

// mayPing says that one more PING is polite.
func (cc *clientConn) mayPing(now int64) bool {
	return cc.pings == 0 || cc.pings < politePings && cc.asked || now-cc.probedAt >= int64(politeTime)
}

// look is called by the timer of a connection that stands.
func (cc *clientConn) look() {
	now, s := cc.ps.cfg.Loop.Now(), &cc.session
	tick := int64(cc.pool.tick())
	for len(cc.unended) > 0 && now-cc.unended[0].since >= tick {
		cc.unended[0].reset(h2frame.Cancel)
	}
	if cc.state != clientReady {
		return
	}
	if s.Streams() == 0 {
		left := int64(cc.ps.cfg.IdleTimeout) - (now - cc.idleSince)
		if left <= 0 {
			cc.close()
			return
		}
		cc.dozing = true
		cc.timer.Reset(time.Duration(left))
		return
	}
	switch written := cc.c.BytesWritten(); {
	case s.Probing():
		if written != cc.written { // slow, but not gone
			cc.written, cc.probedAt = written, now
		}
		waited := now - cc.probedAt
		if waited >= int64(cc.ps.cfg.AckTimeout) {
			cc.ps.cfg.Bounds.Reached(bound.UpstreamSilent)
			cc.lost()
			return
		}
		if now-cc.heard >= tick {
			cc.silent = true
		}
	case now-cc.heard >= tick && cc.mayPing(now):
		s.Probe()
		cc.c.Flush()
		cc.probedAt, cc.written, cc.asked = now, cc.c.BytesWritten(), false
		cc.pings++
	}
	cc.timer.Reset(time.Duration(tick))
}

// lost gives up a connection whose endpoint is not there any more.
func (cc *clientConn) lost() {
	cc.gone()
	cc.vanished = true
	cc.c.CloseNow(true)
	cc.session.Abandon()
	cc.pool.serve()
}

// linger lets a stream end whose response is complete for the pipeline: that the endpoint ends it with an empty frame of its own is
// nothing to reset it for. It is waited for until the next look.
func (cc *clientConn) linger(st *clientStream) {
	if len(cc.unended) >= maxUnended {
		st.reset(h2frame.Cancel)
		return
	}
	st.since = max(cc.ps.cfg.Loop.Now(), 1)
	cc.unended = append(cc.unended, st)
}
