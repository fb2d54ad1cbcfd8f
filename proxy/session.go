package proxy

import (
	"bytes"
	"strconv"
	"time"
	"unsafe"

	"turnout/balancer"
	"turnout/internal/wire/field"
	"turnout/internal/work"
	"turnout/routing"
)

// sessionEnd is for how many bytes the end of a session takes in the value of its cookie or field: a dot, and seconds since 1970 in base 36.
const sessionEnd = 14

// session returns what a request says of its session, nil if that is nothing, or over: the value of the sticky cookie, or of the field that does the same, which
// endpoints do not get.
func (ex *Exchange) session(h *Head, pol *routing.Policy, value []byte) []byte {
	if pol.SessionHeader.IsSet() {
		ex.work.Charge(2 * work.Fields(len(h.Fields)))
		if value = field.Get(h.Fields, pol.SessionHeader.String()); value == nil {
			return nil
		}
		h.Fields = field.Delete(h.Fields, pol.SessionHeader.String())
	}
	if pol.SessionTimeout <= 0 || value == nil {
		return value
	}
	at := bytes.LastIndexByte(value, '.')
	if at < 0 || len(value)-at >= sessionEnd {
		return nil
	}
	end := value[at+1:]
	until, err := strconv.ParseInt(unsafe.String(unsafe.SliceData(end), len(end)), 36, 64)
	if now := ex.cfg.Clock.Wall().Unix(); err != nil || until <= now || until > now+int64(pol.SessionTimeout/time.Second)+1 {
		return nil // nobody extends it by writing another time
	}
	return value[:at]
}

// appendSession appends the value of a session that begins now at a server.
func (ex *Exchange) appendSession(b []byte, server *balancer.Server, pol *routing.Policy) []byte {
	b = server.AppendCookie(b)
	if pol.SessionTimeout > 0 {
		b = strconv.AppendInt(append(b, '.'), ex.cfg.Clock.Wall().Add(pol.SessionTimeout).Unix(), 36)
	}
	return b
}
