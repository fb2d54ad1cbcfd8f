package condition

import (
	"errors"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// What the API takes in lists that several controllers write.
const (
	MaxParents   = 32 // of RouteStatus.Parents
	MaxAncestors = 16 // of PolicyStatus.Ancestors
)

// ErrFull is the error of a merge into a list that has no place left, because others have their entries in it. The API would refuse what
// does not fit, however often it is asked.
var ErrFull = errors.New("the status has no place left for another entry")

// Types that are ours in each list: those that are not wanted go.
var (
	ownedOfClass   = types(gatewayv1.GatewayClassConditionStatusAccepted, gatewayv1.GatewayClassConditionStatusSupportedVersion)
	ownedOfGateway = types(gatewayv1.GatewayConditionAccepted, gatewayv1.GatewayConditionProgrammed, gatewayv1.GatewayConditionResolvedRefs,
		gatewayv1.GatewayConditionInsecureFrontendValidationMode)
	ownedOfSet      = types(gatewayv1.ListenerSetConditionAccepted, gatewayv1.ListenerSetConditionProgrammed)
	ownedOfListener = types(gatewayv1.ListenerConditionAccepted, gatewayv1.ListenerConditionConflicted, gatewayv1.ListenerConditionResolvedRefs,
		gatewayv1.ListenerConditionProgrammed, gatewayv1.ListenerConditionOverlappingTLSConfig)
	ownedOfParent = types(gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs, gatewayv1.RouteConditionPartiallyInvalid)
	ownedOfPolicy = types(gatewayv1.PolicyConditionAccepted, gatewayv1.BackendTLSPolicyConditionResolvedRefs)
)

func types[T ~string](list ...T) []string {
	names := make([]string, 0, len(list))
	for _, name := range list {
		names = append(names, string(name))
	}
	return names
}

// Class returns the status of a class with what is wanted in it, and whether that is a change.
func Class(have, want gatewayv1.GatewayClassStatus, now metav1.Time) (gatewayv1.GatewayClassStatus, bool) {
	conditions, changed := Merge(have.Conditions, want.Conditions, ownedOfClass, now)
	changed = changed || !slices.Equal(have.SupportedFeatures, want.SupportedFeatures)
	return gatewayv1.GatewayClassStatus{Conditions: conditions, SupportedFeatures: want.SupportedFeatures}, changed
}

// Gateway returns the status of a Gateway with what is wanted in it, and whether that is a change. Addresses and listeners are those wanted.
func Gateway(have, want gatewayv1.GatewayStatus, now metav1.Time) (gatewayv1.GatewayStatus, bool) {
	merged := want
	var changed, of bool
	merged.Conditions, changed = Merge(have.Conditions, want.Conditions, ownedOfGateway, now)
	merged.Listeners = make([]gatewayv1.ListenerStatus, 0, len(want.Listeners))
	for _, l := range want.Listeners {
		var before []metav1.Condition
		if i := slices.IndexFunc(have.Listeners, func(h gatewayv1.ListenerStatus) bool { return h.Name == l.Name }); i >= 0 {
			before = have.Listeners[i].Conditions
		}
		l.Conditions, of = Merge(before, l.Conditions, ownedOfListener, now)
		merged.Listeners, changed = append(merged.Listeners, l), changed || of
	}
	return merged, changed || !sameGateway(&have, &merged)
}

// sameGateway compares what are no conditions of the Gateway itself.
func sameGateway(a, b *gatewayv1.GatewayStatus) bool {
	return same(a.Addresses, b.Addresses) && same(a.Listeners, b.Listeners) && reflect.DeepEqual(a.AttachedListenerSets, b.AttachedListenerSets)
}

// ListenerSet returns the status of a ListenerSet with what is wanted in it, and whether that is a change.
func ListenerSet(have, want gatewayv1.ListenerSetStatus, now metav1.Time) (gatewayv1.ListenerSetStatus, bool) {
	merged := want
	var changed, of bool
	merged.Conditions, changed = Merge(have.Conditions, want.Conditions, ownedOfSet, now)
	merged.Listeners = make([]gatewayv1.ListenerEntryStatus, 0, len(want.Listeners))
	for _, l := range want.Listeners {
		var before []metav1.Condition
		if i := slices.IndexFunc(have.Listeners, func(h gatewayv1.ListenerEntryStatus) bool { return h.Name == l.Name }); i >= 0 {
			before = have.Listeners[i].Conditions
		}
		l.Conditions, of = Merge(before, l.Conditions, ownedOfListener, now)
		merged.Listeners, changed = append(merged.Listeners, l), changed || of
	}
	return merged, changed || !same(have.Listeners, merged.Listeners)
}

// Route returns the parents of a route with those that are wanted in the place of the controller's, and whether that is a change. Entries of
// others stay as they are, before those of the controller that were not there yet. A nil want takes the controller's out. It fails with ErrFull
// when not all have a place; those that have are in what it returns.
func Route(have, want []gatewayv1.RouteParentStatus, controller gatewayv1.GatewayController, now metav1.Time) ([]gatewayv1.RouteParentStatus, bool, error) {
	return entries(have, want, MaxParents, parentEntry, controller, ownedOfParent, now)
}

// Policy does with the ancestors of a policy what Route does with parents.
func Policy(have, want []gatewayv1.PolicyAncestorStatus, controller gatewayv1.GatewayController, now metav1.Time) ([]gatewayv1.PolicyAncestorStatus, bool, error) {
	return entries(have, want, MaxAncestors, ancestorEntry, controller, ownedOfPolicy, now)
}

// entry is what parents and ancestors have in common.
type entry struct {
	ref        *gatewayv1.ParentReference
	controller gatewayv1.GatewayController
	conditions *[]metav1.Condition
}

func parentEntry(p *gatewayv1.RouteParentStatus) entry {
	return entry{&p.ParentRef, p.ControllerName, &p.Conditions}
}

func ancestorEntry(p *gatewayv1.PolicyAncestorStatus) entry {
	return entry{&p.AncestorRef, p.ControllerName, &p.Conditions}
}

// entries merges two lists.
func entries[T any](have, want []T, most int, of func(*T) entry, controller gatewayv1.GatewayController, owned []string, now metav1.Time) ([]T, bool, error) {
	merged, changed := make([]T, 0, max(len(have), len(want))), false
	used := make([]bool, len(want))
	for _, h := range have {
		before := of(&h)
		if before.controller != controller {
			merged = append(merged, h)
			continue
		}
		i := slices.IndexFunc(want, func(w T) bool { return reflect.DeepEqual(of(&w).ref, before.ref) })
		if i < 0 || used[i] {
			changed = true
			continue
		}
		used[i] = true
		conditions, differs := Merge(*before.conditions, *of(&want[i]).conditions, owned, now)
		*before.conditions = conditions
		merged, changed = append(merged, h), changed || differs
	}
	for i, w := range want {
		if used[i] {
			continue
		}
		if len(merged) >= most {
			return merged, changed, ErrFull
		}
		e := of(&w)
		*e.conditions, _ = Merge(nil, *e.conditions, nil, now)
		merged, changed = append(merged, w), true
	}
	return merged, changed, nil
}

// same reports whether two lists are equal; nil is an empty one.
func same[T any](a, b []T) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}
