package h1

import (
	"time"

	"turnout/internal/wire/field"
	"turnout/proxy"
)

// privateIdle is the longest time between two requests on a private connection, unless the pod
// announces a shorter one. It is the idle timeout of IIS. A client that returns later has to log in
// again.
const privateIdle = 2 * time.Minute

// ownership is the private state of a connection. In the zero value, any client may use the
// connection.
type ownership struct {
	private bool           // the pod authenticates it, and it never goes to the pool
	owner   *proxy.Private // its client connection; nil = it closes after its response
	midway  bool           // the response asks for the next step of a login
}

// claim makes the connection private, unless it already is.
func (cc *clientConn) claim() {
	if !cc.private {
		cc.private = true
		cc.owner = cc.ex.Claim(cc)
	}
}

// judge looks for connection authentication in a response head, before anything is done with the
// connection. A response without a challenge, 401 or 407, can only complete the login of its own
// request.
func (cc *clientConn) judge() {
	status := cc.rs.head.Status
	challenge := status == 401 || status == 407
	challenges, continues := field.ChallengesConnection(cc.rs.head.Fields)
	if challenges {
		cc.claim()
	}
	cc.midway = challenge && continues
}

// parkPrivate returns an idle private connection to its owner.
func (cc *clientConn) parkPrivate() {
	limit := cc.ps.idleLimit(cc.pool, privateIdle, privateIdle)
	if cc.owner == nil || limit <= 0 || cc.pool.endpoint.Retired() {
		cc.shut()
		return
	}
	cc.parked = cc.ps.cfg.Loop.Now()
	cc.timer.Reset(limit)
	if !cc.owner.Return(cc.midway) {
		cc.shut()
	}
}

// Take implements proxy.PrivateConn.
func (cc *clientConn) Take(ex *proxy.Exchange) proxy.Upstream {
	if !cc.quiet(ex) {
		cc.shut()
		return nil
	}
	cc.use(ex, true)
	return cc
}

// Close implements proxy.PrivateConn.
func (cc *clientConn) Close() { cc.shut() }

// disown ends the owner's hold on the connection.
func (cc *clientConn) disown() {
	if owner := cc.owner; owner != nil {
		cc.owner = nil
		owner.Ended()
	}
}
