package gateway

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
	"turnout/routing"
)

// maker makes random objects whose names are few, so that they have to do with each other. Each field is sometimes what nobody would write.
type maker struct {
	*rand.Rand
	w *world
}

// one returns one of some words.
func one[T any](m *maker, words ...T) T { return words[m.IntN(len(words))] }

// maybe returns a pointer to a value, or nil.
func maybe[T any](m *maker, v T) *T {
	if m.IntN(2) == 0 {
		return nil
	}
	return &v
}

// some returns up to most things.
func some[T any](m *maker, most int, another func() T) []T {
	var list []T
	for range m.IntN(most + 1) {
		list = append(list, another())
	}
	return list
}

func (m *maker) key(prefix string) source.Key {
	return source.Key{Namespace: one(m, namespace, namespace, "web"), Name: prefix + fmt.Sprint(m.IntN(3))}
}

func (m *maker) group() *gatewayv1.Group {
	return maybe(m, one(m, gatewayv1.Group(groupName), groupName, groupName, "", "x.org"))
}

func (m *maker) hostname() gatewayv1.Hostname {
	return one[gatewayv1.Hostname](m, "a.test", "b.test", "*.test", "*.a.test", "x.a.test", "A.TEST", "")
}

func (m *maker) selector() *metav1.LabelSelector {
	return one(m, nil, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}}, &metav1.LabelSelector{MatchLabels: map[string]string{metadataName: "web"}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "?"}}})
}

func (m *maker) from() *gatewayv1.FromNamespaces {
	return maybe(m, one(m, gatewayv1.NamespacesFromAll, gatewayv1.NamespacesFromSame, gatewayv1.NamespacesFromSelector, gatewayv1.NamespacesFromNone, "?"))
}

func (m *maker) listener() gatewayv1.Listener {
	l := gatewayv1.Listener{
		Name: one[gatewayv1.SectionName](m, "l0", "l1", "l2"), Port: one[gatewayv1.PortNumber](m, 80, 80, 443, 443, 0), Hostname: maybe(m, m.hostname()),
		Protocol: one(m, gatewayv1.HTTPProtocolType, gatewayv1.HTTPProtocolType, gatewayv1.HTTPSProtocolType, gatewayv1.TLSProtocolType, gatewayv1.TCPProtocolType, gatewayv1.UDPProtocolType, "?"),
	}
	if m.IntN(2) == 0 {
		l.TLS = &gatewayv1.ListenerTLSConfig{Mode: maybe(m, one(m, gatewayv1.TLSModeTerminate, gatewayv1.TLSModePassthrough, "?")), CertificateRefs: some(m, 2, m.secretRef)}
	}
	if m.IntN(2) == 0 {
		l.AllowedRoutes = &gatewayv1.AllowedRoutes{Kinds: some(m, 2, func() gatewayv1.RouteGroupKind {
			return gatewayv1.RouteGroupKind{Group: m.group(), Kind: one[gatewayv1.Kind](m, kindHTTPRoute, kindGRPCRoute, kindTLSRoute, kindTCPRoute, "?")}
		})}
		if m.IntN(2) == 0 {
			l.AllowedRoutes.Namespaces = &gatewayv1.RouteNamespaces{From: m.from(), Selector: m.selector()}
		}
	}
	return l
}

func (m *maker) secretRef() gatewayv1.SecretObjectReference {
	return gatewayv1.SecretObjectReference{Kind: maybe[gatewayv1.Kind](m, "Secret"), Name: one[gatewayv1.ObjectName](m, "s0", "s1"), Namespace: maybe[gatewayv1.Namespace](m, "web")}
}

func (m *maker) validation() *gatewayv1.FrontendTLSValidation {
	return one(m, nil, &gatewayv1.FrontendTLSValidation{Mode: one(m, gatewayv1.AllowValidOnly, gatewayv1.AllowInsecureFallback), CACertificateRefs: some(m, 2, func() gatewayv1.ObjectReference {
		return gatewayv1.ObjectReference{Kind: one[gatewayv1.Kind](m, "ConfigMap", "Secret"), Name: one[gatewayv1.ObjectName](m, "c0", "c1"), Namespace: maybe[gatewayv1.Namespace](m, "web")}
	})})
}

func (m *maker) gateway() gatewayv1.GatewaySpec {
	s := gatewayv1.GatewaySpec{GatewayClassName: one[gatewayv1.ObjectName](m, "turnout", "turnout", "turnout", "theirs", "none"), Listeners: some(m, 3, m.listener)}
	if m.IntN(2) == 0 {
		s.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: maybe(m, gatewayv1.ListenerNamespaces{From: m.from(), Selector: m.selector()})}
	}
	if m.IntN(4) == 0 {
		s.TLS = &gatewayv1.GatewayTLSConfig{Frontend: maybe(m, gatewayv1.FrontendTLSConfig{Default: gatewayv1.TLSConfig{Validation: m.validation()},
			PerPort: some(m, 1, func() gatewayv1.TLSPortConfig {
				return gatewayv1.TLSPortConfig{Port: 443, TLS: gatewayv1.TLSConfig{Validation: m.validation()}}
			})}),
			Backend: maybe(m, gatewayv1.GatewayBackendTLS{ClientCertificateRef: maybe(m, m.secretRef())})}
	}
	if m.IntN(8) == 0 {
		s.Addresses = []gatewayv1.GatewaySpecAddress{{Type: maybe(m, one(m, gatewayv1.IPAddressType, "x.org/other"))}}
		s.Infrastructure = &gatewayv1.GatewayInfrastructure{ParametersRef: maybe(m, gatewayv1.LocalParametersReference{Kind: "ConfigMap", Name: "c0"})}
	}
	return s
}

func (m *maker) parents() gatewayv1.CommonRouteSpec {
	return gatewayv1.CommonRouteSpec{ParentRefs: some(m, 3, func() gatewayv1.ParentReference {
		ref := gatewayv1.ParentReference{Name: one[gatewayv1.ObjectName](m, "g0", "g1", "g2"), Namespace: maybe(m, one[gatewayv1.Namespace](m, "web", namespace))}
		if m.IntN(3) == 0 {
			ref.Group, ref.Kind, ref.Name = m.group(), maybe[gatewayv1.Kind](m, one[gatewayv1.Kind](m, kindListenerSet, kindListenerSet, "Service")), one[gatewayv1.ObjectName](m, "t0", "t1", "t2")
		}
		if m.IntN(3) == 0 {
			ref.SectionName = maybe(m, one[gatewayv1.SectionName](m, "l0", "l1", ""))
			ref.Port = maybe[gatewayv1.PortNumber](m, one[gatewayv1.PortNumber](m, 80, 443))
		}
		return ref
	})}
}

func (m *maker) object() gatewayv1.BackendObjectReference {
	return gatewayv1.BackendObjectReference{
		Kind: one(m, nil, nil, nil, maybe[gatewayv1.Kind](m, "Thing")), Name: one[gatewayv1.ObjectName](m, "a", "b", "c", "d"), Namespace: one(m, nil, nil, maybe[gatewayv1.Namespace](m, "web")),
		Port: one(m, new(gatewayv1.PortNumber(80)), new(gatewayv1.PortNumber(80)), new(gatewayv1.PortNumber(81)), nil),
	}
}

func (m *maker) backend() gatewayv1.BackendRef {
	return gatewayv1.BackendRef{BackendObjectReference: m.object(), Weight: maybe(m, one[int32](m, 0, 1, 70))}
}

func (m *maker) headers() *gatewayv1.HTTPHeaderFilter {
	return maybe(m, gatewayv1.HTTPHeaderFilter{Set: []gatewayv1.HTTPHeader{{Name: one[gatewayv1.HTTPHeaderName](m, "x-a", "host", "te", "a b"), Value: one(m, "v", "100%", "")}}, Remove: []string{"x-b"}})
}

func (m *maker) path() *gatewayv1.HTTPPathModifier {
	text := one(m, "/x", "x", "", "/?")
	return one(m, nil, &gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: &text}, &gatewayv1.HTTPPathModifier{Type: gatewayv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: &text},
		&gatewayv1.HTTPPathModifier{Type: gatewayv1.PrefixMatchHTTPPathModifier}, &gatewayv1.HTTPPathModifier{Type: "?"})
}

func (m *maker) filter() gatewayv1.HTTPRouteFilter {
	f := gatewayv1.HTTPRouteFilter{Type: one(m, gatewayv1.HTTPRouteFilterRequestHeaderModifier, gatewayv1.HTTPRouteFilterResponseHeaderModifier, gatewayv1.HTTPRouteFilterRequestMirror,
		gatewayv1.HTTPRouteFilterRequestRedirect, gatewayv1.HTTPRouteFilterURLRewrite, gatewayv1.HTTPRouteFilterCORS, gatewayv1.HTTPRouteFilterExtensionRef, "?")}
	f.RequestHeaderModifier, f.ResponseHeaderModifier = m.headers(), m.headers()
	f.RequestMirror = maybe(m, gatewayv1.HTTPRequestMirrorFilter{BackendRef: m.object(), Percent: maybe[int32](m, 50), Fraction: maybe(m, gatewayv1.Fraction{Numerator: 1})})
	f.RequestRedirect = maybe(m, gatewayv1.HTTPRequestRedirectFilter{Scheme: maybe(m, one(m, "https", "ftp")), Path: m.path(), StatusCode: maybe(m, one(m, 301, 200))})
	f.URLRewrite = maybe(m, gatewayv1.HTTPURLRewriteFilter{Hostname: maybe[gatewayv1.PreciseHostname](m, one[gatewayv1.PreciseHostname](m, "h.test", "a b")), Path: m.path()})
	f.CORS = maybe(m, gatewayv1.HTTPCORSFilter{AllowOrigins: []gatewayv1.CORSOrigin{one[gatewayv1.CORSOrigin](m, "*", "https://a.test", "??")}})
	return f
}

func (m *maker) rule() gatewayv1.HTTPRouteRule {
	r := gatewayv1.HTTPRouteRule{
		BackendRefs: some(m, 2, func() gatewayv1.HTTPBackendRef {
			return gatewayv1.HTTPBackendRef{BackendRef: m.backend(), Filters: some(m, m.IntN(2), m.filter)}
		}),
		Matches: some(m, 2, func() gatewayv1.HTTPRouteMatch {
			return gatewayv1.HTTPRouteMatch{Path: maybe(m, gatewayv1.HTTPPathMatch{Type: maybe(m, one(m, gatewayv1.PathMatchExact, gatewayv1.PathMatchPathPrefix, gatewayv1.PathMatchRegularExpression, "?")), Value: maybe(m, one(m, "/p", "p", "/(", ""))})}
		}),
	}
	if m.IntN(4) == 0 {
		r.Filters = some(m, 2, m.filter)
		r.Timeouts = maybe(m, gatewayv1.HTTPRouteTimeouts{Request: maybe(m, one[gatewayv1.Duration](m, "1s", "0s", "x")), BackendRequest: maybe[gatewayv1.Duration](m, "2s")})
		r.Retry = maybe(m, gatewayv1.HTTPRouteRetry{Codes: []gatewayv1.HTTPRouteRetryStatusCode{503}, Backoff: maybe(m, one[gatewayv1.Duration](m, "1s", "-"))})
		r.SessionPersistence = maybe(m, gatewayv1.SessionPersistence{SessionName: maybe(m, one(m, "s", "a b")), Type: maybe(m, one(m, gatewayv1.CookieBasedSessionPersistence, gatewayv1.HeaderBasedSessionPersistence, "?")),
			CookieConfig: maybe(m, gatewayv1.CookieConfig{LifetimeType: maybe(m, gatewayv1.PermanentCookieLifetimeType)})})
	}
	return r
}

// change puts in, replaces or deletes one object.
func (m *maker) change() {
	o := &m.w.o
	switch m.IntN(16) {
	case 0:
		replace(m, &o.Classes, source.Key{Name: "turnout"}, &gatewayv1.GatewayClass{Spec: gatewayv1.GatewayClassSpec{ControllerName: one[gatewayv1.GatewayController](m, ours, ours, ours, "theirs"), ParametersRef: one(m, nil, nil, &gatewayv1.ParametersReference{Kind: "x"})}})
	case 1, 2, 3:
		replace(m, &o.Gateways, m.key("g"), &gatewayv1.Gateway{Spec: m.gateway()})
	case 4:
		replace(m, &o.ListenerSets, m.key("t"), &gatewayv1.ListenerSet{Spec: gatewayv1.ListenerSetSpec{
			ParentRef: gatewayv1.ParentGatewayReference{Group: m.group(), Name: one[gatewayv1.ObjectName](m, "g0", "g1"), Namespace: maybe[gatewayv1.Namespace](m, namespace)},
			Listeners: some(m, 3, func() gatewayv1.ListenerEntry { return gatewayv1.ListenerEntry(m.listener()) })}})
	case 5, 6, 7:
		replace(m, &o.HTTPRoutes, m.key("r"), &gatewayv1.HTTPRoute{Spec: gatewayv1.HTTPRouteSpec{CommonRouteSpec: m.parents(), Hostnames: some(m, 3, m.hostname), Rules: some(m, 3, m.rule)}})
	case 8:
		replace(m, &o.GRPCRoutes, m.key("r"), &gatewayv1.GRPCRoute{Spec: gatewayv1.GRPCRouteSpec{CommonRouteSpec: m.parents(), Hostnames: some(m, 2, m.hostname), Rules: some(m, 2, func() gatewayv1.GRPCRouteRule {
			return gatewayv1.GRPCRouteRule{BackendRefs: some(m, 2, func() gatewayv1.GRPCBackendRef { return gatewayv1.GRPCBackendRef{BackendRef: m.backend()} }), Matches: some(m, 2, func() gatewayv1.GRPCRouteMatch {
				return gatewayv1.GRPCRouteMatch{Method: maybe(m, gatewayv1.GRPCMethodMatch{Type: maybe(m, one(m, gatewayv1.GRPCMethodMatchExact, gatewayv1.GRPCMethodMatchRegularExpression, "?")), Service: maybe(m, one(m, "s.S", "(")), Method: maybe(m, "M")})}
			})}
		})}})
	case 9:
		replace(m, &o.TLSRoutes, m.key("r"), &gatewayv1.TLSRoute{Spec: gatewayv1.TLSRouteSpec{CommonRouteSpec: m.parents(), Hostnames: some(m, 2, m.hostname), Rules: some(m, 1, func() gatewayv1.TLSRouteRule { return gatewayv1.TLSRouteRule{BackendRefs: some(m, 2, m.backend)} })}})
	case 10:
		replace(m, &o.TCPRoutes, m.key("r"), &gatewayv1.TCPRoute{Spec: gatewayv1.TCPRouteSpec{CommonRouteSpec: m.parents(), Rules: some(m, 1, func() gatewayv1.TCPRouteRule { return gatewayv1.TCPRouteRule{BackendRefs: some(m, 2, m.backend)} })}})
		replace(m, &o.UDPRoutes, m.key("r"), &gatewayv1.UDPRoute{Spec: gatewayv1.UDPRouteSpec{CommonRouteSpec: m.parents(), Rules: some(m, 1, func() gatewayv1.UDPRouteRule { return gatewayv1.UDPRouteRule{BackendRefs: some(m, 2, m.backend)} })}})
	case 11:
		replace(m, &o.Grants, m.key("q"), &gatewayv1.ReferenceGrant{Spec: gatewayv1.ReferenceGrantSpec{
			From: []gatewayv1.ReferenceGrantFrom{{Group: groupName, Kind: one[gatewayv1.Kind](m, kindHTTPRoute, kindGateway, kindListenerSet), Namespace: namespace}},
			To:   []gatewayv1.ReferenceGrantTo{{Kind: one[gatewayv1.Kind](m, "Service", "Secret", "ConfigMap"), Name: maybe[gatewayv1.ObjectName](m, "a")}}}})
	case 12:
		replace(m, &o.Policies, m.key("p"), &gatewayv1.BackendTLSPolicy{Spec: gatewayv1.BackendTLSPolicySpec{
			TargetRefs: some(m, 2, func() gatewayv1.LocalPolicyTargetReferenceWithSectionName {
				return gatewayv1.LocalPolicyTargetReferenceWithSectionName{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Kind: one[gatewayv1.Kind](m, "Service", "Service", "x"), Name: one[gatewayv1.ObjectName](m, "a", "b", "d")}, SectionName: maybe(m, one[gatewayv1.SectionName](m, "http", "x"))}
			}),
			Validation: gatewayv1.BackendTLSPolicyValidation{Hostname: "h.test", CACertificateRefs: some(m, 2, func() gatewayv1.LocalObjectReference {
				return gatewayv1.LocalObjectReference{Kind: one[gatewayv1.Kind](m, "ConfigMap", "x"), Name: one[gatewayv1.ObjectName](m, "c0", "c1")}
			}), WellKnownCACertificates: maybe(m, one(m, gatewayv1.WellKnownCACertificatesSystem, "?"))}}})
	case 13:
		m.secrets()
	case 14:
		ns := one(m, namespace, "web")
		if name := one(m, "a", "b", "d"); m.IntN(3) == 0 {
			o.Services.Delete(source.Key{Namespace: ns, Name: name})
		} else {
			m.w.service(ns, name, one(m, "{name: http, port: 80}", "{port: 81}", "{name: http, port: 80, protocol: UDP}", "{name: x, port: 80, appProtocol: kubernetes.io/h2c}", "{port: 80, appProtocol: kubernetes.io/what}"), some(m, 2, func() string { return fmt.Sprint("10.9.0.", 1+m.IntN(9)) })...)
		}
	case 15:
		o.Namespaces.Set(source.Key{Name: one(m, namespace, "web")}, map[string]string{"team": one(m, "web", "infra")})
		key := m.key("g")
		o.Assigned.Set(key, one(m, nil, &Assigned{Addresses: []gatewayv1.GatewayStatusAddress{{Value: "192.0.2.1"}}, Unavailable: map[string]string{PortName(key, 80, false): one(m, "", "taken")}}, &Assigned{Reason: gatewayv1.GatewayReasonAddressNotUsable}))
	}
}

// secrets changes what is referred to with certificates in it.
func (m *maker) secrets() {
	ns := one(m, namespace, "web")
	switch name := fmt.Sprint(m.IntN(2)); m.IntN(4) {
	case 0:
		m.w.o.Secrets.Delete(source.Key{Namespace: ns, Name: "s" + name})
		m.w.o.ConfigMaps.Set(source.Key{Namespace: ns, Name: "c" + name}, &corev1.ConfigMap{})
	case 1:
		m.w.o.Secrets.Set(source.Key{Namespace: ns, Name: "s" + name}, &corev1.Secret{})
	case 2:
		m.w.certificate(ns, "s"+name, "a.test")
	case 3:
		m.w.authority(ns, "c"+name)
	}
}

// replace puts an object into a table, in the place of the one before or as another one, or takes it out.
func replace[T metav1.Object](m *maker, t *Table[T], key source.Key, object T) {
	if m.IntN(4) == 0 {
		t.Delete(key)
		return
	}
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	object.SetGeneration(int64(m.IntN(5)))
	object.SetCreationTimestamp(metav1.Unix(int64(m.IntN(3)), 0))
	t.Set(key, object)
}

// told is a result as text.
func told(r *Result) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for name, l := range r.Listeners {
		add("listener %s %s %q %t %t %d %t", name, l.Port, l.Hostname, l.TLS, l.Stream, len(l.Certificates), l.ClientAuth != nil)
	}
	for ref, route := range r.Routes {
		add("%s %s", ref, parentsTold(route.Status.Parents))
		for i := range route.Rules() {
			add("%s rule %s", ref, ruleTold(&route.Rules()[i]))
		}
	}
	for key, g := range r.Gateways {
		add("Gateway %s %v %v %d %s", key, g.Ports, g.Status.Addresses, *g.Status.AttachedListenerSets, sayAll(g.Status.Conditions))
		for _, l := range g.Status.Listeners {
			add("Gateway %s %s %d %d %s", key, l.Name, l.AttachedRoutes, len(l.SupportedKinds), sayAll(l.Conditions))
		}
	}
	for key, s := range r.ListenerSets {
		add("ListenerSet %s %s", key, sayAll(s.Conditions))
		for _, l := range s.Listeners {
			add("ListenerSet %s %s %d %s", key, l.Name, l.AttachedRoutes, sayAll(l.Conditions))
		}
	}
	for key, p := range r.Policies {
		for _, a := range p.Ancestors {
			add("policy %s %s %s", key, a.AncestorRef.Name, sayAll(a.Conditions))
		}
	}
	add("secrets %v, config maps %v", slices.SortedFunc(maps.Keys(r.Secrets), compareKeys), slices.SortedFunc(maps.Keys(r.ConfigMaps), compareKeys))
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func parentsTold(list []gatewayv1.RouteParentStatus) string {
	s := ""
	for _, p := range list {
		s += fmt.Sprintf("%s %s; ", p.ParentRef.Name, sayAll(p.Conditions))
	}
	return s
}

func ruleTold(s *routing.RuleSpec) string {
	p := &s.Policy
	return fmt.Sprint(s.RouteKey, s.Host, s.Listener, s.Match, s.Termination, s.Created, len(s.Mirrors), p.RequestTimeout, p.Retry != nil, p.RequestActions != nil, p.Redirect != nil, p.Rewrite != nil, s.CookieName) + backendsTold(s.Backends)
}

func backendsTold(list []routing.BackendSpec) string {
	s := ""
	for _, b := range list {
		s += fmt.Sprintf("; %s %d %d", b.Key, b.Weight, b.Status)
		for _, t := range b.Targets {
			s += " " + t.ID
			if t.TLS != nil {
				s += t.TLS.Key
			}
		}
	}
	return s
}

// follower applies changes as a table would.
type follower struct {
	listeners map[string]routing.ListenerSpec
	rules     map[routing.RouteKey]routing.RuleSpec
}

func (f *follower) apply(t *testing.T, r *Result) {
	for _, name := range r.Changes.DeletedListeners {
		delete(f.listeners, name)
	}
	for _, l := range r.Changes.Listeners {
		f.listeners[l.Name] = l
	}
	for _, key := range r.Changes.DeletedRules {
		delete(f.rules, key)
	}
	for _, s := range r.Changes.Rules {
		f.rules[s.RouteKey] = s
	}
	rules := 0
	for ref, route := range r.Routes {
		rules += len(route.Rules())
		for i := range route.Rules() {
			if ruleTold(&route.Rules()[i]) != ruleTold(new(f.rules[route.Rules()[i].RouteKey])) {
				t.Fatalf("%s: rule %s is not among the changes", ref, route.Rules()[i].RouteKey)
			}
		}
	}
	if rules != len(f.rules) || len(r.Listeners) != len(f.listeners) {
		t.Fatalf("%d rules and %d listeners; by the changes %d and %d", rules, len(r.Listeners), len(f.rules), len(f.listeners))
	}
}

// fresh judges objects that nobody has judged before.
func (w *world) fresh() *Result {
	o := Objects{Installed: w.o.Installed}
	from, to := reflect.ValueOf(&w.o).Elem(), reflect.ValueOf(&o).Elem()
	for i := range from.NumField() {
		if all := from.Field(i).Addr().MethodByName("All"); all.IsValid() {
			set := to.Field(i).Addr().MethodByName("Set")
			all.Call(nil)[0].Call([]reflect.Value{reflect.MakeFunc(all.Type().Out(0).In(0), func(args []reflect.Value) []reflect.Value {
				set.Call(args)
				return []reflect.Value{reflect.ValueOf(true)}
			})})
		}
	}
	return New(w.j.cfg).Judge(&o)
}

// FuzzJudge: whatever the objects are, the judge does not panic, the table takes what it makes of them, and what it remembers of the objects
// before makes no difference.
func FuzzJudge(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed, uint8(60))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint8) {
		w := newWorld(t)
		m := &maker{rand.New(rand.NewPCG(seed, 7)), w}
		for range 20 {
			m.change()
		}
		f := &follower{map[string]routing.ListenerSpec{}, map[routing.RouteKey]routing.RuleSpec{}}
		table, _ := routing.Compile(routing.Options{}, nil, nil)
		for step := range int(steps) {
			for range 1 + m.IntN(3) {
				m.change()
			}
			r := w.judge()
			f.apply(t, r)
			var more []routing.Rejection
			if table, more = table.ApplyListeners(r.Changes.Listeners, r.Changes.DeletedListeners); len(more) > 0 {
				t.Fatalf("step %d: %v", step, more)
			}
			if table, more = table.ApplyRules(r.Changes.Rules, r.Changes.DeletedRules); len(more) > 0 {
				t.Fatalf("step %d: %v", step, more)
			}
			if step%8 == 0 {
				if got, want := told(r), told(w.fresh()); got != want {
					t.Fatalf("step %d: %s", step, firstDifference(got, want))
				}
			}
		}
	})
}

// firstDifference names the first lines that differ.
func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + "\nfrom scratch:\n" + b[i]
		}
	}
	return fmt.Sprintf("%d lines, from scratch %d", len(a), len(b))
}
