package status

import (
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unservable is the type of the condition that a route will not be served by a later
// version as it is. OpenShift does not upgrade while a route has it.
const Unservable routev1.RouteIngressConditionType = "UnservableInFutureVersions"

// Upgrade is what is said about whether later versions can serve a route.
type Upgrade uint8

// What can be said.
const (
	UpgradeUnsaid Upgrade = iota // nothing: what the route's status says stays
	UpgradeSafe                  // they can: the condition is removed
	UpgradeForced                // they cannot, because the operator wants to see what comes of it
)

// Apply returns entry with what u says in its conditions. The bool is false when it
// says so already: then entry itself is returned. It is never changed.
func (u Upgrade) Apply(entry *routev1.RouteIngress, now time.Time) (*routev1.RouteIngress, bool) {
	want := routev1.RouteIngressCondition{
		Type: Unservable, Status: corev1.ConditionTrue,
		Reason: "ForceUpgradeValidationCondition", Message: "forced upgrade validation condition",
	}
	there, right := 0, 0
	for i := range entry.Conditions {
		if c := &entry.Conditions[i]; c.Type == Unservable {
			there++
			if c.Status == want.Status && c.Reason == want.Reason && c.Message == want.Message {
				right++
			}
		}
	}
	if u == UpgradeUnsaid || u == UpgradeSafe && there == 0 || u == UpgradeForced && there == 1 && right == 1 {
		return entry, false
	}
	out := *entry
	out.Conditions = make([]routev1.RouteIngressCondition, 0, len(entry.Conditions)+1)
	for _, c := range entry.Conditions {
		if c.Type != Unservable {
			out.Conditions = append(out.Conditions, c)
		}
	}
	if u == UpgradeForced {
		t := metav1.NewTime(now.UTC().Truncate(time.Second))
		want.LastTransitionTime = &t
		out.Conditions = append(out.Conditions, want)
	}
	return &out, true
}
