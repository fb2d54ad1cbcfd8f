package gateway

import (
	"runtime/debug"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// broken is what the status says of an object that cannot be judged because of a mistake of ours.
const broken = "BUG: the object cannot be judged; the log of the router says more"

// guard does work for an object, and returns false if it panics: that costs the object, and no other. Without Config.Panicked a panic goes on.
func (j *Judge) guard(of Ref, work func()) (done bool) {
	if j.cfg.Panicked == nil {
		work()
		return true
	}
	defer func() {
		if v := recover(); v != nil {
			j.cfg.Panicked(of, v, debug.Stack())
		}
	}()
	work()
	return true
}

// brokenRoute is what a route that cannot be judged says.
func brokenRoute() *compiled {
	return &compiled{reason: gatewayv1.RouteReasonUnsupportedValue, message: broken}
}
