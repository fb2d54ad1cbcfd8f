package adversary

import (
	"slices"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// take acts on one frame of the router.
func (s *side) take(f http2.Frame) {
	id := f.Header().StreamID
	st := s.flows[id]
	switch f := f.(type) {
	case *http2.HeadersFrame:
		s.takeHeaders(id, st, f.HeaderBlockFragment(), f.HeadersEnded(), f.StreamEnded(), true)
	case *http2.ContinuationFrame:
		s.takeHeaders(id, st, f.HeaderBlockFragment(), f.HeadersEnded(), false, false)
	case *http2.DataFrame:
		s.takeData(st, f)
	case *http2.RSTStreamFrame:
		if st == nil {
			s.failf("RST_STREAM of stream %d, which does not exist", id)
			return
		}
		if st.closed() && !st.resetHere && !(st.localEnd && f.ErrCode == http2.ErrCodeNo) && !(st.remoteEnd && st.localEnd) {
			s.failf("RST_STREAM of stream %d, which is closed", id)
		}
		was := st.closed()
		st.resetThere = true
		st.pending = nil
		if s.onReset != nil && !was {
			s.onReset(st, f.ErrCode)
		}
	case *http2.SettingsFrame:
		s.takeSettings(f)
	case *http2.PingFrame:
		if f.IsAck() {
			if s.pings--; s.pings < 0 {
				s.failf("PING acknowledged that nobody sent")
			}
		} else if !s.mute {
			_ = s.fr.WritePing(true, f.Data)
		}
	case *http2.GoAwayFrame:
		if s.away && f.LastStreamID > s.awayLast {
			s.failf("GOAWAY with stream %d after %d", f.LastStreamID, s.awayLast)
		}
		s.away, s.awayLast = true, f.LastStreamID
		if s.onAway != nil {
			s.onAway(f.LastStreamID, f.ErrCode)
		}
	case *http2.WindowUpdateFrame:
		s.takeUpdate(id, st, int64(f.Increment))
	case *http2.PushPromiseFrame, *http2.PriorityFrame:
		s.failf("the router sent %v", f.Header())
	}
}

func (s *side) takeUpdate(id uint32, st *flow, n int64) {
	if id == 0 {
		s.window += n
		if s.window > 1<<31-1 {
			s.failf("the router opened the window of the connection to %d", s.window)
		}
		s.pumpAll()
		return
	}
	if st == nil {
		s.failf("WINDOW_UPDATE of stream %d, which does not exist", id)
		return
	}
	st.window += n
	if st.window > 1<<31-1 {
		s.failf("the router opened the window of stream %d to %d", id, st.window)
	}
	s.pump(st)
}

func (s *side) takeSettings(f *http2.SettingsFrame) {
	if f.IsAck() {
		if len(s.unacked) == 0 {
			s.failf("SETTINGS acknowledged that nobody sent")
			return
		}
		t := s.unacked[0]
		s.unacked = s.unacked[1:]
		if t.most != -2 {
			s.most = t.most
		}
		if t.window >= 0 {
			for _, st := range s.flows { // DATA of those that were reset here may be on its way
				st.granted += t.window - s.own
			}
			s.own = t.window
		}
		return
	}
	if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
		for _, st := range s.order {
			st.window += int64(v) - s.initial
		}
		s.initial = int64(v)
	}
	if v, ok := f.Value(http2.SettingMaxConcurrentStreams); ok {
		s.room = v
	}
	if v, ok := f.Value(http2.SettingEnableConnectProtocol); ok {
		s.connect = v == 1
	}
	if !s.mute || s.w.chance(50) {
		_ = s.fr.WriteSettingsAck()
	}
	s.pumpAll()
}

func (s *side) pumpAll() {
	for _, f := range slices.Clone(s.order) { // what is called may forget those that end
		if len(f.pending) > 0 {
			s.pump(f)
		}
	}
}

// openFlows counts the streams that the router knows to be open.
func (s *side) openFlows() int {
	s.order = slices.DeleteFunc(s.order, (*flow).closed)
	return len(s.order)
}

func (s *side) takeHeaders(id uint32, st *flow, fragment []byte, whole, end, first bool) {
	if st == nil {
		if s.client || id%2 == 0 || id <= s.lastID {
			s.failf("HEADERS of stream %d, which does not exist", id)
			return
		}
		if open := s.openFlows(); s.most >= 0 && open >= s.most {
			s.failf("stream %d is opened although %d of %d are open", id, open, s.most)
		}
		s.lastID = id
		st = s.add(id, nil)
	}
	st.fragments = append(st.fragments, fragment...)
	if first {
		st.ending = end
	}
	if !whole {
		return
	}
	block := st.fragments
	st.fragments = nil
	if st.remoteEnd || st.resetThere {
		s.failf("HEADERS of stream %d after its end", id)
	}
	fields, err := s.dec.DecodeFull(block)
	if err != nil {
		s.failf("cannot decode the router's header list: %v", err)
		return
	}
	s.checkFields(fields)
	st.remoteEnd = st.ending
	if !st.resetHere && s.onHead != nil {
		s.onHead(st, fields, st.ending)
	}
}

// checkFields holds a header list to RFC 9113 section 8.
func (s *side) checkFields(fields []hpack.HeaderField) {
	plain := false
	for _, f := range fields {
		if f.IsPseudo() && plain {
			s.failf("%s after ordinary fields", f.Name)
		}
		plain = !f.IsPseudo()
		switch {
		case f.Name != strings.ToLower(f.Name), f.Name == "connection", f.Name == "transfer-encoding", f.Name == "keep-alive", f.Name == "upgrade",
			f.Name == "te" && f.Value != "trailers", strings.ContainsAny(f.Value, "\r\n\x00"):
			s.failf("field %q: %.40q", f.Name, f.Value)
		}
	}
}

func (s *side) takeData(st *flow, f *http2.DataFrame) {
	n := int64(f.Header().Length)
	if s.granted -= n; s.granted < 0 {
		s.failf("the router sent %d bytes more than the window of the connection", -s.granted)
	}
	if st == nil {
		s.failf("DATA of stream %d, which does not exist", f.StreamID)
		return
	}
	if st.granted -= n; st.granted < 0 && n > 0 { // SETTINGS may have taken more away than was left
		s.failf("the router sent %d bytes more than the window of stream %d", -st.granted, st.id)
	}
	if st.remoteEnd || st.resetThere {
		s.failf("DATA of stream %d after its end", st.id)
	}
	st.remoteEnd = f.StreamEnded()
	if !s.mute {
		s.granting(st, int(n))
	}
	if !st.resetHere && s.onData != nil {
		s.onData(st, f.Data(), f.StreamEnded())
	}
}

// refill is how much of a window a side that keeps the rules waits for before it opens it again. A side that does it for each frame
// of a few bytes gets ever smaller ones once a window was used up.
const refill = 4 << 10

// granting opens the windows again for n bytes that were read.
func (s *side) granting(f *flow, n int) {
	if s.taken += n; s.taken >= refill {
		s.grant(0, s.taken)
		s.taken = 0
	}
	if f.taken += n; f.taken >= min(refill, (int(f.granted)+f.taken)/2) && !f.mute && !f.remoteEnd && !f.resetHere {
		s.grant(f.id, f.taken)
		f.taken = 0
	}
}
