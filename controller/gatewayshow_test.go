package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/balancer"
	"turnout/controller/gateway"
	"turnout/controller/source"
	"turnout/internal/problem"
	"turnout/routing"
)

// lines are problems, "KIND OBJECT REASON".
func lines(list *problem.List) (texts []string) {
	all, _ := list.All("", 0)
	for p := range all {
		texts = append(texts, fmt.Sprintf("%s %s %s", p.Kind, p.Object, p.Reason))
	}
	slices.Sort(texts)
	return texts
}

// changed is an event about an HTTPRoute that is another one.
func changed(e source.Event, change func(*gatewayv1.HTTPRoute)) source.Event {
	o := e.Object.(*gatewayv1.HTTPRoute).DeepCopy()
	change(o)
	e.Object = o
	return e
}

// TestGatewayProblems: what the status of objects of the Gateway API says is wrong is in the list of problems, in its words, as long as it is so.
func TestGatewayProblems(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{})
	list := problem.NewList()
	r.c.cfg.Problems, r.c.state.cfg.Problems = list, list
	r.do(aListener(func(g *gatewayv1.Gateway) {
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{Name: "odd", Port: 90, Protocol: "WRONG"})
	}), anHTTPRoute("good"), changed(anHTTPRoute("lost"), func(o *gatewayv1.HTTPRoute) {
		section := gatewayv1.SectionName("none")
		o.Spec.ParentRefs[0].SectionName = &section
	}), changed(anHTTPRoute("half"), func(o *gatewayv1.HTTPRoute) { o.Spec.Rules[0].BackendRefs[0].Name = "missing" }))
	want := []string{"note HTTPRoute ns/half BackendNotFound", "rejected Gateway ns/gw UnsupportedProtocol", "rejected HTTPRoute ns/lost NoMatchingParent"}
	if got := lines(list); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	all, _ := list.All("", 0)
	for p := range all {
		if p.Object == "Gateway ns/gw" && p.Text != `listener odd: Protocol "WRONG" is unknown` || p.Namespace != "ns" {
			t.Errorf("%+v", p)
		}
	}
	r.do(aListener(), gone(source.HTTPRoute, "lost"), anHTTPRoute("half"))
	if got := lines(list); len(got) != 0 {
		t.Errorf("nothing is wrong any more: %q", got)
	}
	r.do(changed(anHTTPRoute("half"), func(o *gatewayv1.HTTPRoute) { o.Spec.ParentRefs[0].Name = "of another router" }))
	if _, ok := r.c.GatewayReport("HTTPRoute", "ns", "half"); ok || len(lines(list)) != 0 {
		t.Errorf("of a route that is none of ours: %t, %q", ok, lines(list))
	}
}

// TestGatewayObjectsAreListed: they stand behind Routes in lists, page by page, and in summaries, with their kinds.
func TestGatewayObjectsAreListed(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{})
	r.do(aListener(), aRoute("a", "a.test", 1), aRoute("b", "b.test", 2), changed(anHTTPRoute("a"), func(o *gatewayv1.HTTPRoute) {
		o.Spec.Hostnames = []gatewayv1.Hostname{"One.test", "two.test"}
		o.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "hidden"}
		o.Spec.Rules[0].Filters = []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: &gatewayv1.HTTPHeaderFilter{
			Set: []gatewayv1.HTTPHeader{{Name: "Authorization", Value: "Basic hidden"}, {Name: "X-Plain", Value: "seen"}},
		}}}
	}), anHTTPRoute("z"))
	var summaries []string
	for _, s := range r.c.Summaries() {
		summaries = append(summaries, fmt.Sprint(s.Kind, " ", s.Namespace, "/", s.Name, " ", s.Host, " ", s.Hosts, " ", s.Admitted))
	}
	slices.Sort(summaries)
	if want := []string{"Gateway ns/gw * [*] true", "HTTPRoute ns/a one.test [one.test two.test] true", "HTTPRoute ns/z  [] true", "Route ns/a a.test [] true", "Route ns/b b.test [] true"}; !slices.Equal(summaries, want) {
		t.Errorf("%q, want %q", summaries, want)
	}
	for limit := range 7 {
		var kinds []string
		pages := 0
		for after := ""; ; pages++ {
			list, next := r.c.ListObjects(after, limit)
			n := 0
			for o := range list {
				text, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(text), "hidden") {
					t.Errorf("shown: %s", text)
				}
				var head struct {
					Kind     string
					Metadata metav1.ObjectMeta
				}
				if err := json.Unmarshal(text, &head); err != nil {
					t.Fatal(err)
				}
				kinds = append(kinds, head.Kind+head.Metadata.Name)
				n++
			}
			if limit > 0 && n > limit {
				t.Errorf("a page of %d has %d", limit, n)
			}
			if after = next; after == "" {
				break
			}
		}
		if want := []string{"Routea", "Routeb", "HTTPRoutea", "Gatewaygw", "HTTPRoutez"}; !slices.Equal(kinds, want) || limit == 2 && pages != 2 {
			t.Errorf("by %d: %q in %d pages, want %q", limit, kinds, pages+1, want)
		}
	}
	if g, ok := r.c.GatewayReport("Gateway", "ns", "gw"); !ok || !g.Accepted || len(g.Listeners) != 1 || g.Listeners[0] != "http: HTTP, port 80, *" || len(g.Conditions) < 4 || len(g.Addresses) != 1 {
		t.Errorf("%+v", g)
	}
	if g, ok := r.c.GatewayOf("uid-a"); !ok || g.Kind != "HTTPRoute" || g.Parents[0] != "Gateway ns/gw" {
		t.Errorf("%+v", g)
	}
	if o, ok := r.c.ExplainObject("HTTPRoute", "ns", "a"); !ok || o.(*GatewayReport).Name != "a" {
		t.Errorf("%+v", o)
	}
	if o, ok := r.c.ExplainObject("", "ns", "a"); !ok || o.(*RouteReport).Host != "a.test" {
		t.Errorf("%+v", o)
	}
}

// TestGatewayPorts: ports are known by their numbers and by where they are opened, with why they are not.
func TestGatewayPorts(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{})
	r.refuse = "ns/gw:81"
	r.do(aListener(func(g *gatewayv1.Gateway) {
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{Name: "more", Port: 81, Protocol: gatewayv1.TCPProtocolType})
	}))
	ports := r.c.GatewayPorts()
	if len(ports) != 2 || ports[0].Number != 80 || ports[0].Local != ":80" || ports[0].Protocol != "HTTP" || ports[0].Addresses[0] != "127.0.0.1" ||
		ports[1].Local != "" || ports[1].Closed != "address already in use" || ports[1].Protocol != "TCP" {
		t.Errorf("%+v", ports)
	}
	if r.do(gone(source.Gateway, "gw")); len(r.c.GatewayPorts()) != 0 {
		t.Errorf("%+v", r.c.GatewayPorts())
	}
}

// TestGatewayClaims: the Gateway and the routes that want a host of it, each with what is wrong.
func TestGatewayClaims(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{})
	r.do(aListener(), anHTTPRoute("all"), changed(anHTTPRoute("one"), func(o *gatewayv1.HTTPRoute) { o.Spec.Hostnames = []gatewayv1.Hostname{"*.a.test"} }),
		changed(anHTTPRoute("other"), func(o *gatewayv1.HTTPRoute) { o.Spec.Hostnames = []gatewayv1.Hostname{"b.test"} }),
		changed(anHTTPRoute("lost"), func(o *gatewayv1.HTTPRoute) {
			section := gatewayv1.SectionName("none")
			o.Spec.ParentRefs[0].SectionName, o.Spec.Hostnames = &section, []gatewayv1.Hostname{"x.a.test"}
		}))
	var got []string
	for _, c := range r.c.GatewayClaims(source.Key{Namespace: "ns", Name: "gw"}, "x.a.test") {
		text := c.Kind + " " + c.Name
		for _, condition := range c.Conditions {
			text += " " + condition.Reason
		}
		got = append(got, text)
	}
	if want := []string{"Gateway gw", "HTTPRoute all", "HTTPRoute lost NoMatchingParent", "HTTPRoute one"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestGatewayPreview: what a change would do is found out with all that the Gateway API needs, Secrets, grants and ConfigMaps among it.
func TestGatewayPreview(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{})
	r.do(aListener(), anHTTPRoute("r"))
	c, table, err := offline(r.c.cfg.Options, r.c.cfg.Routing, nil, r.c.state.objects())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(c.GatewayPorts()), fmt.Sprint(r.c.GatewayPorts()); got != want || table.Len() != r.store.Load().Len() {
		t.Errorf("%s and %d rules, want %s and %d", got, table.Len(), want, r.store.Load().Len())
	}
}

// BenchmarkGatewaySummaries lists 10,000 HTTPRoutes.
func BenchmarkGatewaySummaries(b *testing.B) {
	c, err := New(Config{Store: routing.NewStore(), Routing: routing.Options{Registry: balancer.NewRegistry()}, Clock: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	v := &c.views.gateways
	status := &gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{{ParentRef: gatewayv1.ParentReference{Name: "gw"}, Conditions: []metav1.Condition{
		{Type: "Accepted", Status: "True", Reason: "Accepted"}, {Type: "ResolvedRefs", Status: "True", Reason: "ResolvedRefs"},
	}}}}
	for i := range 10_000 {
		e := anHTTPRoute(fmt.Sprint("r", i))
		v.set(gateway.Ref{Kind: "HTTPRoute", Key: e.Key}, e.Object, status, "")
	}
	for b.Loop() {
		if n := len(c.Summaries()); n != 10_000 {
			b.Fatal(n)
		}
	}
}
