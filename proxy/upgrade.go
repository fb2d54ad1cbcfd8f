package proxy

import (
	"turnout/internal/wire/protocol"
)

// switchProtocols turns a matching 101 into a tunnel (RFC 9110 section 15.2.2).
func (ex *Exchange) switchProtocols(h *Head) {
	t, ok := ex.down.(Tunneler)
	if !ok || ex.req.Upgrade == nil || !ex.reqEnd || h.Upgrade == nil || !sameToken(h.Upgrade, ex.req.Upgrade) || !t.Agrees(h) {
		ex.abandon()
		ex.answer(502, ReasonUpstreamHead)
		return
	}
	if ex.extended() {
		h.Status = 200
	}
	if failed := ex.responsePolicy(h); failed != ReasonOK {
		ex.abandon()
		ex.answer(500, failed)
		return
	}
	ex.status = h.Status
	up := ex.up
	ex.up, ex.state, ex.tunnelled = nil, stateTunnel, true
	add(&ex.w.counts.tunnels, 1)
	moved := func(in, out uint64) {
		ex.tunnelIn, ex.tunnelOut = ex.tunnelIn+in, ex.tunnelOut+out
		ex.w.moved(ex.route, in, out)
	}
	ended := func() {
		ex.w.tunnels.leave(ex.tunnel)
		if ex.state != stateTunnel { // it was given up, see Interrupted
			return
		}
		ex.account(ReasonTunnelClosed)
		ex.w.release(ex)
	}
	// The head views and the request stay alive with the exchange: the log needs them at the end.
	ex.keepForLog()
	end := t.Tunnel(h, up, ex.route.Policy().TunnelTimeout, moved, ended)
	if end == nil {
		up.Abort()
		ex.state, ex.tunnelled = stateSend, false
		ex.answer(502, ReasonUpstreamHead)
		return
	}
	ex.tunnel = ex.w.tunnels.enter(ex.route, end)
}

// extended says that the upgrade is an extended CONNECT of HTTP/2 (RFC 8441): the client takes every 2xx for the tunnel it
// asked for, so none may come but the one that stands for the endpoint's 101.
func (ex *Exchange) extended() bool { return ex.req.Spoken == protocol.HTTP2 && ex.req.Upgrade != nil }

func sameToken(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if lowerASCII(a[i]) != lowerASCII(b[i]) {
			return false
		}
	}
	return true
}

// keepForLog copies what the log will want after the codec's memory is gone.
func (ex *Exchange) keepForLog() {
	r := ex.req
	ex.req = &Head{Method: clone(r.Method), Target: clone(r.Target), Minor: r.Minor, Spoken: r.Spoken}
	ex.host = clone(ex.host)
	if ex.cookie != nil {
		ex.cookie = clone(ex.cookie)
	}
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }
