package h2

import "turnout/proxy/detached"

// MayRefuse implements proxy.Upstream: by RST_STREAM with REFUSED_STREAM, or by a GOAWAY that does not name the stream (RFC 9113
// section 8.7). One that has opened the window of the stream works on it.
func (st *clientStream) MayRefuse() (may, asked bool) { return !st.answered, st.Granted() }

// Plain implements proxy.Upstream: bodies go in frames.
func (st *clientStream) Plain() (none detached.Conn) { return none }

// Spliced implements proxy.Half: Plain returns no connection.
func (st *clientStream) Spliced(uint64) {}
