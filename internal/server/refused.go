package server

import (
	"sync/atomic"
	"time"

	"turnout/internal/reactor"
	"turnout/tlsmux"
	"turnout/tlsmux/clientcert"
)

// refusalPause is how long the log says nothing more of refused certificates after it has told of one: whoever is refused
// may come again as often as he wants.
const refusalPause = time.Second

// refusals is what the log has told of client certificates, and what it has not.
type refusals struct {
	told   atomic.Int64 // when, in ns since 1970
	untold atomic.Int64 // how many since
}

// next reports whether the log is to be told of one, and of how many it was not since the last.
func (r *refusals) next(now time.Time) (untold int64, tell bool) {
	if last := r.told.Load(); now.UnixNano()-last < int64(refusalPause) || !r.told.CompareAndSwap(last, now.UnixNano()) {
		r.untold.Add(1)
		return 0, false
	}
	return r.untold.Swap(0), true
}

// handshakeFailed tells of clients whose certificate was refused. Every loop calls it.
func (p *RequestPath) handshakeFailed(c *reactor.Conn, info tlsmux.Info, err error) {
	reason, ok := clientcert.ReasonOf(err)
	if !ok {
		return
	}
	if untold, tell := p.refused.next(time.Now()); tell {
		p.cfg.Log(Warning, "client certificate is refused", Field{"reason", reason}, Field{"client", c.RemoteAddr()},
			Field{"server_name", info.ServerName}, Field{"error", err}, Field{"more_since_the_last_line", untold})
	}
}
