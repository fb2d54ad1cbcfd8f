package proxy

import "turnout/balancer"

// rehearse goes on with the server that Peek says would be chosen, where choose would go on with one that was, see Config.Rehearse.
func (a *attempts) rehearse(lease balancer.Lease, waits bool) {
	switch {
	case lease.Server() != nil:
		a.use(lease)
	case waits:
		a.state = stateQueue
		a.self.queue()
	default:
		a.self.unserved(a.unreached())
	}
}
