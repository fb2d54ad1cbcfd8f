package controller

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"turnout/balancer"
	"turnout/controller/source"
	"turnout/internal/testkit/testcert"
	"turnout/routing"
)

// rig is a controller whose owner goroutine is the test.
type rig struct {
	testing.TB
	c     *Controller
	store *routing.Store
	sink  source.Sink
	now   time.Time
}

func newRig(t testing.TB, o Options, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{TB: t, store: routing.NewStore(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	cfg := Config{
		Store: r.store, Routing: routing.Options{Registry: balancer.NewRegistry()}, Options: o,
		Clock: func() time.Time { return r.now },
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	r.c, err = New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.sink = r.c.Sink("test")
	r.sink.Synced()
	return r
}

// do delivers objects and handles them. A pair of kind and key deletes.
func (r *rig) do(events ...source.Event) {
	r.Helper()
	for _, e := range events {
		r.sink.Event(e)
	}
	r.c.handleAll()
}

// handleAll handles all pending events and waiting objects, in as many batches as necessary.
func (c *Controller) handleAll() {
	for more := true; more; more = c.waiting.Load() > 0 {
		c.handle()
	}
}

func event(kind source.Kind, o interface {
	runtime.Object
	metav1.Object
}) source.Event {
	return source.Event{Kind: kind, Key: source.Key{Namespace: o.GetNamespace(), Name: o.GetName()}, Object: o}
}

func gone(kind source.Kind, name string) source.Event {
	return source.Event{Kind: kind, Key: source.Key{Namespace: "ns", Name: name}}
}

var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// aRoute returns a route of ns to the service s. change changes it before it is used.
func aRoute(name, host string, age int, change ...func(*routev1.Route)) source.Event {
	weight := int32(100)
	o := &routev1.Route{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(age) * time.Hour)),
		},
		Spec: routev1.RouteSpec{Host: host, WildcardPolicy: "None", To: routev1.RouteTargetReference{Kind: "Service", Name: "s", Weight: &weight}},
	}
	for _, f := range change {
		f(o)
	}
	return event(source.Route, o)
}

// aSlice returns the endpoints of a service.
func aSlice(name, service string, addresses ...string) source.Event {
	ready, port, portName := true, int32(8080), "http"
	o := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &portName, Port: &port}},
	}
	for _, a := range addresses {
		o.Endpoints = append(o.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	}
	return event(source.EndpointSlice, o)
}

// serves returns the name of the route that serves a plain request, "" for none.
func (r *rig) serves(host, path string) string {
	d := r.store.Load().Match(&routing.View{Host: []byte(host), Path: []byte(path)})
	if d.Kind != routing.Serve {
		return ""
	}
	return d.Route.Name()
}

// servers returns the addresses behind a route.
func (r *rig) servers(name string) string {
	r.Helper()
	var found *routing.Route
	for route := range r.store.Load().Routes {
		if route.Name() == name {
			found = route
		}
	}
	if found == nil {
		return "no route"
	}
	var list []string
	for _, s := range found.Pool().Servers() {
		list = append(list, s.Endpoint().Addr().String())
	}
	return strings.Join(list, " ")
}

// condition returns the Admitted condition of a route as "STATUS REASON: MESSAGE".
func (r *rig) condition(name string) string {
	r.Helper()
	route, ok := r.c.Route("ns", name)
	if !ok {
		return "no route"
	}
	if n := len(route.Status.Ingress); n != 1 || len(route.Status.Ingress[0].Conditions) != 1 {
		r.Fatalf("status of %s: %+v", name, route.Status)
	}
	c := route.Status.Ingress[0].Conditions[0]
	return strings.TrimSuffix(strings.TrimSpace(string(c.Status)+" "+c.Reason+": "+c.Message), " :")
}

func (r *rig) wantCondition(name, want string) {
	r.Helper()
	if got := r.condition(name); got != want {
		r.Errorf("%s: condition %q, want %q", name, got, want)
	}
}

func TestRouteToTable(t *testing.T) {
	r := newRig(t, Options{RouterName: "mine", CanonicalHostname: "c.test", Domain: "apps.test"})
	r.do(aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1", "10.0.0.2"),
		aRoute("sub", "", 0, func(o *routev1.Route) { o.Spec.Subdomain = "x" }))
	if got := r.serves("a.test", "/"); got != "a" {
		t.Fatalf("served by %q", got)
	}
	if got := r.serves("x.apps.test", "/"); got != "sub" {
		t.Errorf("subdomain is served by %q", got)
	}
	if got := r.servers("a"); got != "10.0.0.1:8080 10.0.0.2:8080" {
		t.Errorf("servers %q", got)
	}
	r.wantCondition("a", "True")
	routes := r.c.Routes()
	if len(routes) != 2 || routes[0].Name != "a" {
		t.Fatalf("routes %v", routes)
	}
	entry := routes[1].Status.Ingress[0]
	if entry.Host != "x.apps.test" || entry.RouterName != "mine" || entry.RouterCanonicalHostname != "c.test" || entry.WildcardPolicy != "None" {
		t.Errorf("entry %+v", entry)
	}
	if at := entry.Conditions[0].LastTransitionTime; !at.Time.Equal(r.now) {
		t.Errorf("time %v", at)
	}
	first := r.now
	r.now = r.now.Add(time.Hour)
	r.do(aRoute("a", "b.test", 0))
	if got := r.serves("a.test", "/") + " " + r.serves("b.test", "/"); got != " a" {
		t.Errorf("after a change: served by %q", got)
	}
	route, _ := r.c.Route("ns", "a")
	if entry := route.Status.Ingress[0]; entry.Host != "b.test" || !entry.Conditions[0].LastTransitionTime.Time.Equal(first) {
		t.Errorf("after a change of the host: %+v", entry)
	}
	r.do(gone(source.Route, "a"))
	if got := r.serves("b.test", "/"); got != "" {
		t.Errorf("after deletion served by %q", got)
	}
	if got := r.condition("a"); got != "no route" {
		t.Errorf("after deletion: condition %q", got)
	}
}

// TestEndpointsMakeNoTable is the fast road. Restricted addresses are left out whatever
// is not validated; an event that a slice is gone carries none.
func TestEndpointsMakeNoTable(t *testing.T) {
	r := newRig(t, Options{SkipExtendedValidation: true})
	r.do(aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1"))
	table := r.store.Load()
	for _, step := range []struct {
		event source.Event
		want  string
	}{
		{aSlice("s-1", "s", "10.0.0.3"), "10.0.0.3:8080"},
		{aSlice("s-2", "s", "10.0.0.4"), "10.0.0.3:8080 10.0.0.4:8080"},
		{aSlice("s-1", "other", "10.0.0.3"), "10.0.0.4:8080"},
		{gone(source.EndpointSlice, "s-2"), ""},
		{aSlice("s-1", "", "10.0.0.3"), ""},     // without a service
		{gone(source.EndpointSlice, "s-1"), ""}, // the last slice of the service
		{aSlice("s-1", "s", "127.0.0.1"), ""},
		{event(source.Service, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", Annotations: map[string]string{"idling.alpha.openshift.io/idled-at": "x"}},
			Spec:       corev1.ServiceSpec{ClusterIP: "172.30.0.1", Ports: []corev1.ServicePort{{Port: 80}}},
		}), "172.30.0.1:80"},
		{gone(source.Service, "s"), ""},
	} {
		r.do(step.event)
		if got := r.servers("a"); got != step.want {
			t.Errorf("servers %q, want %q", got, step.want)
		}
	}
	if r.store.Load() != table {
		t.Error("a table was published")
	}
	if notes := r.c.Notes("ns", "a"); !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "127.0.0.1 is not used") }) {
		t.Errorf("notes %q", notes)
	}
	// The route itself says again what the pool was given last.
	r.do(aSlice("s-1", "s", "10.0.0.9"))
	r.do(aRoute("a", "a2.test", 0))
	if got := r.servers("a"); got != "10.0.0.9:8080" {
		t.Errorf("servers after a change of the route: %q", got)
	}
	if r.store.Load() == table {
		t.Error("no table was published for the route")
	}
}

func TestNothingNewPublishesNothing(t *testing.T) {
	r := newRig(t, Options{})
	r.do(aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1"))
	table := r.store.Load()
	r.do(aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1"),
		event(source.ConfigMap, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}),
		aRoute("a", "a.test", 0, func(o *routev1.Route) { o.Labels = map[string]string{"a": "b"} }))
	if r.store.Load() != table {
		t.Error("a table was published")
	}
	if route, _ := r.c.Route("ns", "a"); route.Labels["a"] != "b" {
		t.Error("the route is shown as it was before")
	}
	known := r.c.state.routes.Get(source.Key{Namespace: "ns", Name: "a"})
	result := known.result
	asks := known.kept.asks
	r.do(aRoute("a", "a.test", 0, admittedBy("other", "a.test")))
	if known.result != result {
		t.Error("the route was translated again because of a status")
	}
	if route, _ := r.c.Route("ns", "a"); len(route.Status.Ingress) != 2 {
		t.Errorf("the route is shown with the status %+v", route.Status)
	}
	if unsafe.StringData(known.kept.asks) != unsafe.StringData(asks) {
		t.Error("a second copy of the spec is held")
	}
	r.do(aRoute("a", "a.test", 0, func(o *routev1.Route) {
		o.Annotations = map[string]string{"haproxy.router.openshift.io/balance": "leastconn"}
	}))
	for route := range table.Routes {
		if got := route.Pool().Algorithm(); got != balancer.LeastConn {
			t.Errorf("algorithm %v", got)
		}
	}
}

func TestConflictAndPromotion(t *testing.T) {
	r := newRig(t, Options{})
	r.do(aRoute("old", "h.test", 0), aRoute("young", "h.test", 1), aRoute("path", "h.test", 2, func(o *routev1.Route) { o.Spec.Path = "/p" }))
	r.wantCondition("old", "True")
	r.wantCondition("young", "False HostAlreadyClaimed: route old already exposes h.test and is older")
	r.wantCondition("path", "True")
	if got := r.serves("h.test", "/") + " " + r.serves("h.test", "/p"); got != "old path" {
		t.Errorf("served by %q", got)
	}
	if n, rejected := r.c.Counts(); n != 3 || rejected != 1 {
		t.Errorf("counts %d, %d", n, rejected)
	}
	r.do(gone(source.Route, "old"))
	r.wantCondition("young", "True")
	if got := r.serves("h.test", "/"); got != "young" {
		t.Errorf("served by %q", got)
	}
	if n, rejected := r.c.Counts(); n != 2 || rejected != 0 {
		t.Errorf("counts %d, %d", n, rejected)
	}
	r.do(aRoute("old", "h.test", 0))
	r.wantCondition("young", "False HostAlreadyClaimed: replaced by older route old")
	r.do(aRoute("none", "", 0), aRoute("bad", "A.test", 0), aRoute("wild", "w.test", 0, func(o *routev1.Route) { o.Spec.WildcardPolicy = "Subdomain" }))
	r.wantCondition("none", "False NoHostValue: no host value was defined for the route")
	r.wantCondition("wild", "False RouteNotAdmitted: wildcard routes are not allowed")
	if got := r.condition("bad"); !strings.HasPrefix(got, "False InvalidHost: host name validation errors: ") {
		t.Errorf("condition %q", got)
	}
}

func TestOrderDecidesWithoutTimes(t *testing.T) {
	r := newRig(t, Options{})
	first, second := aRoute("z", "h.test", 0), aRoute("a", "h.test", 0)
	first.Order, second.Order = "1", "2"
	r.do(second, first)
	r.wantCondition("z", "True")
	first.Order = "3"
	r.do(first)
	r.wantCondition("a", "True")
}

// keyPair returns a self-signed certificate and its key.
func keyPair(t testing.TB, name string) (cert, key string) {
	t.Helper()
	pair := testcert.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: time.Unix(0, 0), DNSNames: []string{name}}, nil)
	return pair.PEM(), pair.KeyPEM(t)
}

func edge(cert, key string) func(*routev1.Route) {
	return func(o *routev1.Route) {
		o.Spec.TLS = &routev1.TLSConfig{Termination: "edge", Certificate: cert, Key: key}
	}
}

func TestBadCertificateRejectsOneRoute(t *testing.T) {
	for _, skip := range []bool{false, true} {
		cert, key := keyPair(t, "h.test")
		_, other := keyPair(t, "h.test")
		r := newRig(t, Options{SkipExtendedValidation: skip})
		r.do(aRoute("good", "good.test", 0, edge(cert, key)), aRoute("bad", "bad.test", 0, edge(cert, other)), aRoute("plain", "plain.test", 0))
		r.wantCondition("good", "True")
		r.wantCondition("plain", "True")
		if got := r.condition("bad"); !strings.HasPrefix(got, "False ExtendedValidationFailed: ") || !strings.Contains(got, "private key does not match public key") {
			t.Errorf("skip %v: condition %q", skip, got)
		}
		if got := r.store.Load().Len(); got != 2 {
			t.Errorf("skip %v: %d routes", skip, got)
		}
		// The host stays with the oldest route even while it cannot be served.
		r.do(aRoute("late", "bad.test", 1))
		r.wantCondition("late", "False HostAlreadyClaimed: route bad already exposes bad.test and is older")
		r.do(aRoute("bad", "bad.test", 0, edge(cert, key)))
		r.wantCondition("bad", "True")
		if got := r.store.Load().Len(); got != 3 {
			t.Errorf("skip %v: %d routes after the repair", skip, got)
		}
		shown, _ := r.c.Route("ns", "good")
		if shown.Spec.TLS.Key != redacted || shown.Spec.TLS.Certificate != cert {
			t.Errorf("skip %v: keys are shown: %+v", skip, shown.Spec.TLS)
		}
		if r.c.state.routes.Get(source.Key{Namespace: "ns", Name: "good"}).kept.tls.Key != key {
			t.Error("the key was written over in the object")
		}
	}
}

func aSecret(name string, kind corev1.SecretType, cert, key string) source.Event {
	return event(source.Secret, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Type: kind,
		Data: map[string][]byte{"tls.crt": []byte(cert), "tls.key": []byte(key)},
	})
}

func TestExternalCertificate(t *testing.T) {
	cert1, key1 := keyPair(t, "one.test")
	cert2, key2 := keyPair(t, "two.test")
	r := newRig(t, Options{})
	route := aRoute("e", "h.test", 0, func(o *routev1.Route) {
		o.Spec.TLS = &routev1.TLSConfig{Termination: "edge", ExternalCertificate: &routev1.LocalObjectReference{Name: "c"}}
	})
	leaf := func() string {
		c := r.store.Load().SNI("h.test").Certificate
		if c == nil {
			return ""
		}
		return c.Leaf.Subject.CommonName
	}
	r.do(route)
	r.wantCondition("e", `False ExternalCertificateValidationFailed: spec.tls.externalCertificate: Not found: "secrets \"c\" not found"`)
	r.do(aSecret("c", corev1.SecretTypeOpaque, cert1, key1))
	r.wantCondition("e", `False ExternalCertificateValidationFailed: spec.tls.externalCertificate: Invalid value: "c": secret of type "kubernetes.io/tls" required`)
	r.do(aSecret("c", corev1.SecretTypeTLS, cert1, key2))
	if got := r.condition("e"); !strings.HasPrefix(got, "False ExternalCertificateValidationFailed: ") || !strings.Contains(got, "does not match") {
		t.Errorf("a torn secret at first: %q", got)
	}
	r.do(aSecret("c", corev1.SecretTypeTLS, cert1, key1))
	r.wantCondition("e", "True")
	if got := leaf(); got != "one.test" {
		t.Errorf("certificate %q", got)
	}
	r.do(aSecret("other", corev1.SecretTypeTLS, cert2, key2))
	r.do(aSecret("c", corev1.SecretTypeTLS, cert2, key1))
	r.wantCondition("e", `True ExternalCertificateValidationFailed: the last good certificate of secret "c" is served: `+
		`spec.tls.key: Invalid value: "redacted key data": tls: private key does not match public key`)
	if got, notes := leaf(), r.c.Notes("ns", "e"); got != "one.test" || !strings.Contains(notes[0], "the last good certificate") {
		t.Errorf("torn secret: certificate %q, notes %q", got, notes)
	}
	r.do(aSecret("c", corev1.SecretTypeTLS, cert2, key2))
	r.wantCondition("e", "True")
	if got := leaf(); got != "two.test" {
		t.Errorf("certificate %q", got)
	}
	if notes := r.c.Notes("ns", "e"); slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "last good") }) {
		t.Errorf("notes %q", notes)
	}
	r.do(gone(source.Secret, "c"))
	if got := r.condition("e"); !strings.HasPrefix(got, "False ExternalCertificateValidationFailed: ") || r.store.Load().Len() != 0 {
		t.Errorf("secret deleted: %q, %d routes", got, r.store.Load().Len())
	}
	r.do(gone(source.Route, "e"))
	if n := len(r.c.state.secrets); n != 1 {
		t.Errorf("%d secrets are kept, want the one that exists", n)
	}
	off := newRig(t, Options{SkipExternalCertificate: true})
	off.do(route)
	off.wantCondition("e", "True")
}

// TestIdentityOfRoutes is what outlives a table and what does not.
func TestIdentityOfRoutes(t *testing.T) {
	r := newRig(t, Options{})
	pool := func() *balancer.Pool {
		for route := range r.store.Load().Routes {
			return route.Pool()
		}
		return nil
	}
	r.do(aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1"))
	first := pool()
	r.do(aRoute("a", "a.test", 0, edge("", "")))
	if pool() != first {
		t.Error("a change of the route made another pool")
	}
	r.do(aRoute("a", "a.test", 0, func(o *routev1.Route) { o.UID = "new" }))
	if pool() == first || r.store.Load().Len() != 1 {
		t.Error("a new route of the old name has the old pool")
	}
	pools, _ := r.c.cfg.Routing.Registry.Len()
	r.c.state.sweep()
	if now, _ := r.c.cfg.Routing.Registry.Len(); pools != 2 || now != 1 {
		t.Errorf("%d pools before and %d after a sweep, want 2 and 1", pools, now)
	}
	r.do(gone(source.Route, "a"), gone(source.EndpointSlice, "s-1"))
	r.c.state.sweep()
	if pools, endpoints := r.c.cfg.Routing.Registry.Len(); pools+endpoints != 0 {
		t.Errorf("%d pools and %d endpoints are left", pools, endpoints)
	}
	s := r.c.state
	if n := s.routes.Len() + s.services.Len() + s.slices.Len() + len(s.secrets) + r.c.views.routes.Len(); n != 0 {
		t.Errorf("%d things are remembered of nothing", n)
	}
}

// TestWithoutTermination: a tls section that does not say where TLS ends is refused, or without extended validation served as the
// older router does: plain requests are, and redirected where that is the policy.
func TestWithoutTermination(t *testing.T) {
	for _, row := range []struct {
		skip          bool
		policy        routev1.InsecureEdgeTerminationPolicyType
		condition     string
		plain, secure routing.DecisionKind
	}{
		{true, "", "True", routing.Serve, routing.NoRoute},
		{true, "None", "True", routing.Serve, routing.NoRoute},
		{true, "Allow", "True", routing.Serve, routing.NoRoute},
		{true, "Redirect", "True", routing.Redirect, routing.NoRoute},
		{false, "Redirect", `False ExtendedValidationFailed`, routing.NoRoute, routing.NoRoute},
	} {
		r := newRig(t, Options{SkipExtendedValidation: row.skip})
		r.do(aRoute("r", "h.test", 1, func(o *routev1.Route) {
			o.Spec.TLS = &routev1.TLSConfig{InsecureEdgeTerminationPolicy: row.policy}
		}), aSlice("s-1", "s", "10.0.0.1"))
		if got := r.condition("r"); !strings.HasPrefix(got, row.condition) {
			t.Errorf("%+v: %s", row, got)
		}
		for secure, want := range map[bool]routing.DecisionKind{false: row.plain, true: row.secure} {
			if got := r.store.Load().Match(&routing.View{Secure: secure, Host: []byte("h.test"), Path: []byte("/")}); got.Kind != want {
				t.Errorf("%+v: over TLS %t: %v", row, secure, got.Kind)
			}
		}
	}
}

func TestConfig(t *testing.T) {
	good := Config{Store: routing.NewStore(), Routing: routing.Options{Registry: balancer.NewRegistry()}}
	for name, change := range map[string]func(*Config){
		"no store":       func(c *Config) { c.Store = nil },
		"no registry":    func(c *Config) { c.Routing.Registry = nil },
		"canonical name": func(c *Config) { c.Options.CanonicalHostname = "A_b" },
		"override":       func(c *Config) { c.Options.OverrideHostname = true },
		"domains":        func(c *Config) { c.Options.OverrideDomains = []string{"a"} },
		"destination CA": func(c *Config) { c.Options.DefaultDestinationCA = []byte("x") },
	} {
		cfg := good
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), "cannot make controller: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// run starts the owner goroutine and returns a context that ends with the test.
func run(t *testing.T, c *Controller) context.Context {
	t.Helper()
	return runFor(t, c, 30*time.Second)
}

// runFor is run with a bound of its own, for virtual time.
func runFor(t *testing.T, c *Controller, bound time.Duration) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), bound)
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return ctx
}

func TestReadyAfterAllSinks(t *testing.T) {
	store := routing.NewStore()
	c, err := New(Config{Store: store, Routing: routing.Options{Registry: balancer.NewRegistry()}})
	if err != nil {
		t.Fatal(err)
	}
	one, two := c.Sink("one"), c.Sink("two")
	ctx := run(t, c)
	one.Event(aRoute("a", "a.test", 0))
	one.Synced()
	one.Synced()
	two.Event(aRoute("b", "b.test", 0))
	select {
	case <-c.Ready():
		t.Fatal("ready before the second sink is synced")
	default:
	}
	if got := store.Load().Generation(); got != 0 {
		t.Fatalf("generation %d is published before the second sink is synced", got)
	}
	two.Synced()
	if err := c.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	<-c.Ready()
	if table := store.Load(); table.Generation() != 1 || table.Len() != 2 {
		t.Errorf("generation %d with %d routes", table.Generation(), table.Len())
	}
}

// TestBurst looks that a burst of changes becomes few tables and that none is lost.
func TestBurst(t *testing.T) {
	store := routing.NewStore()
	c, err := New(Config{Store: store, Routing: routing.Options{Registry: balancer.NewRegistry()}, HoldOff: time.Second / 4, Ceiling: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	sink := c.Sink("test")
	sink.Synced()
	ctx := run(t, c)
	<-c.Ready()
	const n = 1000
	for i := range n {
		sink.Event(aRoute(fmt.Sprint("r", i), fmt.Sprintf("h%d.test", i), i))
	}
	if err := c.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	table := store.Load()
	if table.Len() != n || table.Generation() > 10 {
		t.Errorf("%d routes after %d tables", table.Len(), table.Generation())
	}
	if got := len(c.Routes()); got != n {
		t.Errorf("%d routes are shown", got)
	}
}

func TestWaitEnds(t *testing.T) {
	r := newRig(t, Options{})
	r.sink.Event(aRoute("a", "a.test", 0))
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := r.c.Wait(ctx); err == nil {
		t.Error("Wait returns although nothing was handled")
	}
}

// TestCeiling looks that changes are not put off for longer than the ceiling.
func TestCeiling(t *testing.T) {
	c, err := New(Config{
		Store: routing.NewStore(), Routing: routing.Options{Registry: balancer.NewRegistry()},
		HoldOff: time.Hour, Ceiling: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	sink := c.Sink("test")
	sink.Synced()
	ctx := run(t, c)
	<-c.Ready()
	for i := range 3 {
		sink.Event(aRoute("a", fmt.Sprintf("h%d.test", i), 0))
		if err := c.Wait(ctx); err != nil {
			t.Fatalf("change %d is put off: %v", i, err)
		}
	}
}
