package h2

import (
	"turnout/internal/reactor"
	"turnout/proxy/h2/session"
)

// Progress implements proxy.Progress.
func (st *serverStream) Progress() (taken uint64, left int) { return progress(&st.Stream, st.sc.c) }

// Progress implements proxy.Progress.
func (st *clientStream) Progress() (taken uint64, left int) { return progress(&st.Stream, st.cc.c) }

// progress is that of the stream while bytes wait for its window, and otherwise that of the connection they wait for.
func progress(st *session.Stream, c *reactor.Conn) (taken uint64, left int) {
	if n := st.Waiting(); n > 0 {
		return st.Sent(), n
	}
	return c.BytesWritten(), c.Pending()
}
