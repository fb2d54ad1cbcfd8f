package gateway

import (
	"fmt"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
	"turnout/internal/bound"
)

// wide returns manifests of a Gateway with that many listeners, each on its own port, and of
// HTTPRoutes with that many host names and matches.
func wide(ports, hosts, matches int, routes ...string) string {
	var listeners, names, list []string
	for i := range ports {
		listeners = append(listeners, fmt.Sprintf("{name: l%d, port: %d, protocol: HTTP}", i, 8000+i))
	}
	for i := range hosts {
		names = append(names, fmt.Sprintf("h%d.test", i))
	}
	for i := range matches {
		list = append(list, fmt.Sprintf("{path: {value: /%d}}", i))
	}
	out := fmt.Sprintf("{kind: Gateway, metadata: {name: gw}, spec: {gatewayClassName: turnout, listeners: [%s]}}", strings.Join(listeners, ", "))
	for age, name := range routes {
		out += fmt.Sprintf("\n---\n{kind: HTTPRoute, metadata: {name: %s, creationTimestamp: '2020-01-01T00:00:%02dZ'}, spec: {parentRefs: [{name: gw}], hostnames: [%s], rules: [{matches: [%s], backendRefs: [{name: a, port: 80}]}]}}",
			name, age, strings.Join(names, ", "), strings.Join(list, ", "))
	}
	return out
}

// accepted returns the reason and the message of the condition Accepted of an HTTPRoute.
func accepted(r *Result, name string) (reason, message string) {
	for _, c := range r.Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: name}}].Status.Parents[0].Conditions {
		if c.Type == string(gatewayv1.RouteConditionAccepted) {
			return c.Reason, c.Message
		}
	}
	return "", ""
}

// TestObjectThatExpandsToTooMuchIsNotMade checks a small object that multiplies by listeners, host
// names and matches. It is not accepted, its status has the figure and the limit, and no rule is
// made. It is served as soon as it is small enough.
func TestObjectThatExpandsToTooMuchIsNotMade(t *testing.T) {
	w := newWorld(t)
	var bounds bound.Counts
	w.j.cfg.Bounds = &bounds
	r := w.add(wide(40, 16, 128, "r")).judge()
	reason, message := accepted(r, "r")
	if reason != "UnsupportedValue" || message != "The route expands to 81,920 rules, limit 4,096" {
		t.Errorf("%s: %s", reason, message)
	}
	if len(r.Changes.Rules) != 0 || bounds.Of(bound.ObjectExpansion) != 1 {
		t.Errorf("%d rules, counted %d times", len(r.Changes.Rules), bounds.Of(bound.ObjectExpansion))
	}
	r = w.add(wide(2, 16, 128, "r")).judge()
	if reason, message = accepted(r, "r"); reason != "Accepted" || len(r.Changes.Rules) != 4096 {
		t.Errorf("%s: %s, %d rules", reason, message, len(r.Changes.Rules))
	}
	r = w.add(wide(3, 16, 128)).judge() // only the Gateway has changed: one more listener
	if reason, _ = accepted(r, "r"); reason != "UnsupportedValue" || len(r.Changes.DeletedRules) != 4096 {
		t.Errorf("%s, %d rules deleted", reason, len(r.Changes.DeletedRules))
	}
}

// TestNamespaceThatExpandsToTooMuch checks that the youngest objects are not accepted when a
// namespace exceeds its allowance. They are accepted once older objects are deleted.
func TestNamespaceThatExpandsToTooMuch(t *testing.T) {
	w := newWorld(t)
	var bounds bound.Counts
	w.j.cfg.Bounds = &bounds
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprint("r", i))
	}
	w.add(wide(2, 16, 120, names...))
	r := w.judge()
	served := 0
	for _, name := range names {
		if reason, _ := accepted(r, name); reason == "Accepted" {
			served++
		}
	}
	last := names[len(names)-1]
	reason, message := accepted(r, last)
	if served >= len(names) || served < 6 || reason != "UnsupportedValue" || !strings.Contains(message, "limit 58,720,256 for all objects of the namespace") {
		t.Fatalf("%d of %d are served; the last: %s: %s", served, len(names), reason, message)
	}
	if got := bounds.Of(bound.NamespaceExpansion); got != uint64(len(names)-served) {
		t.Errorf("%d of %d are served, counted %d times", served, len(names), got)
	}
	for _, name := range names[:len(names)-served] {
		w.o.HTTPRoutes.Delete(source.Key{Namespace: namespace, Name: name})
	}
	if reason, message = accepted(w.judge(), last); reason != "Accepted" {
		t.Errorf("with fewer others: %s: %s", reason, message)
	}
}

// TestRulesAreKeptOncePerClass checks that host names of a listener share their rules. A change of
// one host name, match or listener changes no other rules.
func TestRulesAreKeptOncePerClass(t *testing.T) {
	w := newWorld(t)
	ref := Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}
	for _, step := range []struct {
		id                    string
		ports, hosts, matches int
		rules, deleted        int
	}{
		{"first", 2, 8, 4, 64, 0},
		{"again", 2, 8, 4, 0, 0},
		{"another host", 2, 9, 4, 8, 0},
		{"a host less", 2, 8, 4, 0, 8},
		{"another match", 2, 8, 5, 16, 0},
		{"a match less", 2, 8, 4, 0, 16},
		{"another port", 3, 8, 4, 32, 0},
		{"a port less", 1, 8, 4, 0, 64},
	} {
		r := w.add(wide(step.ports, step.hosts, step.matches, "r")).judge()
		if len(r.Changes.Rules) != step.rules || len(r.Changes.DeletedRules) != step.deleted {
			t.Errorf("%s: %d rules changed, %d deleted", step.id, len(r.Changes.Rules), len(r.Changes.DeletedRules))
		}
		set := &r.Routes[ref].rules
		if kept := set.len() / len(set.classes[0]); kept != step.ports*step.hosts || len(set.classes) != 1 || len(set.classes[0]) != step.matches {
			t.Errorf("%s: %d places, %d classes of %d rules", step.id, kept, len(set.classes), len(set.classes[0]))
		}
	}
}
