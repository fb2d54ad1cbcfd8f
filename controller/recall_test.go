package controller

import (
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestWordsOutliveTheProcess: a controller that starts says of a rejected route what its status says, if that is by a router of
// the same name, about the same host, and still true.
func TestWordsOutliveTheProcess(t *testing.T) {
	const replaced = "False HostAlreadyClaimed: replaced by older route old"
	const displaced = "False HostAlreadyClaimed: route old already exposes h.test and is older"
	for _, c := range []struct{ host, message, want string }{
		{"h.test", "replaced by older route old", replaced},
		{"i.test", "replaced by older route old", displaced},
		{"h.test", "replaced by older route another", displaced},
	} {
		r := newRig(t, Options{RouterName: "mine"})
		r.do(aRoute("old", "h.test", 0), aRoute("young", "h.test", 1, func(o *routev1.Route) {
			o.Status.Ingress = []routev1.RouteIngress{{RouterName: "mine", Host: c.host, Conditions: []routev1.RouteIngressCondition{
				{Type: routev1.RouteAdmitted, Status: corev1.ConditionFalse, Reason: "HostAlreadyClaimed", Message: c.message},
			}}}
		}))
		r.wantCondition("young", c.want)
	}
}
