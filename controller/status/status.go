// Package status keeps what the router says about a route in the route's status. It is
// pure: old entry in, new entry out.
package status

import (
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/admit"
)

// Options is who writes.
type Options struct {
	RouterName        string // finds the entry among those of other routers
	CanonicalHostname string // "" = none
}

// Entry returns the status entry of a route with a verdict. old is the entry there is,
// nil for none; it is not changed. The bool is false when old says the same already:
// then old is returned. The time of the Admitted condition is changed only with the
// condition.
func Entry(o Options, old *routev1.RouteIngress, host string, policy routev1.WildcardPolicyType, v admit.Verdict, now time.Time) (*routev1.RouteIngress, bool) {
	condition := routev1.RouteIngressCondition{Type: routev1.RouteAdmitted, Status: corev1.ConditionTrue, Reason: v.Reason, Message: v.Message}
	if !v.Admitted {
		condition.Status = corev1.ConditionFalse
	}
	var found *routev1.RouteIngressCondition
	if old != nil {
		for i := range old.Conditions {
			if old.Conditions[i].Type == condition.Type {
				found = &old.Conditions[i]
				break
			}
		}
	}
	same := found != nil && found.Status == condition.Status && found.Reason == condition.Reason && found.Message == condition.Message
	if same && old.Host == host && old.WildcardPolicy == policy && old.RouterCanonicalHostname == o.CanonicalHostname {
		return old, false
	}
	if same {
		condition.LastTransitionTime = found.LastTransitionTime
	} else {
		// The API keeps whole seconds.
		t := metav1.NewTime(now.UTC().Truncate(time.Second))
		condition.LastTransitionTime = &t
	}
	entry := &routev1.RouteIngress{
		Host: host, RouterName: o.RouterName, WildcardPolicy: policy, RouterCanonicalHostname: o.CanonicalHostname,
	}
	if old != nil {
		for _, c := range old.Conditions {
			if c.Type != condition.Type {
				entry.Conditions = append(entry.Conditions, c)
			}
		}
	}
	entry.Conditions = append(entry.Conditions, condition)
	return entry, true
}

// Admitted returns the condition of an entry, which may be nil, that says whether the route is admitted; nil without one.
func Admitted(entry *routev1.RouteIngress) *routev1.RouteIngressCondition {
	if entry == nil {
		return nil
	}
	return conditionOf(entry, routev1.RouteAdmitted)
}

// Find returns the entry of this router in a list of entries, nil if there is none.
func Find(o Options, entries []routev1.RouteIngress) *routev1.RouteIngress {
	for i := range entries {
		if entries[i].RouterName == o.RouterName {
			return &entries[i]
		}
	}
	return nil
}

// WithEntry returns a new list of entries in which this router's entry is entry. Entries of
// other routers stay as they are.
func WithEntry(o Options, entries []routev1.RouteIngress, entry *routev1.RouteIngress) []routev1.RouteIngress {
	out := make([]routev1.RouteIngress, 0, len(entries)+1)
	put := false
	for i := range entries {
		if entries[i].RouterName == o.RouterName && !put {
			out = append(out, *entry)
			put = true
			continue
		}
		out = append(out, entries[i])
	}
	if !put {
		out = append(out, *entry)
	}
	return out
}
