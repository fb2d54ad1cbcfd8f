package proxy

func (ex *Exchange) requestMalformed(status int, detail string) {
	ex.detail = detail
	if ex.state == stateBody {
		ex.breakOff(FaultMalformed, rejection(status))
		return
	}
	ex.abandon()
	ex.answer(status, rejection(status))
}

// rejection is the reason that goes with the status of a request that is refused for
// what it is.
func rejection(status int) Reason {
	switch status {
	case 408:
		return ReasonClientTimeout
	case 413:
		return ReasonContentSize
	case 414:
		return ReasonTargetSize
	case 431:
		return ReasonHeadSize
	case 417, 501, 505:
		return ReasonUnsupported
	}
	return ReasonBadRequest
}

// unserved methods reach no endpoint: CONNECT would make a tunnel past every policy (RFC 9110 section 9.3.6), TRACE would tell
// the client what the router adds for the endpoint alone (section 9.3.8), PRI is kept for HTTP/2 (RFC 9113 section 11.6).
func unserved(method []byte) bool {
	switch string(method) {
	case "CONNECT", "TRACE", "PRI":
		return true
	}
	return false
}
