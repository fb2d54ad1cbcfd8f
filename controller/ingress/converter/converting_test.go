package converter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"turnout/controller/ingress/convert"
	"turnout/controller/source"
)

// world is an API server, and who converts in it. Everything in it happens in virtual time.
type world struct {
	*testing.T
	c     *converting
	stats *Stats

	slow      time.Duration // of making a Route
	under     int           // Routes that are being made
	most      int           // of them at a time
	mu        sync.Mutex
	routes    map[string]*routev1.Route
	addresses map[string][]networkingv1.IngressLoadBalancerIngress
	events    []string
	secrets   map[source.Key]source.Event // what is answered when a Secret is asked for; none = that there is none
	fail      error
	blind     bool // Routes that are made are not delivered
	version   int
	writes    int
}

// start returns a world in which an Ingress of the class openshift-default, or without one, is converted.
func start(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, routes: map[string]*routev1.Route{}, addresses: map[string][]networkingv1.IngressLoadBalancerIngress{}, secrets: map[source.Key]source.Event{}}
	w.c = newConverting(work{api: w, secrets: w, controller: convert.Controller, identity: "me", log: zap.NewNop(), show: func(s *Stats) { w.mu.Lock(); w.stats = s; w.mu.Unlock() }})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.c.run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	w.put(source.IngressClass, &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "openshift-default"}, Spec: networkingv1.IngressClassSpec{Controller: convert.Controller}})
	w.put(source.Service, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}})
	w.c.inbox.Synced()
	synctest.Wait()
	return w
}

// put delivers an object.
func (w *world) put(kind source.Kind, o interface {
	runtime.Object
	metav1.Object
}) {
	w.c.inbox.Event(source.Event{Kind: kind, Key: source.Key{Namespace: o.GetNamespace(), Name: o.GetName()}, Object: o})
	synctest.Wait()
}

func (w *world) remove(kind source.Kind, name string) {
	w.c.inbox.Event(source.Event{Kind: kind, Key: source.Key{Namespace: "ns", Name: name}})
	synctest.Wait()
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (w *world) ingress(name, spec string, change ...func(*networkingv1.Ingress)) {
	w.Helper()
	o := new(networkingv1.Ingress)
	if err := yaml.UnmarshalStrict([]byte("metadata: {namespace: ns, name: "+name+", uid: u-"+name+"}\nspec: "+spec), o); err != nil {
		w.Fatal(err)
	}
	for _, f := range change {
		f(o)
	}
	w.mu.Lock()
	w.version++
	o.Generation, o.ResourceVersion = int64(w.version), strconv.Itoa(w.version)
	o.Status.LoadBalancer.Ingress = w.addresses[name]
	w.mu.Unlock()
	w.put(source.Ingress, o)
}

// spec is that of an Ingress with paths of the host a.test to the Service s.
func spec(paths ...string) string {
	var all []string
	for _, p := range paths {
		all = append(all, "{pathType: Prefix, path: "+p+", backend: {service: {name: s, port: {name: http}}}}")
	}
	return "{rules: [{host: a.test, http: {paths: [" + strings.Join(all, ", ") + "]}}]}"
}

// hosts are the Routes that there are, as text.
func (w *world) hosts() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, r := range w.routes {
		all = append(all, r.Spec.Host+r.Spec.Path)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (w *world) want(hosts string) {
	w.Helper()
	if got := w.hosts(); got != hosts {
		w.Errorf("Routes %q, want %q", got, hosts)
	}
}

// said are the Events that there are and begin so.
func (w *world) said(begin string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if strings.HasPrefix(e, begin) {
			n++
		}
	}
	return n
}

func (w *world) deliver(name string, r *routev1.Route) {
	e := source.Event{Kind: source.Route, Key: source.Key{Namespace: "ns", Name: name}}
	if r != nil {
		e.Object = r.DeepCopy()
	}
	if !w.blind {
		w.c.inbox.Event(e)
	}
}

// CreateRoute implements api, as the others do.
func (w *world) CreateRoute(_ context.Context, r *routev1.Route) error {
	w.mu.Lock()
	w.under++
	w.most = max(w.most, w.under)
	w.mu.Unlock()
	<-time.After(w.slow)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.under--
	w.writes++
	switch {
	case w.fail != nil:
		return w.fail
	case w.routes[r.Name] != nil:
		return apierrors.NewAlreadyExists(routev1.Resource("routes"), r.Name)
	}
	made := r.DeepCopy()
	w.version++
	made.ResourceVersion, made.Spec.WildcardPolicy = strconv.Itoa(w.version), "None"
	w.routes[r.Name] = made
	w.deliver(r.Name, made)
	return nil
}

func (w *world) UpdateRoute(_ context.Context, r *routev1.Route) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	old := w.routes[r.Name]
	switch {
	case w.fail != nil:
		return w.fail
	case old == nil:
		return apierrors.NewNotFound(routev1.Resource("routes"), r.Name)
	case old.ResourceVersion != r.ResourceVersion:
		return apierrors.NewConflict(routev1.Resource("routes"), r.Name, errors.New("changed"))
	}
	next := r.DeepCopy()
	w.version++
	next.ResourceVersion, next.Status = strconv.Itoa(w.version), old.Status
	w.routes[r.Name] = next
	w.deliver(r.Name, next)
	return nil
}

func (w *world) DeleteRoute(_ context.Context, r *routev1.Route) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	if w.fail != nil {
		return w.fail
	}
	delete(w.routes, r.Name)
	w.deliver(r.Name, nil)
	return nil
}

func (w *world) WriteIngress(_ context.Context, o *networkingv1.Ingress, list []networkingv1.IngressLoadBalancerIngress) (*networkingv1.Ingress, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	w.addresses[o.Name] = list
	next := o.DeepCopy()
	next.Status.LoadBalancer.Ingress = list
	w.c.inbox.Event(source.Event{Kind: source.Ingress, Key: source.Key{Namespace: "ns", Name: o.Name}, Object: next})
	return next, nil
}

func (w *world) CreateEvent(_ context.Context, e *corev1.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e.InvolvedObject.Name+" "+e.Type+" "+e.Reason+": "+e.Message)
	return nil
}

// Watch implements source.Secrets, as the others do.
func (w *world) Watch(key source.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, ok := w.secrets[key]
	if !ok {
		e = source.Event{Kind: source.Secret, Key: key}
	}
	w.c.inbox.Event(e)
}

func (w *world) Again(key source.Key) { w.Watch(key) }

func (w *world) Forget(source.Key) {}

// secret has a Secret say something else.
func (w *world) secret(name, cert string, err error) {
	key := source.Key{Namespace: "ns", Name: name}
	e := source.Event{Kind: source.Secret, Key: key, Err: err}
	if cert != "" {
		e.Object = &corev1.Secret{Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": []byte(cert), "tls.key": []byte("k")}}
	}
	w.mu.Lock()
	w.secrets[key] = e
	w.mu.Unlock()
	w.c.inbox.Event(e)
	synctest.Wait()
}

// TestConversion: Routes are made, follow the Ingress and its Service, and go.
func TestConversion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.ingress("web", spec("/a", "/b"))
		w.want("a.test/a a.test/b")
		for name := range w.routes {
			if !strings.HasPrefix(name, "web-") || len(name) != len("web-")+5 {
				t.Errorf("name %s", name)
			}
		}
		w.pass(time.Minute)
		if w.writes != 2 {
			t.Errorf("%d writes", w.writes)
		}
		w.ingress("web", spec("/b", "/c"))
		w.want("a.test/b a.test/c")
		w.remove(source.Service, "s")
		w.want("")
		if n := w.said("web Normal IncompleteIngressToRouteRules: Incomplete ingress to route rules detected: Backend service \"s\" not found at index 0, path index 0; "); n != 1 {
			t.Errorf("%d Events: %q", n, w.events)
		}
		w.put(source.Service, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}})
		w.want("a.test/b a.test/c")
		w.pass(2 * time.Second)
		if s := w.stats; s.Ingresses != 1 || s.Routes != 2 || s.Created != 5 || s.Deleted != 3 || len(s.Classless) != 1 || s.Classless[0].Name != "web" || s.Failing != 0 || !s.Leading {
			t.Errorf("%+v", s)
		}
		w.remove(source.Ingress, "web")
		w.want("a.test/b a.test/c") // the API server deletes what is owned by it
		w.pass(2 * time.Second)
		if s := w.stats; len(s.Unmanaged) != 2 || s.Unmanaged[0].Host != "a.test" {
			t.Errorf("%+v", s)
		}
	})
}

// TestClassOfConversion: Ingresses of other classes are left alone with what there is of them.
func TestClassOfConversion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		class := func(name string) func(*networkingv1.Ingress) {
			return func(o *networkingv1.Ingress) { o.Spec.IngressClassName = &name }
		}
		w.ingress("foreign", spec("/f"), class("foreign"))
		w.ingress("own", spec("/o"), class("openshift-default"))
		w.want("a.test/o")
		w.ingress("own", spec("/x"), class("foreign"))
		w.want("a.test/o")
		w.put(source.IngressClass, &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}, Spec: networkingv1.IngressClassSpec{Controller: convert.Controller}})
		w.want("a.test/f a.test/x")
	})
}

// TestSecretsOfConversion: a certificate follows its Secret; one that cannot be read changes nothing and is asked for again, one that is gone takes the Route with
// it.
func TestSecretsOfConversion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.secret("tls", "one", nil)
		tls := strings.TrimSuffix(spec("/"), "}") + ", tls: [{hosts: [a.test], secretName: tls}]}"
		w.ingress("web", tls)
		certificate := func() string {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, r := range w.routes {
				return r.Spec.TLS.Certificate
			}
			return ""
		}
		if got := certificate(); got != "one" {
			t.Fatalf("certificate %q", got)
		}
		w.secret("tls", "two", nil)
		if got := certificate(); got != "two" {
			t.Errorf("certificate %q", got)
		}
		w.secret("tls", "", &source.DeniedError{Verbs: []string{"get"}})
		w.ingress("web", strings.Replace(tls, "path: /", "path: /new", 1))
		w.want("a.test/")
		if n := w.said("web Warning FailedIngressToRouteConversion: Error in converting Ingress to Route: cannot read Secret tls: "); n != 1 {
			t.Errorf("Events %q", w.events)
		}
		w.secret("tls", "three", nil)
		w.pass(10 * time.Second)
		w.want("a.test/new")
		w.secret("tls", "", nil)
		w.want("")
		w.ingress("web", spec("/"))
		w.want("a.test/")
		if len(w.c.secretOf) != 0 {
			t.Errorf("Secrets are followed that nobody names: %v", slices.Collect(maps.Keys(w.c.secretOf)))
		}
	})
}

// TestConversionWaitsToSee: what was made is not made again while it has not been seen.
func TestConversionWaitsToSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.blind = true
		w.ingress("web", spec("/"))
		w.put(source.Service, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 81}}}})
		w.pass(30 * time.Second)
		if w.writes != 1 {
			t.Errorf("%d writes before the Route was seen", w.writes)
		}
		w.mu.Lock()
		w.blind = false
		for name, r := range w.routes {
			w.deliver(name, r)
		}
		w.mu.Unlock()
		w.pass(5 * time.Second)
		w.want("a.test/")
		if w.writes != 1 {
			t.Errorf("%d writes", w.writes)
		}
	})
}

// TestConversionIsTriedAgain: with longer and longer pauses, and one Event that says why.
func TestConversionIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.fail = errors.New("the API server is away")
		w.ingress("web", spec("/"))
		w.pass(10 * time.Minute)
		if w.writes < 5 || w.writes > 20 {
			t.Errorf("%d writes in ten minutes", w.writes)
		}
		if n := w.said("web Warning FailedIngressToRouteConversion: Error in converting Ingress to Route: the API server is away"); n != 1 {
			t.Errorf("Events %q", w.events)
		}
		w.mu.Lock()
		w.fail = nil
		w.mu.Unlock()
		w.pass(10 * time.Minute)
		w.want("a.test/")
		if s := w.stats; s.Failing != 0 || s.Failed == 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestAddressesOfConversion: the canonical names of routers that admit the Routes come into the status, and go with them.
func TestAddressesOfConversion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.ingress("web", spec("/"))
		w.mu.Lock()
		for name, r := range w.routes {
			r.Status.Ingress = []routev1.RouteIngress{{RouterCanonicalHostname: "router.test", Conditions: []routev1.RouteIngressCondition{{Type: routev1.RouteAdmitted, Status: "True"}}}}
			w.deliver(name, r)
		}
		w.mu.Unlock()
		synctest.Wait()
		if got := w.addresses["web"]; len(got) != 1 || got[0].Hostname != "router.test" {
			t.Errorf("addresses %v", got)
		}
		w.ingress("web", "{rules: [{host: b.test}]}")
		w.want("")
		if got := w.addresses["web"]; len(got) != 0 {
			t.Errorf("addresses %v", got)
		}
	})
}

// TestManyConversions: a few Ingresses are written for at a time, and all of them in the end.
func TestManyConversions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.slow = time.Second
		for i := range 100 {
			w.ingress(fmt.Sprint("web-", i), spec(fmt.Sprint("/", i)), func(o *networkingv1.Ingress) { o.Annotations = map[string]string{convert.AnnotationLabels: "x"} })
		}
		w.pass(time.Minute)
		if len(w.routes) != 100 || w.writes != 100 {
			t.Errorf("%d Routes after %d writes", len(w.routes), w.writes)
		}
		if n := w.said(""); n != 100 {
			t.Errorf("%d Events", n)
		}
		if w.most != mostWriting {
			t.Errorf("%d Ingresses were written for at a time", w.most)
		}
	})
}
