package condition

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// cond reads "Type Status Reason generation seconds".
func cond(text string) metav1.Condition {
	var c metav1.Condition
	var status string
	var at int64
	if _, err := fmt.Sscan(text, &c.Type, &status, &c.Reason, &c.ObservedGeneration, &at); err != nil {
		panic(err)
	}
	c.Status = metav1.ConditionStatus(status)
	if at > 0 {
		c.LastTransitionTime = metav1.Unix(at, 0)
	}
	return c
}

// conds reads several, separated by semicolons.
func conds(text string) []metav1.Condition {
	var list []metav1.Condition
	for part := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(part) != "" {
			list = append(list, cond(part))
		}
	}
	return list
}

// now is the time of all merges.
var now = metav1.Unix(100, 0)

func TestMerge(t *testing.T) {
	for what, c := range map[string]struct {
		have, want, merged string
		changed            bool
	}{
		"nothing there":        {"", "A True R 1 0", "A True R 1 100", true},
		"the same":             {"A True R 1 5", "A True R 1 0", "A True R 1 5", false},
		"another status":       {"A False R 1 5", "A True R 1 0", "A True R 1 100", true},
		"another reason":       {"A True Q 1 5", "A True R 1 0", "A True R 1 5", true},
		"another generation":   {"A True R 1 5", "A True R 2 0", "A True R 2 5", true},
		"an older generation":  {"A True Q 3 5", "A False R 2 0", "A True Q 3 5", false},
		"others' stay":         {"X True R 1 5; A True R 1 6; Y False R 1 7", "A True R 1 0", "X True R 1 5; A True R 1 6; Y False R 1 7", false},
		"order stays":          {"B True R 1 5; X True R 1 6; A True R 1 7", "A True R 1 0; B True R 1 0", "B True R 1 5; X True R 1 6; A True R 1 7", false},
		"what is not wanted":   {"A True R 1 5; B True R 1 6", "A True R 1 0", "A True R 1 5", true},
		"what is not ours":     {"A True R 1 5; X True R 1 6", "A True R 1 0", "A True R 1 5; X True R 1 6", false},
		"nothing is wanted":    {"A True R 1 5; X True R 1 6", "", "X True R 1 6", true},
		"a message is another": {"A True R 1 5", "A True R 1 0 ", "A True R 1 5", false},
	} {
		have := conds(c.have)
		before := append([]metav1.Condition(nil), have...)
		merged, changed := Merge(have, conds(c.want), []string{"A", "B"}, now)
		if changed != c.changed || len(merged) != len(conds(c.merged)) || len(merged) > 0 && !reflect.DeepEqual(merged, conds(c.merged)) {
			t.Errorf("%s: %v, changed: %t", what, merged, changed)
		}
		if !reflect.DeepEqual(have, before) {
			t.Errorf("%s: what was there was changed", what)
		}
	}
}

func TestList(t *testing.T) {
	l := List{Generation: 4}
	l.True("A", "R", strings.Repeat("x", MaxMessage+1))
	l.False("B", "S", "m")
	l.True("B", "T", "n")
	if len(l.Conditions) != 2 || !l.Is("A") || !l.Is("B") || l.Is("C") || l.Conditions[1].Reason != "T" || l.Conditions[0].ObservedGeneration != 4 || len(l.Conditions[0].Message) != MaxMessage {
		t.Errorf("%+v", l)
	}
}

// parent is an entry of a route's status.
func parent(controller, name, conditions string) gatewayv1.RouteParentStatus {
	return gatewayv1.RouteParentStatus{ControllerName: gatewayv1.GatewayController(controller), ParentRef: ref(name), Conditions: conds(conditions)}
}

// ref reads "name" or "name/section".
func ref(text string) gatewayv1.ParentReference {
	name, section, ok := strings.Cut(text, "/")
	r := gatewayv1.ParentReference{Name: gatewayv1.ObjectName(name)}
	if ok {
		r.SectionName = new(gatewayv1.SectionName(section))
	}
	return r
}

func TestEntriesOfRoutes(t *testing.T) {
	type list = []gatewayv1.RouteParentStatus
	full := make(list, MaxParents)
	for i := range full {
		full[i] = parent("theirs", fmt.Sprint("p", i), "Accepted True R 1 5")
	}
	for what, c := range map[string]struct {
		have, want, merged list
		changed            bool
		err                error
	}{
		"nothing there":            {nil, list{parent("ours", "a", "Accepted True R 1 0")}, list{parent("ours", "a", "Accepted True R 1 100")}, true, nil},
		"the same":                 {list{parent("ours", "a", "Accepted True R 1 5")}, list{parent("ours", "a", "Accepted True R 1 0")}, list{parent("ours", "a", "Accepted True R 1 5")}, false, nil},
		"others' of one parent":    {list{parent("theirs", "a", "Accepted False R 1 5"), parent("ours", "a", "Accepted True R 1 5")}, list{parent("ours", "a", "Accepted True R 1 0")}, list{parent("theirs", "a", "Accepted False R 1 5"), parent("ours", "a", "Accepted True R 1 5")}, false, nil},
		"a parent that is gone":    {list{parent("ours", "a", "Accepted True R 1 5"), parent("theirs", "b", "Accepted True R 1 5")}, nil, list{parent("theirs", "b", "Accepted True R 1 5")}, true, nil},
		"two sections":             {list{parent("ours", "a/x", "Accepted True R 1 5")}, list{parent("ours", "a/y", "Accepted True R 1 0"), parent("ours", "a/x", "Accepted True R 1 0")}, list{parent("ours", "a/x", "Accepted True R 1 5"), parent("ours", "a/y", "Accepted True R 1 100")}, true, nil},
		"others' conditions of it": {list{parent("ours", "a", "Mine True R 1 5; PartiallyInvalid True R 1 5")}, list{parent("ours", "a", "Accepted True R 1 0")}, list{parent("ours", "a", "Mine True R 1 5; Accepted True R 1 100")}, true, nil},
		"an entry that is twice":   {list{parent("ours", "a", "Accepted True R 1 5"), parent("ours", "a", "Accepted True R 1 6")}, list{parent("ours", "a", "Accepted True R 1 0")}, list{parent("ours", "a", "Accepted True R 1 5")}, true, nil},
		"no place":                 {full, list{parent("ours", "a", "Accepted True R 1 0")}, full, false, ErrFull},
		"one place":                {full[1:], list{parent("ours", "a", "Accepted True R 1 0"), parent("ours", "b", "Accepted True R 1 0")}, append(append(list(nil), full[1:]...), parent("ours", "a", "Accepted True R 1 100")), true, ErrFull},
	} {
		merged, changed, err := Route(c.have, c.want, "ours", now)
		if !errors.Is(err, c.err) || changed != c.changed || len(merged) != len(c.merged) || len(merged) > 0 && !reflect.DeepEqual(merged, c.merged) {
			t.Errorf("%s: changed: %t, %v, %+v", what, changed, err, merged)
		}
		if err == nil {
			if again, changed, _ := Route(merged, c.want, "ours", metav1.Unix(200, 0)); changed || len(merged) > 0 && !reflect.DeepEqual(again, merged) {
				t.Errorf("%s: a second merge changes it: %+v", what, again)
			}
		}
	}
}

func TestAncestors(t *testing.T) {
	entry := func(controller, name string) gatewayv1.PolicyAncestorStatus {
		return gatewayv1.PolicyAncestorStatus{ControllerName: gatewayv1.GatewayController(controller), AncestorRef: ref(name), Conditions: conds("Accepted True R 1 0")}
	}
	var want []gatewayv1.PolicyAncestorStatus
	for i := range MaxAncestors + 1 {
		want = append(want, entry("ours", fmt.Sprint("g", i)))
	}
	merged, changed, err := Policy([]gatewayv1.PolicyAncestorStatus{entry("theirs", "x")}, want, "ours", now)
	if len(merged) != MaxAncestors || !changed || !errors.Is(err, ErrFull) || merged[0].ControllerName != "theirs" {
		t.Errorf("%d entries, %t, %v", len(merged), changed, err)
	}
}

func TestStatusOfGateways(t *testing.T) {
	kind := gatewayv1.IPAddressType
	want := gatewayv1.GatewayStatus{
		Conditions: conds("Accepted True R 2 0"), Addresses: []gatewayv1.GatewayStatusAddress{{Type: &kind, Value: "192.0.2.1"}}, AttachedListenerSets: new(int32(1)),
		Listeners: []gatewayv1.ListenerStatus{{Name: "a", AttachedRoutes: 1, SupportedKinds: []gatewayv1.RouteGroupKind{}, Conditions: conds("Accepted True R 2 0")}},
	}
	have := gatewayv1.GatewayStatus{
		Conditions: conds("X True R 1 5; Accepted True R 1 6; InsecureFrontendValidationMode True R 1 5"),
		Listeners:  []gatewayv1.ListenerStatus{{Name: "gone", Conditions: conds("Accepted True R 1 5")}, {Name: "a", Conditions: conds("Mine True R 1 5; Conflicted True R 1 5; Accepted True R 1 6")}},
	}
	merged, changed := Gateway(have, want, now)
	if !changed || len(merged.Listeners) != 1 || !reflect.DeepEqual(merged.Conditions, conds("X True R 1 5; Accepted True R 2 6")) ||
		!reflect.DeepEqual(merged.Listeners[0].Conditions, conds("Mine True R 1 5; Accepted True R 2 6")) || len(merged.Addresses) != 1 {
		t.Errorf("%+v", merged)
	}
	if _, changed := Gateway(merged, want, metav1.NewTime(time.Unix(300, 0))); changed {
		t.Error("a second merge changes it")
	}
	for what, change := range map[string]func(*gatewayv1.GatewayStatus){
		"address": func(s *gatewayv1.GatewayStatus) { s.Addresses = nil }, "count": func(s *gatewayv1.GatewayStatus) { s.AttachedListenerSets = new(int32(2)) },
		"attached": func(s *gatewayv1.GatewayStatus) {
			s.Listeners = []gatewayv1.ListenerStatus{{Name: "a", Conditions: s.Listeners[0].Conditions}}
		},
	} {
		other := want
		change(&other)
		if _, changed := Gateway(merged, other, now); !changed {
			t.Errorf("%s: another one is no change", what)
		}
	}
}

func TestStatusOfListenerSetsAndClasses(t *testing.T) {
	want := gatewayv1.ListenerSetStatus{Conditions: conds("Accepted True R 2 0"), Listeners: []gatewayv1.ListenerEntryStatus{{Name: "a", Conditions: conds("Accepted True R 2 0")}}}
	merged, changed := ListenerSet(gatewayv1.ListenerSetStatus{}, want, now)
	if !changed || !reflect.DeepEqual(merged.Listeners[0].Conditions, conds("Accepted True R 2 100")) {
		t.Errorf("%+v", merged)
	}
	if _, changed := ListenerSet(merged, want, metav1.Unix(300, 0)); changed {
		t.Error("a second merge changes it")
	}
	class := gatewayv1.GatewayClassStatus{Conditions: conds("Accepted True R 1 0"), SupportedFeatures: []gatewayv1.SupportedFeature{{Name: "A"}}}
	had, changed := Class(gatewayv1.GatewayClassStatus{Conditions: conds("Accepted Unknown Pending 1 1")}, class, now)
	if !changed || had.Conditions[0].LastTransitionTime != now {
		t.Errorf("%+v", had)
	}
	if _, changed := Class(had, class, metav1.Unix(300, 0)); changed {
		t.Error("a second merge changes it")
	}
	if _, changed := Class(had, gatewayv1.GatewayClassStatus{Conditions: class.Conditions}, now); !changed {
		t.Error("other features are no change")
	}
}
