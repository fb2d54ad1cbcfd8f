package server

import (
	"sync/atomic"
	"time"

	"turnout/internal/reactor"
	"turnout/tlsmux"
	"turnout/tlsmux/clientcert"
)

// refusalPause is how long the log says nothing more of refused certificates after a line about one: a client that is refused
// may come again as often as it likes.
const refusalPause = time.Second

// refusals counts refused certificates of clients that the log has no line about.
type refusals struct {
	logged   atomic.Int64 // when the last line was written, in ns since 1970
	unlogged atomic.Int64 // how many were refused since
}

// refuse counts one and reports whether it gets a line, and how many got none since the last line.
func (r *refusals) refuse(now time.Time) (unlogged int64, log bool) {
	if last := r.logged.Load(); now.UnixNano()-last < int64(refusalPause) || !r.logged.CompareAndSwap(last, now.UnixNano()) {
		r.unlogged.Add(1)
		return 0, false
	}
	return r.unlogged.Swap(0), true
}

// handshakeFailed logs clients whose certificate was refused. Every loop calls it.
func (p *RequestPath) handshakeFailed(c *reactor.Conn, info tlsmux.Info, err error) {
	reason, ok := clientcert.ReasonOf(err)
	if !ok {
		return
	}
	if unlogged, log := p.refused.refuse(time.Now()); log {
		p.cfg.Log(Warning, "client certificate is refused", Field{"reason", reason}, Field{"client", c.RemoteAddr()},
			Field{"server_name", info.ServerName}, Field{"error", err}, Field{"more_since_the_last_line", unlogged})
	}
}
