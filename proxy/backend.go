package proxy

// divide gives it the backend that its share of a divided route falls to. Of an exchange the value of the sticky cookie decides, nil without one.
func (a *attempts) divide(cookie []byte) {
	if b := a.route.Share(cookie, a.cfg.Rehearse); b != nil {
		a.backend, a.pool = b, b.Pool()
	}
}

// shareless is what it is answered if its backend has no servers; ReasonOK: it has.
func (a *attempts) shareless() (status int, reason Reason) {
	switch {
	case a.pool != nil:
		return 0, ReasonOK
	case a.backend == nil:
		return 500, ReasonBackend
	}
	if status = a.backend.Status(); status == 503 {
		return status, ReasonNoEndpoint
	}
	return status, ReasonBackend
}

// requestDivided is the part of requestPolicy that only divided routes have.
func (ex *Exchange) requestDivided(h *Head, cookie []byte, room *int) (ok bool) {
	ex.divide(cookie)
	return ex.backend == nil || ex.backend.RequestActions() == nil || ex.apply(ex.backend.RequestActions(), h, room)
}
