package gateway

import (
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
)

// gatewayTold are the conditions of a Gateway of infra, "" if it is none of ours.
func gatewayTold(r *Result, name string) string {
	g := r.Gateways[source.Key{Namespace: namespace, Name: name}]
	if g == nil {
		return ""
	}
	return sayAll(g.Status.Conditions)
}

// What is said of a Gateway with nothing wrong.
const gatewayGood = "Accepted=True Accepted, Programmed=True Programmed, ResolvedRefs=True ResolvedRefs"

func TestConditionsOfGateways(t *testing.T) {
	const bad = "{name: bad, port: 81, protocol: X}"
	for what, c := range map[string]struct{ spec, want string }{
		"good":                           {"listeners: [{name: http, port: 80, protocol: HTTP}]", gatewayGood},
		"some listeners are bad":         {"listeners: [{name: http, port: 80, protocol: HTTP}, " + bad + "]", "Accepted=True ListenersNotValid, Programmed=True Programmed, ResolvedRefs=True ResolvedRefs"},
		"all listeners are bad":          {"listeners: [" + bad + "]", "Accepted=False ListenersNotValid, Programmed=False Invalid, ResolvedRefs=True ResolvedRefs"},
		"no listener":                    {"listeners: []", "Accepted=False ListenersNotValid, Programmed=False Invalid, ResolvedRefs=True ResolvedRefs"},
		"a certificate is missing":       {"listeners: [{name: tls, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: none}]}}]", "Accepted=True Accepted, Programmed=False Invalid, ResolvedRefs=False ListenersNotResolved"},
		"one of two certificates misses": {"listeners: [{name: tls, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: none}]}}, {name: http, port: 80, protocol: HTTP}]", "Accepted=True Accepted, Programmed=True Programmed, ResolvedRefs=False ListenersNotResolved"},
		"address of another type":        {"addresses: [{type: x.org/y, value: z}], listeners: [{name: http, port: 80, protocol: HTTP}]", "Accepted=False UnsupportedAddress, Programmed=False Invalid, ResolvedRefs=True ResolvedRefs"},
		"parameters of another kind":     {"infrastructure: {parametersRef: {group: x.org, kind: Y, name: z}}, listeners: [{name: http, port: 80, protocol: HTTP}]", "Accepted=False InvalidParameters, Programmed=False Invalid, ResolvedRefs=True ResolvedRefs"},
		"parameters that are missing":    {"infrastructure: {parametersRef: {group: '', kind: ConfigMap, name: none}}, listeners: [{name: http, port: 80, protocol: HTTP}]", "Accepted=False InvalidParameters, Programmed=False Invalid, ResolvedRefs=True ResolvedRefs"},
		"parameters with unknown keys":   {"infrastructure: {parametersRef: {group: '', kind: ConfigMap, name: odd}}, listeners: [{name: http, port: 80, protocol: HTTP}]", "Accepted=False InvalidParameters, Programmed=False Invalid, ResolvedRefs=True ResolvedRefs"},
		"empty parameters":               {"infrastructure: {parametersRef: {group: '', kind: ConfigMap, name: empty}}, listeners: [{name: http, port: 80, protocol: HTTP}]", gatewayGood},
		"certificate for endpoints":      {"tls: {backend: {clientCertificateRef: {name: good}}}, listeners: [{name: http, port: 80, protocol: HTTP}]", gatewayGood},
		"that one misses":                {"tls: {backend: {clientCertificateRef: {name: none}}}, listeners: [{name: http, port: 80, protocol: HTTP}]", "Accepted=True Accepted, Programmed=True Programmed, ResolvedRefs=False InvalidClientCertificateRef"},
		"that one is of another kind":    {"tls: {backend: {clientCertificateRef: {kind: ConfigMap, name: good}}}, listeners: [{name: http, port: 80, protocol: HTTP}]", "Accepted=True Accepted, Programmed=True Programmed, ResolvedRefs=False InvalidClientCertificateRef"},
		"that one is not granted":        {"tls: {backend: {clientCertificateRef: {name: good, namespace: web}}}, listeners: [{name: http, port: 80, protocol: HTTP}]", "Accepted=True Accepted, Programmed=True Programmed, ResolvedRefs=False RefNotPermitted"},
		"another's class":                {"gatewayClassName: theirs, listeners: [{name: http, port: 80, protocol: HTTP}]", ""},
		"no such class":                  {"gatewayClassName: none, listeners: [{name: http, port: 80, protocol: HTTP}]", ""},
		"a class that is not accepted":   {"gatewayClassName: odd, listeners: [{name: http, port: 80, protocol: HTTP}]", "Accepted=False InvalidParameters, Programmed=False Invalid, ResolvedRefs=True ResolvedRefs"},
	} {
		if !strings.Contains(c.spec, "gatewayClassName") {
			c.spec = "gatewayClassName: turnout, " + c.spec
		}
		w := newWorld(t).add("{kind: GatewayClass, metadata: {name: theirs}, spec: {controllerName: x.org/theirs}}").
			add("{kind: GatewayClass, metadata: {name: odd}, spec: {controllerName: turnout.router/gateway, parametersRef: {group: '', kind: Secret, name: x, namespace: infra}}}").
			add("{kind: ConfigMap, metadata: {name: odd}, data: {unknown: x}}\n---\n{kind: ConfigMap, metadata: {name: empty}}").
			add("{kind: Gateway, metadata: {name: gw, generation: 7}, spec: {" + c.spec + "}}")
		w.certificate(namespace, "good", "a.test")
		w.certificate("web", "good", "a.test")
		w.assign(namespace, "gw")
		r := w.judge()
		if got := gatewayTold(r, "gw"); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", what, got, c.want)
		}
		if c.want == "" {
			continue
		}
		g := r.Gateways[source.Key{Namespace: namespace, Name: "gw"}]
		for _, list := range append(g.Status.Listeners, gatewayv1.ListenerStatus{Conditions: g.Status.Conditions}) {
			for _, condition := range list.Conditions {
				if condition.ObservedGeneration != 7 || condition.Message == "" || !condition.LastTransitionTime.IsZero() {
					t.Errorf("%s: %+v", what, condition)
				}
			}
		}
	}
}

// TestAddressesOfGateways: what the caller says of addresses and ports is what the status says.
func TestAddressesOfGateways(t *testing.T) {
	kind := gatewayv1.IPAddressType
	address := []gatewayv1.GatewayStatusAddress{{Type: &kind, Value: "192.0.2.1"}}
	for what, c := range map[string]struct {
		assigned *Assigned
		want     string
		listener string
	}{
		"nothing yet":       {nil, "False AddressNotAssigned", "False Pending"},
		"no address":        {&Assigned{}, "False AddressNotAssigned", "False Pending"},
		"an address":        {&Assigned{Addresses: address}, "True Programmed", "True Programmed"},
		"none can be used":  {&Assigned{Reason: gatewayv1.GatewayReasonAddressNotUsable, Message: "m"}, "False AddressNotUsable", "False Pending"},
		"one of two is bad": {&Assigned{Addresses: address, Reason: gatewayv1.GatewayReasonAddressNotUsable}, "False AddressNotUsable", "False Pending"},
		"no resources":      {&Assigned{Reason: gatewayv1.GatewayReasonNoResources}, "False NoResources", "False Pending"},
		"port is taken":     {&Assigned{Addresses: address, Unavailable: map[string]string{"infra/gw:80": "address already in use"}}, "False Invalid", "False Invalid"},
	} {
		w := newWorld(t).add(plainGateway)
		w.judge()
		w.o.Assigned.Set(source.Key{Namespace: namespace, Name: "gw"}, c.assigned)
		g := w.judge().Gateways[source.Key{Namespace: namespace, Name: "gw"}]
		if got := say(g.Status.Conditions, gatewayv1.GatewayConditionProgrammed); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
		if got := say(g.Status.Listeners[0].Conditions, gatewayv1.ListenerConditionProgrammed); got != c.listener {
			t.Errorf("%s: listener %s, want %s", what, got, c.listener)
		}
		if c.assigned != nil && len(c.assigned.Unavailable) > 0 {
			if got := say(g.Status.Listeners[0].Conditions, gatewayv1.ListenerConditionAccepted); got != "False PortUnavailable" || len(g.Ports) != 1 { // it is wanted still
				t.Errorf("%s: %s, ports %v", what, got, g.Ports)
			}
		}
		if c.assigned != nil && len(g.Status.Addresses) != len(c.assigned.Addresses) {
			t.Errorf("%s: addresses %v", what, g.Status.Addresses)
		}
	}
}

// What is said of a listener that another one is in the way of.
func conflictTold(reason string) string {
	return "Accepted=False " + reason + ", Programmed=False " + reason + ", Conflicted=True " + reason + ", ResolvedRefs=True ResolvedRefs"
}

// TestConflicts: within a Gateway all that are involved lose, whatever their order.
func TestConflicts(t *testing.T) {
	hosts, protocols := conflictTold("HostnameConflict"), conflictTold("ProtocolConflict")
	for what, c := range map[string]struct {
		listeners []string
		want      []string
		ports     int
	}{
		"different host names":      {[]string{"port: 80, protocol: HTTP, hostname: a.test", "port: 80, protocol: HTTP, hostname: b.test", "port: 80, protocol: HTTP"}, []string{listenerGood, listenerGood, listenerGood}, 1},
		"the same host name":        {[]string{"port: 80, protocol: HTTP, hostname: a.test", "port: 80, protocol: HTTP, hostname: A.test", "port: 80, protocol: HTTP"}, []string{hosts, hosts, listenerGood}, 1},
		"no host name thrice":       {[]string{"port: 80, protocol: HTTP", "port: 80, protocol: HTTP", "port: 80, protocol: HTTP"}, []string{hosts, hosts, hosts}, 0},
		"TCP beside HTTP":           {[]string{"port: 80, protocol: HTTP, hostname: a.test", "port: 80, protocol: TCP", "port: 81, protocol: HTTP"}, []string{protocols, protocols, listenerGood}, 1},
		"TCP beside TLS":            {[]string{"port: 80, protocol: TCP", "port: 80, protocol: TLS, tls: {mode: Passthrough}"}, []string{protocols, protocols}, 0},
		"HTTP beside HTTPS":         {[]string{"port: 80, protocol: HTTP", "port: 80, protocol: TLS, tls: {mode: Passthrough}, hostname: a.test"}, []string{protocols, protocols}, 0},
		"TCP twice":                 {[]string{"port: 80, protocol: TCP", "port: 80, protocol: TCP"}, []string{protocols, protocols}, 0},
		"TCP and UDP of one number": {[]string{"port: 80, protocol: TCP", "port: 80, protocol: UDP"}, []string{listenerGood, listenerGood}, 2},
		"HTTP and UDP of a number":  {[]string{"port: 80, protocol: HTTP", "port: 80, protocol: UDP"}, []string{listenerGood, listenerGood}, 2},
		"both modes of TLS":         {[]string{"port: 443, protocol: TLS, hostname: a.test, tls: {mode: Passthrough}", "port: 443, protocol: TLS, hostname: b.test, tls: {mode: Terminate, certificateRefs: [{name: good}]}"}, []string{listenerGood, listenerGood}, 1},
		"one host name, two modes":  {[]string{"port: 443, protocol: TLS, hostname: a.test, tls: {mode: Passthrough}", "port: 443, protocol: TLS, hostname: a.test, tls: {mode: Terminate, certificateRefs: [{name: good}]}"}, []string{hosts, hosts}, 0},
		"HTTPS beside TLS":          {[]string{"port: 443, protocol: HTTPS, hostname: a.test, tls: {certificateRefs: [{name: good}]}", "port: 443, protocol: TLS, hostname: b.test, tls: {mode: Passthrough}"}, []string{listenerGood, listenerGood}, 1},
		"an unknown one beside":     {[]string{"port: 80, protocol: X", "port: 80, protocol: HTTP"}, []string{"Accepted=False UnsupportedProtocol, Programmed=False Invalid, Conflicted=False NoConflicts, ResolvedRefs=True ResolvedRefs", listenerGood}, 1},
		"HTTPS with passthrough":    {[]string{"port: 80, protocol: HTTP", "port: 443, protocol: HTTPS, tls: {mode: Passthrough}"}, []string{listenerGood, "Accepted=False UnsupportedValue, Programmed=False Invalid, Conflicted=False NoConflicts, ResolvedRefs=True ResolvedRefs"}, 1},
	} {
		spec := ""
		for i, l := range c.listeners {
			spec += "{name: l" + string(rune('0'+i)) + ", " + l + "}, "
		}
		w := newWorld(t).add("{kind: Gateway, metadata: {name: gw}, spec: {gatewayClassName: turnout, listeners: [{name: other, port: 9, protocol: HTTP}, " + spec + "]}}")
		w.certificate(namespace, "good", "a.test")
		for i, want := range c.want {
			if got := listenerOf(t, w, "gw", "l"+string(rune('0'+i))); got != want {
				t.Errorf("%s, listener %d:\n%s, want\n%s", what, i, got, want)
			}
		}
		if ports := w.j.result.Gateways[source.Key{Namespace: namespace, Name: "gw"}].Ports; len(ports) != 1+c.ports {
			t.Errorf("%s: ports %v", what, ports)
		}
	}
}

// TestKindsOfListeners: what may attach is what the protocol and the listener have in common.
func TestKindsOfListeners(t *testing.T) {
	for what, c := range map[string]struct{ listener, kinds, want string }{
		"HTTP":                  {"protocol: HTTP", "HTTPRoute GRPCRoute", listenerGood},
		"HTTPS":                 {"protocol: HTTPS, tls: {certificateRefs: [{name: good}]}", "HTTPRoute GRPCRoute", listenerGood},
		"TLS":                   {"protocol: TLS, tls: {mode: Passthrough}", "TLSRoute", listenerGood},
		"TCP":                   {"protocol: TCP", "TCPRoute", listenerGood},
		"UDP":                   {"protocol: UDP", "UDPRoute", listenerGood},
		"some of them":          {"protocol: HTTP, allowedRoutes: {kinds: [{kind: GRPCRoute}]}", "GRPCRoute", listenerGood},
		"one of them is wrong":  {"protocol: HTTP, allowedRoutes: {kinds: [{kind: GRPCRoute}, {kind: TCPRoute}]}", "GRPCRoute", "Accepted=True Accepted, Programmed=True Programmed, Conflicted=False NoConflicts, ResolvedRefs=False InvalidRouteKinds"},
		"all of them are wrong": {"protocol: HTTP, allowedRoutes: {kinds: [{group: x.org, kind: HTTPRoute}]}", "", "Accepted=True Accepted, Programmed=False Invalid, Conflicted=False NoConflicts, ResolvedRefs=False InvalidRouteKinds"},
		"unknown protocol":      {"protocol: X", "", "Accepted=False UnsupportedProtocol, Programmed=False Invalid, Conflicted=False NoConflicts, ResolvedRefs=True ResolvedRefs"},
		"selector that is none": {"protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchExpressions: [{key: a, operator: X}]}}}", "HTTPRoute GRPCRoute", "Accepted=False UnsupportedValue, Programmed=False Invalid, Conflicted=False NoConflicts, ResolvedRefs=True ResolvedRefs"},
	} {
		w := newWorld(t).add("{kind: Gateway, metadata: {name: gw}, spec: {gatewayClassName: turnout, listeners: [{name: other, port: 9, protocol: HTTP}, {name: l, port: 80, " + c.listener + "}]}}")
		w.certificate(namespace, "good", "a.test")
		if got := listenerOf(t, w, "gw", "l"); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", what, got, c.want)
		}
		status := w.j.result.Gateways[source.Key{Namespace: namespace, Name: "gw"}].Status.Listeners[1]
		var kinds []string
		for _, k := range status.SupportedKinds {
			kinds = append(kinds, string(k.Kind))
		}
		if got := strings.Join(kinds, " "); got != c.kinds || status.SupportedKinds == nil {
			t.Errorf("%s: kinds %q, want %q", what, got, c.kinds)
		}
	}
}

// TestOverlappingHostnames: requests of one connection may be for several listeners, which their owners are told.
func TestOverlappingHostnames(t *testing.T) {
	w := newWorld(t).add(`
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: turnout
  listeners:
  - {name: a, port: 443, hostname: foo.example.com, protocol: HTTPS, tls: {certificateRefs: [{name: good}]}}
  - {name: b, port: 443, hostname: foo.example.org, protocol: HTTPS, tls: {certificateRefs: [{name: good}]}}
  - {name: c, port: 443, hostname: "*.example.com", protocol: HTTPS, tls: {certificateRefs: [{name: good}]}}
  - {name: d, port: 444, protocol: HTTPS, tls: {certificateRefs: [{name: good}]}}
  - {name: e, port: 445, protocol: TLS, hostname: x.test, tls: {mode: Passthrough}}
  - {name: f, port: 445, protocol: TLS, tls: {mode: Passthrough}}
`)
	w.certificate(namespace, "good", "a.test")
	for name, want := range map[string]bool{"a": true, "b": false, "c": true, "d": false, "e": false, "f": false} {
		got := listenerOf(t, w, "gw", name)
		if strings.Contains(got, "OverlappingTLSConfig=True OverlappingHostnames") != want || strings.Contains(got, "OverlappingTLSConfig=False") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
