package controller

import (
	"fmt"
	"reflect"
	"testing"
	"time"
	"unsafe"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"turnout/controller/source"
)

// aFullRoute is a Route in which everything is set that the router reads.
func aFullRoute(i int) *routev1.Route {
	weight, other := int32(i), int32(0)
	at := metav1.NewTime(time.Unix(1_700_000_000, 0).UTC())
	return &routev1.Route{
		TypeMeta: metav1.TypeMeta{Kind: "Route", APIVersion: "route.openshift.io/v1"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: fmt.Sprint("route-", i), UID: types.UID(fmt.Sprint("uid-", i)), ResourceVersion: fmt.Sprint(i), CreationTimestamp: at,
			Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"haproxy.router.openshift.io/balance": "leastconn"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		Spec: routev1.RouteSpec{
			Host: fmt.Sprintf("host-%d.test", i), Subdomain: "sub", Path: "/p", WildcardPolicy: routev1.WildcardPolicyNone,
			To:                routev1.RouteTargetReference{Kind: "Service", Name: "s", Weight: &weight},
			AlternateBackends: []routev1.RouteTargetReference{{Kind: "Service", Name: "t", Weight: &other}},
			Port:              &routev1.RoutePort{TargetPort: intstr.FromString("http")},
			TLS: &routev1.TLSConfig{Termination: "edge", Certificate: "c", Key: "k", CACertificate: "ca", DestinationCACertificate: "dca", InsecureEdgeTerminationPolicy: "Redirect",
				ExternalCertificate: &routev1.LocalObjectReference{Name: "secret"}},
			HTTPHeaders: &routev1.RouteHTTPHeaders{Actions: routev1.RouteHTTPHeaderActions{
				Request: []routev1.RouteHTTPHeader{{Name: "x", Action: routev1.RouteHTTPHeaderActionUnion{Type: "Set", Set: &routev1.RouteSetHTTPHeader{Value: "v"}}}},
			}},
		},
		Status: routev1.RouteStatus{Ingress: []routev1.RouteIngress{{
			Host: "h", RouterName: "r", RouterCanonicalHostname: "c", WildcardPolicy: "None",
			Conditions: []routev1.RouteIngressCondition{{Type: "Admitted", Status: "True", LastTransitionTime: &at}},
		}}},
	}
}

func keepIt(t *testing.T, k *keeper, o *routev1.Route, before *kept) (*kept, bool) {
	t.Helper()
	next, same, err := k.keep(o, before)
	if err != nil {
		t.Fatal(err)
	}
	return next, same
}

// TestKept: what is kept of a Route is all of it that is read, and the Route itself is not changed.
func TestKept(t *testing.T) {
	var k keeper
	o := aFullRoute(1)
	first, _ := keepIt(t, &k, o, nil)
	if !reflect.DeepEqual(o, aFullRoute(1)) {
		t.Error("the object was changed")
	}
	got := first.object()
	got.CreationTimestamp = metav1.NewTime(got.CreationTimestamp.UTC())
	if !reflect.DeepEqual(got, o) {
		t.Errorf("got  %+v\nwant %+v", got, o)
	}
	if first.writer != "kubectl" || first.path != "/p" || first.policy != routev1.WildcardPolicyNone {
		t.Errorf("%+v", first)
	}
}

// TestKeptTwice: a version that asks for the same shares what it asks for; any other field makes another.
func TestKeptTwice(t *testing.T) {
	var k keeper
	first, _ := keepIt(t, &k, aFullRoute(1), nil)
	again := aFullRoute(1)
	again.ResourceVersion, again.Labels = "2", nil
	again.Status.Ingress[0].Host = "other"
	next, same := keepIt(t, &k, again, first)
	if !same || unsafe.StringData(next.asks) != unsafe.StringData(first.asks) || next.tls != first.tls || next.version != "2" || next.ingress[0].Host != "other" || next.labels != "" {
		t.Errorf("same: %v; %+v after %+v", same, next, first)
	}
	for name, change := range map[string]func(*routev1.Route){
		"created":    func(o *routev1.Route) { o.CreationTimestamp = metav1.NewTime(time.Unix(1, 0)) },
		"annotation": func(o *routev1.Route) { o.Annotations["x"] = "" },
		"host":       func(o *routev1.Route) { o.Spec.Host = "" },
		"weight":     func(o *routev1.Route) { *o.Spec.To.Weight = 7 },
		"no weight":  func(o *routev1.Route) { o.Spec.AlternateBackends[0].Weight = nil },
		"key":        func(o *routev1.Route) { o.Spec.TLS.Key = "other" },
		"no TLS":     func(o *routev1.Route) { o.Spec.TLS = nil },
	} {
		o := aFullRoute(1)
		change(o)
		if next, same := keepIt(t, &k, o, first); same || !reflect.DeepEqual(next.object().Spec, o.Spec) {
			t.Errorf("%s: same %v; %+v", name, same, next.object().Spec)
		}
	}
}

// TestSharedConditions: routes that say the same have it once, and what is known of it is bounded.
func TestSharedConditions(t *testing.T) {
	var k keeper
	a, _ := keepIt(t, &k, aFullRoute(1), nil)
	b, _ := keepIt(t, &k, aFullRoute(2), nil)
	if &a.ingress[0].Conditions[0] != &b.ingress[0].Conditions[0] {
		t.Error("two routes have a copy each")
	}
	later := aFullRoute(3)
	at := metav1.NewTime(time.Unix(1_700_000_001, 0))
	later.Status.Ingress[0].Conditions[0].LastTransitionTime = &at
	if c, _ := keepIt(t, &k, later, nil); !c.ingress[0].Conditions[0].LastTransitionTime.Equal(&at) {
		t.Error("another time was taken for the same")
	}
	for i := range 2 * mostSaid {
		o := aFullRoute(i)
		o.Status.Ingress[0].Conditions[0].Message = fmt.Sprint(i)
		keepIt(t, &k, o, nil)
	}
	if len(k.said) > mostSaid {
		t.Errorf("%d conditions are known", len(k.said))
	}
}

// BenchmarkKeep is what each event of a route takes more, and what it takes to have the object again.
func BenchmarkKeep(b *testing.B) {
	var k keeper
	o := aFullRoute(1)
	before, _, err := k.keep(o, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("keep", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, same, _ := k.keep(o, before); !same {
				b.Fatal("another")
			}
		}
	})
	b.Run("object", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			before.object()
		}
	})
}

// TestOneStatus: what is said of a route is what its object says, once that is the same, and what is shown does not change with it.
func TestOneStatus(t *testing.T) {
	r := newRig(t, Options{})
	r.do(aRoute("a", "a.test", 0))
	known := r.c.state.routes.Get(source.Key{Namespace: "ns", Name: "a"})
	said := *known.status
	r.do(aRoute("a", "a.test", 0, func(o *routev1.Route) { o.Status.Ingress = []routev1.RouteIngress{said} }))
	if known.status != &known.kept.ingress[0] {
		t.Error("the status is held twice")
	}
	if known.object != nil || len(r.c.state.opened) != 0 {
		t.Error("the object is held after the batch")
	}
	r.do(aRoute("a", "a.test", 0, admittedBy("other", "a.test")))
	if known.status.Host != "a.test" || len(known.kept.ingress) != 1 {
		t.Errorf("said %+v of a route whose status is %+v", known.status, known.kept.ingress)
	}
}
