package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNoSecretsAreShown: what is seen of a route is what the router reads of it, without secrets.
func TestNoSecretsAreShown(t *testing.T) {
	r := newRig(t, Options{})
	route := aRoute("a", "a.test", 0, func(o *routev1.Route) {
		o.Annotations = map[string]string{
			"haproxy.router.openshift.io/timeout": "5s", "haproxy.router.openshift.io/rewrite-target": "/x-----BEGIN PRIVATE KEY-----hidden",
			"kubectl.kubernetes.io/last-applied-configuration": "hidden", "example.com/password": "hidden", "openshift.io/host.generated": "hidden",
		}
		o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "hidden"}}
		set := func(name, value string) routev1.RouteHTTPHeader {
			return routev1.RouteHTTPHeader{Name: name, Action: routev1.RouteHTTPHeaderActionUnion{Type: routev1.Set, Set: &routev1.RouteSetHTTPHeader{Value: value}}}
		}
		o.Spec.HTTPHeaders = &routev1.RouteHTTPHeaders{Actions: routev1.RouteHTTPHeaderActions{
			Request:  []routev1.RouteHTTPHeader{set("Authorization", "Basic hidden"), set("X-Api-Key", "hidden"), set("X-Plain", "seen")},
			Response: []routev1.RouteHTTPHeader{set("X-Session-Token", "hidden")},
		}}
	})
	r.do(route)
	text, err := json.Marshal(r.c.Routes())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"haproxy.router.openshift.io/timeout":"5s"`, `"value":"seen"`, `"value":"REDACTED"`, `"haproxy.router.openshift.io/rewrite-target":"REDACTED"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if strings.Contains(string(text), "hidden") || strings.Contains(string(text), "example.com") {
		t.Errorf("shown: %s", text)
	}
	object := route.Object.(*routev1.Route)
	if object.Spec.HTTPHeaders.Actions.Request[0].Action.Set.Value != "Basic hidden" || object.Annotations["example.com/password"] == "" {
		t.Error("the object itself was changed")
	}
}

// TestListRoutes is page by page what Routes is at once.
func TestListRoutes(t *testing.T) {
	r := newRig(t, Options{})
	for i := range 5 {
		r.do(aRoute(fmt.Sprint("r", i), fmt.Sprintf("h%d.test", i), 0))
	}
	other := aRoute("r0", "other.test", 0, func(o *routev1.Route) { o.Namespace = "another" })
	other.Key.Namespace = "another"
	r.do(other)
	var names []string
	pages := 0
	for after := ""; ; pages++ {
		list, next := r.c.ListRoutes(after, 2)
		for o := range list {
			names = append(names, o.Namespace+"/"+o.Name)
		}
		if after = next; after == "" {
			break
		}
	}
	want := []string{"another/r0", "ns/r0", "ns/r1", "ns/r2", "ns/r3", "ns/r4"}
	if !slices.Equal(names, want) || pages != 2 {
		t.Errorf("%v in %d pages", names, pages+1)
	}
	if n := len(r.c.Routes()); n != len(want) {
		t.Errorf("%d routes at once", n)
	}
}
