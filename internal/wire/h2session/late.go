package h2session

import "turnout/internal/wire/h2frame"

// late are the streams this side ended last while the peer may have been sending: what was on its way to them is no error, and
// no flood as long as the peer could have sent it before it knew (RFC 9113 section 5.1). The zero value knows none.
type late struct {
	streams []lateStream
	next    uint8 // of streams to be replaced, once there are maxLate
	forgot  bool  // one was replaced: a closed stream that is not known may have been ended here
	spare   int64 // what was left of those that were replaced
}

// lateStream is one of them.
type lateStream struct {
	id    uint32 // 0 = none
	left  int32  // bytes of DATA its window allows
	heads uint8  // header lists that came
	ended bool   // by the peer too: nothing is on its way any more
}

const (
	maxLate = 256
	// lateHeads are the header lists that may be on their way to a stream: 1xx heads, the head and trailers.
	lateHeads = 4
)

func (l *late) addStream(st lateStream) {
	if len(l.streams) < maxLate {
		l.streams = append(l.streams, st)
		return
	}
	old := &l.streams[l.next]
	if old.id != 0 && !old.ended {
		l.forgot = true
		l.spare += int64(old.left) + lateHeads
	}
	*old = st
	l.next++ // wraps at maxLate
}

func (l *late) find(id uint32) *lateStream {
	for i := range l.streams {
		if l.streams[i].id == id {
			return &l.streams[i]
		}
	}
	return nil
}

// takes says that a frame is one that the peer could send before it knew of the end.
func (l *late) takes(h h2frame.Header) bool {
	st := l.find(h.Stream)
	if st == nil {
		cost := max(int64(h.Length), 1)
		if !l.forgot || l.spare < cost {
			return false
		}
		l.spare -= cost
		return true
	}
	if st.ended {
		return false
	}
	switch h.Type {
	case h2frame.RSTStream:
		*st = lateStream{}
		return true
	case h2frame.Data:
		if h.Length > int(st.left) || h.Length == 0 && !h.Has(h2frame.FlagEndStream) {
			return false
		}
		st.left -= int32(h.Length)
	case h2frame.Headers:
		if st.heads++; st.heads > lateHeads {
			return false
		}
	default:
		return false
	}
	st.ended = h.Has(h2frame.FlagEndStream)
	return true
}
