package h2

import "turnout/proxy"

var _ proxy.Refuser = (*clientStream)(nil)

// MayRefuse implements proxy.Refuser: by RST_STREAM with REFUSED_STREAM, or by a GOAWAY that does not name the stream (RFC 9113
// section 8.7).
func (st *clientStream) MayRefuse() bool { return !st.answered }
