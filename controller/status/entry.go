package status

import (
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unservable is the type of the condition that a later version will not serve a route.
const unservable = routev1.RouteUnservableInFutureVersions

// rules is what in an entry is compared and written.
type rules struct {
	keepUnservable bool // the condition unservable is not this router's business
}

// managed reports whether the conditions of a type are to be as want has them. Others
// are left as they are: of a route that is rejected nobody looked at the future.
func (o rules) managed(t routev1.RouteIngressConditionType, want *routev1.RouteIngress) bool {
	if t == unservable && !o.keepUnservable {
		c := conditionOf(want, routev1.RouteAdmitted)
		return c != nil && c.Status == corev1.ConditionTrue
	}
	return t == routev1.RouteAdmitted
}

// sameCondition compares all but the time.
func sameCondition(a, b *routev1.RouteIngressCondition) bool {
	return sameButWords(a, b) && a.Message == b.Message
}

// sameButWords compares all but time and message.
func sameButWords(a, b *routev1.RouteIngressCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
}

func sameButConditions(a, b *routev1.RouteIngress) bool {
	return a.Host == b.Host && a.RouterName == b.RouterName && a.WildcardPolicy == b.WildcardPolicy &&
		a.RouterCanonicalHostname == b.RouterCanonicalHostname
}

// agrees reports whether an entry, nil included, says what want says. Times and
// conditions that are not managed do not count.
func (o rules) agrees(live, want *routev1.RouteIngress) bool {
	return o.agreeBy(live, want, sameCondition)
}

// agreesButWords is agrees, but that messages do not count.
func (o rules) agreesButWords(live, want *routev1.RouteIngress) bool {
	return o.agreeBy(live, want, sameButWords)
}

func (o rules) agreeBy(live, want *routev1.RouteIngress, same func(a, b *routev1.RouteIngressCondition) bool) bool {
	if live == nil || !sameButConditions(live, want) {
		return false
	}
	n := 0
	for i := range live.Conditions {
		c := &live.Conditions[i]
		if !o.managed(c.Type, want) {
			continue
		}
		n++
		if wanted := conditionOf(want, c.Type); wanted == nil || !same(c, wanted) {
			return false
		}
	}
	wanted := 0
	for i := range want.Conditions {
		if o.managed(want.Conditions[i].Type, want) {
			wanted++
		}
	}
	return n == wanted
}

// merged returns the entry to write where live stands, nil included, so that it agrees
// with want. A condition that says what it said keeps its time; one that was not there
// gets the time now, because somebody may have removed it since want was made.
func (o rules) merged(live, want *routev1.RouteIngress, now time.Time) *routev1.RouteIngress {
	out := &routev1.RouteIngress{
		Host: want.Host, RouterName: want.RouterName, WildcardPolicy: want.WildcardPolicy,
		RouterCanonicalHostname: want.RouterCanonicalHostname,
	}
	// The API keeps whole seconds.
	at := metav1.NewTime(now.UTC().Truncate(time.Second))
	put := func(c, before *routev1.RouteIngressCondition) {
		next := *c
		switch {
		case before == nil || next.LastTransitionTime == nil:
			next.LastTransitionTime = &at
		case sameCondition(before, c) && before.LastTransitionTime != nil:
			next.LastTransitionTime = before.LastTransitionTime
		}
		out.Conditions = append(out.Conditions, next)
	}
	if live != nil {
		for i := range live.Conditions {
			before := &live.Conditions[i]
			if !o.managed(before.Type, want) {
				out.Conditions = append(out.Conditions, *before)
			} else if c := conditionOf(want, before.Type); c != nil && conditionOf(out, before.Type) == nil {
				put(c, before)
			}
		}
	}
	for i := range want.Conditions {
		if c := &want.Conditions[i]; o.managed(c.Type, want) && conditionOf(out, c.Type) == nil {
			put(c, nil)
		}
	}
	return out
}

// Same reports whether two entries, nil included, say the same in all their conditions, but for the times.
func Same(a, b *routev1.RouteIngress) bool {
	if a == nil || b == nil {
		return a == b
	}
	if !sameButConditions(a, b) || len(a.Conditions) != len(b.Conditions) {
		return false
	}
	for i := range a.Conditions {
		if !sameCondition(&a.Conditions[i], &b.Conditions[i]) {
			return false
		}
	}
	return true
}

// conditionOf returns the first condition of a type, nil if there is none.
func conditionOf(entry *routev1.RouteIngress, t routev1.RouteIngressConditionType) *routev1.RouteIngressCondition {
	for i := range entry.Conditions {
		if entry.Conditions[i].Type == t {
			return &entry.Conditions[i]
		}
	}
	return nil
}

// without returns a new list that has no entry of this router.
func without(router string, entries []routev1.RouteIngress) []routev1.RouteIngress {
	out := make([]routev1.RouteIngress, 0, len(entries))
	for i := range entries {
		if entries[i].RouterName != router {
			out = append(out, entries[i])
		}
	}
	return out
}

// touched returns when a condition of an entry changed last, the zero time when none
// says.
func touched(entry *routev1.RouteIngress) time.Time {
	var last time.Time
	for i := range entry.Conditions {
		if at := entry.Conditions[i].LastTransitionTime; at != nil && at.After(last) {
			last = at.Time
		}
	}
	return last
}

// lastWriter returns the name of the router whose entry changed last, "" when none
// says.
func lastWriter(entries []routev1.RouteIngress) string {
	var last time.Time
	name := ""
	for i := range entries {
		if at := touched(&entries[i]); at.After(last) {
			last, name = at, entries[i].RouterName
		}
	}
	return name
}
