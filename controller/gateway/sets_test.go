package gateway

import (
	"strconv"
	"testing"

	"turnout/controller/source"
)

// setTold is the words of the conditions of a ListenerSet.
func setTold(r *Result, ns, name string) string {
	s := r.ListenerSets[source.Key{Namespace: ns, Name: name}]
	if s == nil {
		return ""
	}
	return sayAll(s.Conditions)
}

func TestAdmissionOfListenerSets(t *testing.T) {
	const good = "Accepted=True Accepted, Programmed=True Programmed"
	const refused = "Accepted=False NotAllowed, Programmed=False NotAllowed"
	for what, c := range map[string]struct {
		allowed, ours, web string
		attached           int32
	}{
		"nothing said":    {"", refused, refused, 0},
		"None":            {"allowedListeners: {namespaces: {from: None}},", refused, refused, 0},
		"Same":            {"allowedListeners: {namespaces: {from: Same}},", good, refused, 1},
		"All":             {"allowedListeners: {namespaces: {from: All}},", good, good, 2},
		"Selector":        {"allowedListeners: {namespaces: {from: Selector, selector: {matchLabels: {team: web}}}},", refused, good, 1},
		"no namespaces":   {"allowedListeners: {},", refused, refused, 0},
		"a bad selector":  {"allowedListeners: {namespaces: {from: Selector, selector: {matchExpressions: [{key: a, operator: X}]}}},", refused, refused, 0},
		"empty selection": {"allowedListeners: {namespaces: {from: Selector, selector: {}}},", good, good, 2},
	} {
		w := newWorld(t).add("{kind: Gateway, metadata: {name: gw}, spec: {gatewayClassName: turnout, " + c.allowed + " listeners: [{name: http, port: 80, protocol: HTTP}]}}").add(`
{kind: ListenerSet, metadata: {name: s}, spec: {parentRef: {name: gw}, listeners: [{name: l, port: 80, protocol: HTTP, hostname: a.test}]}}
---
{kind: ListenerSet, metadata: {name: s, namespace: web}, spec: {parentRef: {name: gw, namespace: infra}, listeners: [{name: l, port: 81, protocol: HTTP, hostname: b.test}]}}
---
{kind: ListenerSet, metadata: {name: stray}, spec: {parentRef: {name: none}, listeners: [{name: l, port: 81, protocol: HTTP, hostname: b.test}]}}
`)
		r := w.judge()
		if a, b := setTold(r, namespace, "s"), setTold(r, "web", "s"); a != c.ours || b != c.web {
			t.Errorf("%s:\n%s\n%s", what, a, b)
		}
		if got := setTold(r, namespace, "stray"); got != "" {
			t.Errorf("%s: one without a Gateway: %s", what, got)
		}
		if g := r.Gateways[source.Key{Namespace: namespace, Name: "gw"}]; *g.Status.AttachedListenerSets != c.attached || len(r.Listeners) != 1+int(c.attached) {
			t.Errorf("%s: %d attached, %d listeners", what, *g.Status.AttachedListenerSets, len(r.Listeners))
		}
	}
}

// TestPrecedenceOfListenerSets: what comes first stays, only what comes later is in conflict; the winner keeps its routes.
func TestPrecedenceOfListenerSets(t *testing.T) {
	w := newWorld(t).add(`
kind: Gateway
metadata: {name: gw}
spec: {gatewayClassName: turnout, allowedListeners: {namespaces: {from: Same}}, listeners: [{name: http, port: 80, protocol: HTTP, hostname: a.test}]}
---
{kind: ListenerSet, metadata: {name: old}, spec: {parentRef: {name: gw}, listeners: [{name: a, port: 80, protocol: HTTP, hostname: a.test}, {name: b, port: 80, protocol: HTTP, hostname: b.test}, {name: tcp, port: 80, protocol: TCP}]}}
---
{kind: ListenerSet, metadata: {name: young}, spec: {parentRef: {name: gw}, listeners: [{name: b, port: 80, protocol: HTTP, hostname: b.test}]}}
---
{kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{kind: ListenerSet, name: old, sectionName: b}], rules: [{backendRefs: [{name: a, port: 80}]}]}}
`)
	r := w.judge()
	if got := gatewayTold(r, "gw"); got != gatewayGood {
		t.Errorf("Gateway: %s", got)
	}
	want := map[string]string{"a": conflictTold("HostnameConflict"), "b": listenerGood, "tcp": conflictTold("ProtocolConflict")}
	for _, l := range r.ListenerSets[source.Key{Namespace: namespace, Name: "old"}].Listeners {
		if got := sayAll(l.Conditions); got != want[string(l.Name)] {
			t.Errorf("%s: %s", l.Name, got)
		}
	}
	if got := setTold(r, namespace, "old"); got != "Accepted=True Accepted, Programmed=True Programmed" {
		t.Errorf("old: %s", got)
	}
	if got := setTold(r, namespace, "young"); got != "Accepted=False ListenersNotValid, Programmed=False ListenersNotValid" {
		t.Errorf("young: %s", got)
	}
	if got := *r.Gateways[source.Key{Namespace: namespace, Name: "gw"}].Status.AttachedListenerSets; got != 1 {
		t.Errorf("%d sets attached", got)
	}
	if rules := r.Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}].Rules(); len(rules) != 1 || rules[0].Listener != "ListenerSet/infra/old/b" {
		t.Errorf("rules %+v", rules)
	}
	w.o.ListenerSets.Delete(source.Key{Namespace: namespace, Name: "old"})
	r = w.judge()
	if got := setTold(r, namespace, "young"); got != "Accepted=True Accepted, Programmed=True Programmed" || len(r.Routes) != 0 || len(r.Changes.DeletedRules) != 1 {
		t.Errorf("without the old one: %s, %d routes, changes %+v", got, len(r.Routes), r.Changes)
	}
}

// TestGrantsOfListenerSets are their own: neither do those of the Gateway help them, nor the other way round.
func TestGrantsOfListenerSets(t *testing.T) {
	for _, c := range []struct{ kind, gateway, set string }{
		{"Gateway", listenerGood, listenerRefs + "RefNotPermitted"}, {"ListenerSet", listenerRefs + "RefNotPermitted", listenerGood},
	} {
		w := newWorld(t).add(`
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: turnout
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: ok, port: 80, protocol: HTTP}, {name: tls, port: 443, protocol: HTTPS, hostname: a.test, tls: {certificateRefs: [{name: cert, namespace: web}]}}]
---
{kind: ListenerSet, metadata: {name: s}, spec: {parentRef: {name: gw}, listeners: [{name: l, port: 443, protocol: HTTPS, hostname: b.test, tls: {certificateRefs: [{name: cert, namespace: web}]}}]}}
---
kind: ReferenceGrant
metadata: {name: g, namespace: web}
spec: {from: [{group: gateway.networking.k8s.io, kind: ` + c.kind + `, namespace: infra}], to: [{group: "", kind: Secret}]}
`)
		w.certificate("web", "cert", "a.test")
		if got := listenerOf(t, w, "gw", "tls"); got != c.gateway {
			t.Errorf("granted to %ss: the Gateway: %s", c.kind, got)
		}
		if got := sayAll(w.j.result.ListenerSets[source.Key{Namespace: namespace, Name: "s"}].Listeners[0].Conditions); got != c.set {
			t.Errorf("granted to %ss: the ListenerSet: %s", c.kind, got)
		}
	}
}

// TestListenerSetsOfABadGateway wait for it.
func TestListenerSetsOfABadGateway(t *testing.T) {
	w := newWorld(t).add(`
{kind: Gateway, metadata: {name: gw}, spec: {gatewayClassName: turnout, allowedListeners: {namespaces: {from: Same}}, listeners: [{name: bad, port: 80, protocol: X}]}}
---
{kind: ListenerSet, metadata: {name: s}, spec: {parentRef: {name: gw}, listeners: [{name: l, port: 81, protocol: HTTP}]}}
`)
	if got := setTold(w.judge(), namespace, "s"); got != "Accepted=False ParentNotAccepted, Programmed=False ParentNotProgrammed" || len(w.j.result.Listeners) != 0 {
		t.Errorf("of a Gateway that is not accepted: %s", got)
	}
	w.add("{kind: Gateway, metadata: {name: gw}, spec: {gatewayClassName: turnout, allowedListeners: {namespaces: {from: Same}}, listeners: [{name: http, port: 80, protocol: HTTP}]}}")
	w.o.Assigned.Set(source.Key{Namespace: namespace, Name: "gw"}, &Assigned{})
	if got := setTold(w.judge(), namespace, "s"); got != "Accepted=True Accepted, Programmed=False ParentNotProgrammed" {
		t.Errorf("of a Gateway without an address: %s", got)
	}
}

// TestTooManyListeners: a Gateway has what it can have, the rest is told so.
func TestTooManyListeners(t *testing.T) {
	w := newWorld(t).add("{kind: Gateway, metadata: {name: gw}, spec: {gatewayClassName: turnout, allowedListeners: {namespaces: {from: Same}}, listeners: [{name: http, port: 80, protocol: HTTP}]}}")
	set := "{kind: ListenerSet, metadata: {name: s}, spec: {parentRef: {name: gw}, listeners: ["
	for i := range maxListeners {
		set += "{name: l" + strconv.Itoa(i) + ", port: " + strconv.Itoa(1000+i) + ", protocol: HTTP}, "
	}
	r := w.add(set + "]}}").judge()
	list := r.ListenerSets[source.Key{Namespace: namespace, Name: "s"}].Listeners
	if got := sayAll(list[maxListeners-1].Conditions); got != "Accepted=False TooManyListeners, Programmed=False Invalid, Conflicted=False NoConflicts, ResolvedRefs=True ResolvedRefs" {
		t.Errorf("the last: %s", got)
	}
	if got := sayAll(list[maxListeners-2].Conditions); got != listenerGood {
		t.Errorf("the last but one: %s", got)
	}
}
