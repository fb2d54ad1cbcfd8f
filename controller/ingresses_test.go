package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"turnout/controller/expansion"
	"turnout/controller/ingress"
	"turnout/controller/source"
	"turnout/controller/status"
	"turnout/internal/bound"
	"turnout/internal/problem"
	"turnout/routing"
)

// told is an IngressReporter that remembers what it was told last.
type told map[string]string

func (r told) Report(o *networkingv1.Ingress, out status.IngressOutcome) {
	text := "not served"
	if out.Served {
		text = "served"
	}
	for _, p := range out.Problems {
		text += "; " + p.Reason + ": " + p.Message
	}
	r[o.Name] = text
}

func (r told) Withdraw(o *networkingv1.Ingress) { r[o.Name] = "withdrawn" }

func (r told) Forget(o *networkingv1.Ingress) { r[o.Name] = "gone" }

// ingressRig is a rig that serves Ingresses of the class mine, with the Services s and t whose ports are http (80) and https (443).
func ingressRig(t *testing.T, o Options, change ...func(*Config)) (*rig, told) {
	t.Helper()
	said := told{}
	o.Ingress = true
	r := newRig(t, o, append([]func(*Config){func(c *Config) { c.Ingresses = said }}, change...)...)
	r.do(aClass("mine", ingress.Controller), aService("s"), aService("t"), aSlice("s-1", "s", "10.0.0.1"), aSlice("t-1", "t", "10.0.0.2"))
	return r, said
}

func aClass(name, controller string) source.Event {
	return event(source.IngressClass, &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: controller}})
}

func aService(name string) source.Event {
	return event(source.Service, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "https", Port: 443}}},
	})
}

// anIngressOf returns an Ingress of ns with the class mine. spec is in YAML's flow style.
func anIngressOf(t testing.TB, name string, age int, spec string, change ...func(*networkingv1.Ingress)) source.Event {
	t.Helper()
	mine := "mine"
	o := &networkingv1.Ingress{Spec: networkingv1.IngressSpec{IngressClassName: &mine}}
	if err := yaml.UnmarshalStrict([]byte("spec: "+spec), o); err != nil {
		t.Fatal(err)
	}
	o.ObjectMeta = metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(age) * time.Hour))}
	for _, f := range change {
		f(o)
	}
	return event(source.Ingress, o)
}

// toHost is the spec of an Ingress with one path.
func toHost(host, kind, path, service string) string {
	return fmt.Sprintf("{rules: [{host: '%s', http: {paths: [{pathType: %s, path: %s, backend: {service: {name: %s, port: {number: 80}}}}]}}]}", host, kind, path, service)
}

// backs returns the Ingress or route that serves a request, as "NAME SERVICE", "" for none.
func (r *rig) backs(secure bool, url string) string {
	host, path, _ := strings.Cut(url, "/")
	d := r.store.Load().Match(&routing.View{Secure: secure, Host: []byte(host), Path: []byte("/" + path)})
	if d.Kind != routing.Serve {
		return ""
	}
	name, _, _ := strings.Cut(d.Route.Name(), source.OfIngress)
	for l := range d.Route.Pool().List {
		return name + " " + l.Service
	}
	return name + " 503"
}

func (r *rig) wantBacks(want map[string]string) {
	r.Helper()
	for _, url := range slices.Sorted(maps.Keys(want)) {
		for _, secure := range []bool{false, true} {
			if got := r.backs(secure, url); got != want[url] {
				r.Errorf("%s (TLS: %v): served by %q, want %q", url, secure, got, want[url])
			}
		}
	}
}

// TestIngressIsServed: each rule is found by host and path on both ports, and follows the Ingress, its Services and their endpoints.
func TestIngressIsServed(t *testing.T) {
	r, said := ingressRig(t, Options{})
	const spec = "{defaultBackend: {service: {name: t, port: {name: http}}}, rules: [" +
		"{host: a.test, http: {paths: [{pathType: Prefix, path: /p, backend: {service: {name: s, port: {number: 80}}}}, {pathType: Exact, path: /p, backend: {service: {name: t, port: {number: 80}}}}]}}," +
		"{host: '*.w.test', http: {paths: [{pathType: Prefix, path: /, backend: {service: {name: s, port: {name: http}}}}]}}]}"
	r.do(anIngressOf(t, "web", 0, spec))
	r.wantBacks(map[string]string{
		"a.test/p": "web t", "a.test/p/": "web s", "a.test/p/x": "web s", "a.test/px": "web t", "a.test/": "web t", "A.test:80/P": "web t",
		"x.w.test/": "web s", "x.y.w.test/": "web t", "w.test/": "web t", "else.test/": "web t", "/": "web t",
	})
	if said["web"] != "served" {
		t.Errorf("reported: %s", said["web"])
	}
	r.do(aSlice("s-1", "s", "10.0.0.9"), anIngressOf(t, "web", 0, toHost("b.test", "Exact", "/x", "s")))
	r.wantBacks(map[string]string{"a.test/p": "", "b.test/x": "web s", "b.test/": "", "else.test/": ""})
	r.do(gone(source.Ingress, "web"))
	r.wantBacks(map[string]string{"b.test/x": ""})
	if said["web"] != "gone" || len(r.c.state.ingress.rules) != 0 || len(r.c.state.ingress.users) != 0 || r.c.state.routes.Len() != 0 {
		t.Errorf("left: %v %+v", said, r.c.state.ingress)
	}
}

// TestIngressClassDecides: a class that comes, changes or goes takes its Ingresses with it.
func TestIngressClassDecides(t *testing.T) {
	r, said := ingressRig(t, Options{})
	other := "other"
	r.do(anIngressOf(t, "web", 0, toHost("a.test", "Prefix", "/", "s"), func(o *networkingv1.Ingress) { o.Spec.IngressClassName = &other }))
	for _, step := range []struct {
		event source.Event
		want  string
	}{
		{aClass("mine", ingress.Controller), ""}, {aClass("other", "foreign.test/x"), ""}, {aClass("other", ingress.Controller), "web s"},
		{aClass("other", "foreign.test/x"), ""}, {aClass("other", ingress.Controller), "web s"}, {source.Event{Kind: source.IngressClass, Key: source.Key{Name: "other"}}, ""},
	} {
		r.do(step.event)
		r.wantBacks(map[string]string{"a.test/": step.want})
		if served := said["web"] == "served"; served != (step.want != "") || !served && said["web"] != "withdrawn" {
			t.Errorf("reported %q, want %q", said["web"], step.want)
		}
	}
}

// TestIngressWaitsForItsServices: a Service or port that is missing is answered with 503, and the rest is served; when it comes, so is that.
func TestIngressWaitsForItsServices(t *testing.T) {
	r, said := ingressRig(t, Options{})
	spec := strings.Replace(toHost("a.test", "Prefix", "/", "later"), "number: 80", "name: api", 1)
	r.do(anIngressOf(t, "web", 0, spec), aSlice("later-1", "later", "10.0.0.3"))
	r.wantBacks(map[string]string{"a.test/": "web 503"})
	if want := "served; ServiceNotFound: the Service later does not exist: requests are answered with 503 until it does"; said["web"] != want {
		t.Errorf("reported %q, want %q", said["web"], want)
	}
	r.do(aService("later"))
	if want := "served; ServicePortNotFound: the Service later has no port api: requests are answered with 503 until it does"; said["web"] != want {
		t.Errorf("reported %q, want %q", said["web"], want)
	}
	if notes := r.c.Notes("ns", r.c.Routes()[0].Name); !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "has no port api") }) {
		t.Errorf("notes %q", notes)
	}
	r.do(event(source.Service, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "later"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "api", Port: 8}, {Name: "http", Port: 9}}}}))
	r.wantBacks(map[string]string{"a.test/": "web 503"}) // the slice has no port api
	if said["web"] != "served" {
		t.Errorf("reported %q", said["web"])
	}
	r.do(anIngressOf(t, "web", 0, strings.Replace(spec, "name: api", "number: 9", 1)))
	r.wantBacks(map[string]string{"a.test/": "web later"})
	r.do(gone(source.Service, "later"))
	r.wantBacks(map[string]string{"a.test/": "web 503"})
}

// TestIngressAmongRoutes: hosts are claimed by age, whatever the kind of object, and the loser is told by an event.
func TestIngressAmongRoutes(t *testing.T) {
	r, said := ingressRig(t, Options{})
	inOther := func(o *networkingv1.Ingress) { o.Namespace = "other" }
	r.do(aRoute("old", "h.test", 0), aRoute("young", "i.test", 9, func(o *routev1.Route) { o.Spec.Path = "/p" }),
		anIngressOf(t, "same", 1, toHost("h.test", "Prefix", "/", "s")), anIngressOf(t, "path", 1, toHost("h.test", "Prefix", "/p/", "s")),
		anIngressOf(t, "first", 1, toHost("i.test", "Prefix", "/p", "s")), anIngressOf(t, "second", 2, toHost("i.test", "Prefix", "/p/", "t")),
		anIngressOf(t, "exact", 3, toHost("i.test", "Exact", "/p", "t")), anIngressOf(t, "foreign", 3, toHost("h.test", "Exact", "/x", "s"), inOther),
		anIngressOf(t, "alike", 1, toHost("j.test", "Prefix", "/", "s")), anIngressOf(t, "alike-b", 1, toHost("j.test", "Prefix", "/", "t")))
	for url, want := range map[string]string{"h.test/": "old s", "h.test/p": "path s", "i.test/p": "exact t", "i.test/p/q": "first s", "j.test/": "alike s"} {
		if got := r.backs(false, url); got != want {
			t.Errorf("%s: served by %q, want %q", url, got, want)
		}
	}
	r.wantCondition("young", "False HostAlreadyClaimed: Ingress ns/first has host i.test")
	for name, want := range map[string]string{
		"same":   "not served; HostAlreadyClaimed: host h.test, path / is not served: route ns/old has host h.test",
		"second": "not served; HostAlreadyClaimed: host i.test, path /p/ is not served: Ingress ns/first has host i.test",
		"foreign": "not served; ServiceNotFound: the Service s does not exist: requests are answered with 503 until it does; " +
			"HostAlreadyClaimed: host h.test, exact path /x is not served: a route in another namespace holds host h.test",
		"alike-b": "not served; HostAlreadyClaimed: host j.test, path / is not served: Ingress ns/alike has host j.test",
		"path":    "served", "first": "served", "exact": "served", "alike": "served",
	} {
		if said[name] != want {
			t.Errorf("%s: reported %q, want %q", name, said[name], want)
		}
	}
	r.do(gone(source.Route, "old"), gone(source.Ingress, "first"))
	r.wantCondition("young", "False HostAlreadyClaimed: Ingress ns/second has host i.test")
	for name, want := range map[string]string{"same": "served", "second": "served"} {
		if said[name] != want {
			t.Errorf("%s afterwards: reported %q, want %q", name, said[name], want)
		}
	}
}

// TestDefaultBackendComesLast: it leaves to all others what they take, and of several of one host the oldest is served.
func TestDefaultBackendComesLast(t *testing.T) {
	r, said := ingressRig(t, Options{})
	withDefault := func(service string) func(*networkingv1.Ingress) {
		return func(o *networkingv1.Ingress) {
			o.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: service, Port: networkingv1.ServiceBackendPort{Number: 80}}}
		}
	}
	r.do(anIngressOf(t, "old", 0, toHost("h.test", "Prefix", "/a", "s"), withDefault("s")), anIngressOf(t, "young", 1, toHost("h.test", "Prefix", "/b", "t"), withDefault("t")))
	r.wantBacks(map[string]string{"h.test/a": "old s", "h.test/b": "young t", "h.test/": "old s", "x.test/": "old s"})
	if !strings.Contains(said["young"], "HostAlreadyClaimed: host h.test, default backend is not served") || !strings.Contains(said["young"], "any host, default backend is not served") {
		t.Errorf("reported %q", said["young"])
	}
	r.do(anIngressOf(t, "root", 2, toHost("h.test", "Prefix", "/", "t")), anIngressOf(t, "any", 2, toHost("", "Prefix", "/", "t")))
	r.wantBacks(map[string]string{"h.test/a": "old s", "h.test/": "root t", "x.test/": "any t"})
	r.do(gone(source.Ingress, "old"), gone(source.Ingress, "root"), gone(source.Ingress, "any"))
	r.wantBacks(map[string]string{"h.test/a": "young t", "x.test/": "young t"})
}

// TestIngressSecrets: a host has the certificate of its Secret; what is missing or unusable costs the host its certificate, which is said, and
// nothing else. The last good one stays.
func TestIngressSecrets(t *testing.T) {
	cert, key := keyPair(t, "a.test")
	secret := func(name, cert, key string) source.Event {
		return event(source.Secret, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": []byte(cert), "tls.key": []byte(key)}})
	}
	r, said := ingressRig(t, Options{SkipExternalCertificate: true})
	spec := strings.TrimSuffix(toHost("a.test", "Prefix", "/", "s"), "}") + ", tls: [{hosts: [a.test], secretName: own}]}"
	r.do(anIngressOf(t, "web", 0, spec), anIngressOf(t, "plain", 0, toHost("b.test", "Prefix", "/", "s")))
	own := func() bool { return r.store.Load().SNI("a.test").Own }
	for _, step := range []struct {
		what  string
		event source.Event
		own   bool
		want  string
	}{
		{"none", aService("s"), false, "served; CertificateNotUsed: the default certificate is served instead of that of Secret own: it does not exist"},
		{"broken", secret("own", "x", key), false, "served; CertificateNotUsed: the default certificate is served instead of that of Secret own: "},
		{"good", secret("own", cert, key), true, "served"},
		{"torn", secret("own", cert, ""), true, "served; CertificateNotUsed: the last good certificate of secret \"own\" is served"},
		{"gone", gone(source.Secret, "own"), false, "it does not exist"},
		{"of another type", event(source.Secret, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own"}, Type: "Opaque"}), false, "it is of type Opaque, and not kubernetes.io/tls"},
		{"good again", secret("own", cert, key), true, "served"},
	} {
		r.do(step.event)
		r.wantBacks(map[string]string{"a.test/": "web s", "b.test/": "plain s"})
		if own() != step.own || !strings.Contains(said["web"], step.want) || step.want == "served" && said["web"] != step.want {
			t.Errorf("%s: own certificate %v, reported %q", step.what, own(), said["web"])
		}
	}
}

// TestIngressIsSelectedByNamespace: as Routes are; labels of Routes and bindings are nothing to it.
func TestIngressIsSelectedByNamespace(t *testing.T) {
	r, said := ingressRig(t, Options{SelectNamespaces: true, NamespaceLabels: "in=yes", RouteLabels: "type=public"})
	r.do(anIngressOf(t, "web", 0, toHost("a.test", "Prefix", "/", "s")))
	r.wantBacks(map[string]string{"a.test/": ""})
	r.do(event(source.Namespace, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"in": "yes"}}}))
	r.wantBacks(map[string]string{"a.test/": "web s"})
	r.do(source.Event{Kind: source.Namespace, Key: source.Key{Name: "ns"}})
	r.wantBacks(map[string]string{"a.test/": ""})
	if said["web"] != "not served" {
		t.Errorf("reported %q", said["web"])
	}
}

// TestIngressDomains: domains that are denied are for Ingresses too, wildcards of Ingresses are no privilege, and those of Routes still are.
func TestIngressDomains(t *testing.T) {
	r, said := ingressRig(t, Options{AllowedDomains: []string{"apps.test"}})
	r.do(anIngressOf(t, "in", 0, toHost("*.apps.test", "Prefix", "/", "s")), anIngressOf(t, "out", 0, toHost("a.test", "Prefix", "/", "s")), anIngressOf(t, "any", 0, toHost("", "Prefix", "/", "s")),
		aRoute("wild", "w.apps.test", 0, func(o *routev1.Route) { o.Spec.WildcardPolicy = "Subdomain" }))
	r.wantBacks(map[string]string{"x.apps.test/": "in s", "a.test/": "", "b.test/": ""})
	r.wantCondition("wild", "False RouteNotAdmitted: wildcard routes are not allowed")
	if said["out"] != "not served; RouteNotAdmitted: host a.test, path / is not served: host not in the allowed list of domains" || !strings.Contains(said["any"], "only some are allowed") {
		t.Errorf("reported %q, %q", said["out"], said["any"])
	}
}

// TestIngressesAreOffUnlessAsked: the object is known, and /problems says how to have it served.
func TestIngressesAreOffUnlessAsked(t *testing.T) {
	list := problem.NewList()
	r := newRig(t, Options{}, func(c *Config) { c.Problems = list })
	r.do(aClass("mine", ingress.Controller), aService("s"), anIngressOf(t, "web", 0, toHost("a.test", "Prefix", "/", "s")))
	r.wantBacks(map[string]string{"a.test/": ""})
	all, _ := list.All("", 0)
	var texts []string
	for p := range all {
		texts = append(texts, p.Object+": "+p.Text)
	}
	if len(texts) != 1 || texts[0] != "Ingress ns/web: "+notServed {
		t.Errorf("problems %q", texts)
	}
	r.do(gone(source.Ingress, "web"))
	if all, _ = list.All("", 0); len(slices.Collect(all)) != 0 {
		t.Error("the problem stays")
	}
}

// TestIngressPreview: what a change would do is found out from the Ingresses, and not from the Routes made of them.
func TestIngressPreview(t *testing.T) {
	r, _ := ingressRig(t, Options{})
	r.do(anIngressOf(t, "web", 0, toHost("a.test", "Prefix", "/", "s")))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.c.Run(ctx) }()
	defer func() { cancel(); <-done }()
	_, table, err := r.c.Preview(ctx, []byte("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {namespace: ns, name: web}\nspec: {ingressClassName: mine, rules: [{host: b.test, http: {paths: [{pathType: Prefix, path: /, backend: {service: {name: t, port: {number: 80}}}}]}}]}"))
	if err != nil {
		t.Fatal(err)
	}
	if table.Len() != 1 || table.Match(&routing.View{Host: []byte("b.test"), Path: []byte("/")}).Kind != routing.Serve {
		t.Errorf("%d routes in the preview", table.Len())
	}
	r.wantBacks(map[string]string{"a.test/": "web s", "b.test/": ""})
}

// TestStatusOfIngressChangesNothing: what is written to its status makes no table.
func TestStatusOfIngressChangesNothing(t *testing.T) {
	r, _ := ingressRig(t, Options{})
	r.do(anIngressOf(t, "web", 0, toHost("a.test", "Prefix", "/", "s")))
	table := r.store.Load()
	r.do(anIngressOf(t, "web", 0, toHost("a.test", "Prefix", "/", "s"), func(o *networkingv1.Ingress) {
		o.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{Hostname: "router.test"}}
	}), aService("s"))
	if r.store.Load() != table {
		t.Error("a table was published")
	}
}

// TestRulesOfAnIngressAreBounded: it is counted that some were left out.
func TestRulesOfAnIngressAreBounded(t *testing.T) {
	var counts bound.Counts
	r, said := ingressRig(t, Options{}, func(c *Config) { c.Bounds = &counts })
	r.do(anIngressOf(t, "web", 0, toHost("a.test", "Exact", "/0", "s"), func(o *networkingv1.Ingress) {
		paths := &o.Spec.Rules[0].HTTP.Paths
		for i := range expansion.MaxRules {
			next := (*paths)[0]
			next.Path = fmt.Sprint("/", i+1)
			*paths = append(*paths, next)
		}
	}))
	if n := counts.Of(bound.IngressRules); n != 1 || r.store.Load().Len() != expansion.MaxRules || !strings.Contains(said["web"], "TooManyRules") {
		t.Errorf("%d times, %d rules, reported %q", n, r.store.Load().Len(), said["web"])
	}
}
