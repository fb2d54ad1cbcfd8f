package convert

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"turnout/controller/ingress"
)

// world is what an Ingress, ns/web, is converted in.
type world struct {
	services map[string]*corev1.Service
	secrets  map[string]*corev1.Secret
	owned    []*routev1.Route
}

// newWorld has the Service s with the ports http (80) and https (443), u with one port 8080 without a name, the Secret tls and others that cannot be used.
func newWorld() *world {
	secret := func(kind corev1.SecretType, keys ...string) *corev1.Secret {
		s := &corev1.Secret{Type: kind, Data: map[string][]byte{}}
		for _, key := range keys {
			s.Data[key] = []byte("the " + key)
		}
		return s
	}
	return &world{
		services: map[string]*corev1.Service{
			"s": {Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "https", Port: 443}}}},
			"u": {Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080}}}},
		},
		secrets: map[string]*corev1.Secret{
			"tls": secret(corev1.SecretTypeTLS, "tls.crt", "tls.key"), "keyless": secret(corev1.SecretTypeTLS, "tls.crt"), "opaque": secret(corev1.SecretTypeOpaque, "tls.crt", "tls.key"),
			"dockercfg": secret(corev1.SecretTypeDockercfg, "tls.crt", "tls.key"),
		},
	}
}

func (w *world) plan(o *networkingv1.Ingress) Plan {
	return Make(Input{
		Ingress: o, Owned: w.owned, Service: func(name string) *corev1.Service { return w.services[name] }, Secret: func(name string) *corev1.Secret { return w.secrets[name] },
	})
}

// do plans, and does to the Routes of the world what the plan says.
func (w *world) do(t *testing.T, o *networkingv1.Ingress) Plan {
	t.Helper()
	p := w.plan(o)
	for _, r := range p.Delete {
		w.owned = slices.DeleteFunc(w.owned, func(x *routev1.Route) bool { return x == r })
	}
	for _, u := range p.Update {
		w.owned[slices.Index(w.owned, u.Old)] = u.New.DeepCopy()
	}
	for _, r := range p.Create {
		made := r.DeepCopy()
		made.Name = NameOf(o.Name, fmt.Sprintf("%05d", len(w.owned)))
		weight := int32(100)
		made.Spec.To.Weight = &weight // as the API does it
		if made.Spec.WildcardPolicy == "" {
			made.Spec.WildcardPolicy = routev1.WildcardPolicyNone
		}
		w.owned = append(w.owned, made)
	}
	return p
}

func read(t testing.TB, spec string, change ...func(*networkingv1.Ingress)) *networkingv1.Ingress {
	t.Helper()
	o := new(networkingv1.Ingress)
	if err := yaml.UnmarshalStrict([]byte("metadata: {namespace: ns, name: web, uid: u, labels: {l: x}, annotations: {a: b}}\nspec: "+spec), o); err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(o)
	}
	return o
}

// annotated adds an annotation.
func annotated(key, value string) func(*networkingv1.Ingress) {
	return func(o *networkingv1.Ingress) { o.Annotations[key] = value }
}

// spec is that of an Ingress with one path, and more of it.
func spec(host, kind, path, service, port, more string) string {
	return fmt.Sprintf("{rules: [{host: '%s', http: {paths: [{pathType: %s, path: %s, backend: {service: {name: %s, port: {%s}}}}]}}]%s}", host, kind, path, service, port, more)
}

// line is a Route as text.
func line(r *routev1.Route) string {
	text := r.Spec.Host + r.Spec.Path + " " + string(r.Spec.WildcardPolicy) + " " + r.Spec.To.Name
	if r.Spec.Port != nil {
		text += ":" + r.Spec.Port.TargetPort.String()
	}
	if t := r.Spec.TLS; t != nil {
		text += fmt.Sprintf(" %s %s %s %s %s", t.Termination, t.InsecureEdgeTerminationPolicy, t.Certificate, t.Key, t.DestinationCACertificate)
	}
	return strings.Join(strings.Fields(text), " ")
}

// TestRoutes: what becomes of an Ingress without Routes, the rows C981 to C998 of the reference.
func TestRoutes(t *testing.T) {
	const http, tls = "name: http", ", tls: [{hosts: [a.test, '*.w.test'], secretName: tls}]"
	termination := func(word string) func(*networkingv1.Ingress) { return annotated(ingress.AnnotationTermination, word) }
	for _, c := range []struct {
		name       string
		o          *networkingv1.Ingress
		want       string // of the one Route; "" = none
		incomplete string
	}{
		{"number of a named port", read(t, spec("a.test", "Prefix", "/p", "s", "number: 443", "")), "a.test/p s:https", ""},
		{"name of a port", read(t, spec("a.test", "ImplementationSpecific", "/p", "s", http, "")), "a.test/p s:http", ""},
		{"port without a name", read(t, spec("a.test", "Prefix", "/", "u", "number: 8080", "")), "a.test/ u", ""},
		{"no host", read(t, spec("", "Prefix", "/", "s", http, "")), "", "Missing host field in rule at index 0"},
		{"no http", read(t, "{rules: [{host: a.test}]}"), "", "Missing http field in rule at index 0"},
		{"exact", read(t, spec("a.test", "Exact", "/", "s", http, "")), "", "Unsupported exact path type in rule at index 0, path index 0"},
		{"resource", read(t, "{rules: [{host: a.test, http: {paths: [{pathType: Prefix, path: /, backend: {resource: {kind: B, name: b}}}]}}]}"), "", "Missing backend service field in rule at index 0, path index 0"},
		{"no name of a Service", read(t, spec("a.test", "Prefix", "/", "''", http, "")), "", "Missing backend service name in rule at index 0, path index 0"},
		{"missing Service", read(t, spec("a.test", "Prefix", "/", "x", http, "")), "", `Backend service "x" not found at index 0, path index 0`},
		{"missing port", read(t, spec("a.test", "Prefix", "/", "s", "number: 81", "")), "", `No valid target port for backend service "s" at index 0, path index 0`},
		{"missing name of a port", read(t, spec("a.test", "Prefix", "/", "s", "name: web", "")), "", `No valid target port for backend service "s" at index 0, path index 0`},
		{"wildcard", read(t, spec("*.w.test", "Prefix", "/", "s", http, "")), "wildcard.w.test/ Subdomain s:http", ""},
		{"default backend", read(t, "{defaultBackend: {service: {name: s, port: {number: 80}}}}"), "", ""},
		{"certificate", read(t, spec("a.test", "Prefix", "/", "s", http, tls)), "a.test/ s:http edge Redirect the tls.crt the tls.key", ""},
		{"certificate of a wildcard", read(t, spec("*.w.test", "Prefix", "/", "s", http, tls)), "wildcard.w.test/ Subdomain s:http edge Redirect the tls.crt the tls.key", ""},
		{"certificate of another host", read(t, spec("b.test", "Prefix", "/", "s", http, tls)), "b.test/ s:http", ""},
		{"empty item", read(t, spec("a.test", "Prefix", "/", "s", http, ", tls: [{}]")), "a.test/ s:http edge Redirect", ""},
		{"item without a Secret", read(t, spec("a.test", "Prefix", "/", "s", http, ", tls: [{hosts: [a.test]}]")), "", `Invalid or missing TLS secret for rule host "a.test" at index 0, path index 0`},
		{"missing Secret", read(t, spec("a.test", "Prefix", "/", "s", http, ", tls: [{hosts: [a.test], secretName: x}]")), "", `Invalid or missing TLS secret for rule host "a.test" at index 0, path index 0`},
		{"Secret without a key", read(t, spec("a.test", "Prefix", "/", "s", http, ", tls: [{hosts: [a.test], secretName: keyless}]")), "", `Invalid or missing TLS secret for rule host "a.test" at index 0, path index 0`},
		{"Secret of another type", read(t, spec("a.test", "Prefix", "/", "s", http, ", tls: [{hosts: [a.test], secretName: opaque}]")), "", `Invalid or missing TLS secret for rule host "a.test" at index 0, path index 0`},
		{"edge without a Secret", read(t, spec("a.test", "Prefix", "/", "s", http, ""), termination("edge")), "a.test/ s:http edge Redirect", ""},
		{"reencrypt", read(t, spec("a.test", "Prefix", "/", "s", http, tls), termination("reencrypt"), annotated(ingress.AnnotationPodCA, "opaque")), "a.test/ s:http reencrypt Redirect the tls.crt the tls.key the tls.crt", ""},
		{"reencrypt, authorities of the wrong type", read(t, spec("a.test", "Prefix", "/", "s", http, tls), termination("reencrypt"), annotated(ingress.AnnotationPodCA, "dockercfg")), "a.test/ s:http reencrypt Redirect the tls.crt the tls.key", ""},
		{"edge, authorities", read(t, spec("a.test", "Prefix", "/", "s", http, tls), annotated(ingress.AnnotationPodCA, "opaque")), "a.test/ s:http edge Redirect the tls.crt the tls.key", ""},
		{"passthrough", read(t, spec("a.test", "Prefix", "/", "s", http, tls), termination("passthrough")), "a.test/ s:http passthrough Redirect", ""},
		{"unknown termination with a Secret", read(t, spec("a.test", "Prefix", "/", "s", http, tls), termination("Passthrough")), "a.test/ s:http edge Redirect the tls.crt the tls.key", ""},
		{"unknown termination", read(t, spec("a.test", "Prefix", "/", "s", http, ""), termination("x")), "a.test/ s:http", ""},
	} {
		p := newWorld().plan(c.o)
		got := ""
		for _, r := range p.Create {
			got += line(r)
			if r.Labels["l"] != "x" || r.Annotations["a"] != "b" || r.Namespace != "ns" || r.Spec.To.Weight != nil || len(r.Spec.AlternateBackends) != 0 {
				t.Errorf("%s: %+v", c.name, r)
			}
			if owner, ok := OwnerOf(r); !ok || owner != "web" || r.OwnerReferences[0].UID != "u" || r.OwnerReferences[0].APIVersion != "networking.k8s.io/v1" {
				t.Errorf("%s: owned by %+v", c.name, r.OwnerReferences)
			}
		}
		want := ""
		if c.incomplete != "" {
			want = "Incomplete ingress to route rules detected: " + c.incomplete
		}
		if got != c.want || p.Incomplete != want {
			t.Errorf("%s: %q, %q, want %q, %q", c.name, got, p.Incomplete, c.want, want)
		}
	}
}

// TestNothingToDo: what was made once is not written again, wildcards included.
func TestNothingToDo(t *testing.T) {
	w := newWorld()
	o := read(t, "{rules: [{host: '*.w.test', http: {paths: [{pathType: Prefix, path: /, backend: {service: {name: s, port: {name: http}}}}]}}, "+
		"{host: a.test, http: {paths: [{pathType: Prefix, path: /a, backend: {service: {name: s, port: {number: 80}}}}, {pathType: Prefix, path: /a, backend: {service: {name: u, port: {number: 8080}}}}, "+
		"{path: /, backend: {service: {name: u, port: {number: 8080}}}}]}}], tls: [{hosts: [a.test], secretName: tls}]}")
	if p := w.do(t, o); len(p.Create) != 3 || !strings.Contains(p.Incomplete, "Duplicate host and path in rule at index 1, path index 1") {
		t.Fatalf("%d Routes, %s", len(p.Create), p.Incomplete)
	}
	for _, r := range w.owned {
		r.Annotations["turnout.router/phase"] = "scheduled" // the scheduler's
		r.Spec.HTTPHeaders = &routev1.RouteHTTPHeaders{}
		if r.Spec.TLS != nil {
			r.Spec.TLS.CACertificate, r.Spec.TLS.InsecureEdgeTerminationPolicy = "chain", "Allow"
		}
	}
	if p := w.plan(o); len(p.Create)+len(p.Update)+len(p.Delete) != 0 || p.Status != nil {
		t.Errorf("%+v", p)
	}
}

// TestRoutesFollow: Routes follow the Ingress, its Services and Secrets, and keep what people have set.
func TestRoutesFollow(t *testing.T) {
	const tls = ", tls: [{hosts: [a.test], secretName: tls}]"
	weight := int32(7)
	for _, c := range []struct {
		name  string
		o     func() *networkingv1.Ingress // afterwards
		set   func(*world, *routev1.Route) // in between
		check func(*routev1.Route) bool    // nil: nothing is to be done
	}{
		{"weight", func() *networkingv1.Ingress { return read(t, spec("a.test", "Prefix", "/", "u", "number: 8080", tls)) }, func(_ *world, r *routev1.Route) { r.Spec.To.Weight = &weight },
			func(r *routev1.Route) bool {
				return *r.Spec.To.Weight == 7 && r.Spec.To.Name == "u" && r.Spec.Port == nil
			}},
		{"policy and chain", func() *networkingv1.Ingress { return read(t, spec("a.test", "Prefix", "/", "s", "name: https", tls)) },
			func(_ *world, r *routev1.Route) {
				r.Spec.TLS.InsecureEdgeTerminationPolicy, r.Spec.TLS.CACertificate = "None", "chain"
			},
			func(r *routev1.Route) bool {
				return r.Spec.TLS.InsecureEdgeTerminationPolicy == "None" && r.Spec.TLS.CACertificate == "chain" && r.Spec.Port.TargetPort.StrVal == "https"
			}},
		{"alternate backends", nil, func(_ *world, r *routev1.Route) {
			r.Spec.AlternateBackends = []routev1.RouteTargetReference{{Name: "u"}}
		}, func(r *routev1.Route) bool { return len(r.Spec.AlternateBackends) == 0 }},
		{"port", nil, func(_ *world, r *routev1.Route) { r.Spec.Port = &routev1.RoutePort{TargetPort: intstr.FromInt32(8080)} }, func(r *routev1.Route) bool { return r.Spec.Port.TargetPort.StrVal == "http" }},
		{"certificate", nil, func(w *world, _ *routev1.Route) { w.secrets["tls"].Data["tls.crt"] = []byte("new") }, func(r *routev1.Route) bool { return r.Spec.TLS.Certificate == "new" }},
		{"annotations", func() *networkingv1.Ingress {
			return read(t, spec("a.test", "Prefix", "/", "s", "name: http", tls), annotated("c", "d"))
		},
			func(_ *world, r *routev1.Route) {
				r.Annotations = map[string]string{"x": "y", "turnout.router/phase": "new"}
			},
			func(r *routev1.Route) bool {
				return len(r.Annotations) == 3 && r.Annotations["c"] == "d" && r.Annotations["turnout.router/phase"] == "new"
			}},
		{"owner of an old version", nil, func(_ *world, r *routev1.Route) { r.OwnerReferences[0].APIVersion = "extensions/v1beta1" }, func(r *routev1.Route) bool { return r.OwnerReferences[0].APIVersion == "networking.k8s.io/v1" }},
		{"made again", func() *networkingv1.Ingress {
			return read(t, spec("a.test", "Prefix", "/", "s", "name: http", tls), func(o *networkingv1.Ingress) { o.UID = "other" })
		}, nil,
			func(r *routev1.Route) bool { return r.OwnerReferences[0].UID == "other" }},
		{"other owners", nil, func(_ *world, r *routev1.Route) {
			r.OwnerReferences = append([]metav1.OwnerReference{{Kind: "X"}}, r.OwnerReferences...)
		}, nil},
		{"labels", func() *networkingv1.Ingress {
			return read(t, spec("a.test", "Prefix", "/", "s", "name: http", tls), func(o *networkingv1.Ingress) { o.Labels = map[string]string{"new": "y"} })
		}, nil, nil},
		{"labels that follow", func() *networkingv1.Ingress {
			return read(t, spec("a.test", "Prefix", "/", "s", "name: http", tls), annotated(AnnotationLabels, " True "), func(o *networkingv1.Ingress) { o.Labels = map[string]string{"new": "y"} })
		}, func(_ *world, r *routev1.Route) { r.Labels["bound.turnout.router/a"] = "1" }, func(r *routev1.Route) bool {
			return len(r.Labels) == 2 && r.Labels["new"] == "y" && r.Labels["bound.turnout.router/a"] == "1"
		}},
		{"labels that go", func() *networkingv1.Ingress {
			return read(t, spec("a.test", "Prefix", "/", "s", "name: http", tls), annotated(AnnotationLabels, "true"), func(o *networkingv1.Ingress) { o.Labels = nil })
		}, nil, func(r *routev1.Route) bool { return len(r.Labels) == 0 }},
		{"authorities of a person", func() *networkingv1.Ingress {
			return read(t, spec("a.test", "Prefix", "/", "s", "name: http", tls), annotated(ingress.AnnotationTermination, "reencrypt"))
		}, func(_ *world, r *routev1.Route) {
			r.Spec.TLS.Termination, r.Spec.TLS.DestinationCACertificate = "reencrypt", "own"
		}, func(r *routev1.Route) bool { return r.Spec.TLS.DestinationCACertificate == "own" }},
		{"TLS that goes", func() *networkingv1.Ingress { return read(t, spec("a.test", "Prefix", "/", "s", "name: http", "")) }, nil, func(r *routev1.Route) bool { return r.Spec.TLS == nil }},
	} {
		w := newWorld()
		first := read(t, spec("a.test", "Prefix", "/", "s", "name: http", tls))
		w.do(t, first)
		if c.set != nil {
			c.set(w, w.owned[0])
		}
		after := first
		if c.o != nil {
			after = c.o()
		}
		p := w.plan(after)
		if len(p.Create)+len(p.Delete) != 0 {
			t.Errorf("%s: %+v", c.name, p)
			continue
		}
		if c.check == nil {
			if len(p.Update) != 0 {
				t.Errorf("%s: %+v", c.name, p.Update[0].New)
			}
			continue
		}
		if len(p.Update) != 1 || p.Update[0].New.Name != w.owned[0].Name || !c.check(p.Update[0].New) {
			t.Errorf("%s: %+v", c.name, p.Update)
			continue
		}
		w.do(t, after)
		if p := w.plan(after); len(p.Update) != 0 {
			t.Errorf("%s: it is written again: %+v", c.name, p.Update[0].New)
		}
	}
}

// TestRoutesGo: a Route whose host and path nothing asks for any more, or that cannot be made, is deleted; an annotation that is neither true nor false is said.
func TestRoutesGo(t *testing.T) {
	w := newWorld()
	o := read(t, spec("a.test", "Prefix", "/", "s", "name: http", ", tls: [{hosts: [a.test], secretName: tls}]"))
	w.do(t, o)
	if p := w.plan(read(t, spec("a.test", "Prefix", "/other", "s", "name: http", ""))); len(p.Delete) != 1 || len(p.Create) != 1 {
		t.Errorf("another path: %+v", p)
	}
	delete(w.secrets, "tls")
	if p := w.do(t, o); len(p.Delete) != 1 || len(p.Create) != 0 {
		t.Errorf("without its Secret: %+v", p)
	}
	if p := w.plan(read(t, "{}", annotated(AnnotationLabels, "maybe"))); !p.BadLabels {
		t.Error("the annotation is taken for good")
	}
}

// TestAddresses: the status has the canonical host names of routers that admit a Route, and what others have put there.
func TestAddresses(t *testing.T) {
	w := newWorld()
	o := read(t, spec("*.w.test", "Prefix", "/", "s", "name: http", ""), func(o *networkingv1.Ingress) {
		o.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "10.0.0.1"}, {Hostname: "z.other.test"}}
	})
	w.do(t, o)
	admitted := func(router, name string, status corev1.ConditionStatus) routev1.RouteIngress {
		return routev1.RouteIngress{RouterName: router, RouterCanonicalHostname: name, Conditions: []routev1.RouteIngressCondition{{Type: routev1.RouteAdmitted, Status: status}}}
	}
	w.owned[0].Status.Ingress = []routev1.RouteIngress{admitted("a", "a.routers.test", "True"), admitted("b", "b.routers.test", "False"), admitted("c", "", "True")}
	names := func(p Plan) (all []string) {
		for _, entry := range p.Status {
			all = append(all, entry.IP+entry.Hostname)
		}
		return all
	}
	p := w.plan(o)
	if got := names(p); !slices.Equal(got, []string{"10.0.0.1", "a.routers.test", "z.other.test"}) {
		t.Errorf("addresses %q", got)
	}
	o.Status.LoadBalancer.Ingress = p.Status
	if p := w.plan(o); p.Status != nil {
		t.Errorf("again: %v", p.Status)
	}
	o.Spec.Rules = nil
	if got := names(w.plan(o)); !slices.Equal(got, []string{"10.0.0.1", "z.other.test"}) {
		t.Errorf("without Routes: %q", got)
	}
}

// TestNames: a name fits into 63 characters and ends with what was chosen.
func TestNames(t *testing.T) {
	if got := NameOf("web", "abcde"); got != "web-abcde" {
		t.Error(got)
	}
	long := strings.Repeat("a", 100)
	if got := NameOf(long, "abcde"); len(got) != 63 || !strings.HasSuffix(got, "aaabcde") {
		t.Errorf("%s has %d characters", got, len(got))
	}
}

// TestManaged: an Ingress without a class is converted, one with a class if that is this controller's.
func TestManaged(t *testing.T) {
	classes := ingress.NewClasses(Controller)
	for name, controller := range map[string]string{"openshift-default": Controller, "foreign": "example.com/x"} {
		classes.SetClass(name, &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: controller}})
	}
	for class, want := range map[string]bool{"openshift-default": true, "foreign": false, "unknown": false} {
		if got := Managed(read(t, "{ingressClassName: "+class+"}"), classes); got != want {
			t.Errorf("class %s: %v", class, got)
		}
		if got := Managed(read(t, "{}", annotated(ingress.AnnotationClass, class)), classes); got != want {
			t.Errorf("annotation %s: %v", class, got)
		}
	}
	if !Managed(read(t, "{}"), classes) || Managed(read(t, "{ingressClassName: openshift-default}", annotated(ingress.AnnotationClass, "")), classes) {
		t.Error("no class, or an empty annotation before the field")
	}
	if got := Secrets(read(t, "{tls: [{hosts: [a], secretName: two}, {hosts: [b], secretName: one}, {secretName: zero}, {hosts: [c], secretName: two}]}", annotated(ingress.AnnotationPodCA, "ca"))); !slices.Equal(got, []string{"ca", "one", "two"}) {
		t.Errorf("Secrets %q", got)
	}
}
