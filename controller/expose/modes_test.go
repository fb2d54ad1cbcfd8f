package expose

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/endpoints"
	"turnout/controller/gateway/parameters"
	"turnout/controller/owned"
	"turnout/controller/source"
)

// apart returns a Gateway of ns with port 80 and pods of its own.
func apart(name string) Gateway {
	g := aGateway(name, []int32{80})
	g.Parameters = &parameters.Parameters{Deployment: true}
	return g
}

// find returns the body of the object of a name among those that are wanted, the zero value if there is none.
func find[T any](w *Wanted, namespace, name string) (found T) {
	for _, t := range w.Others {
		if body, ok := t.body.(T); ok && t.Namespace == namespace && t.Name == name {
			found = body
		}
	}
	return found
}

// TestOwnPods: a Gateway with pods of its own has a Deployment that serves it and nothing else, with the labels and annotations that it gives, under an account that
// reads its Secrets and ConfigMaps and no others; its Service selects these pods.
func TestOwnPods(t *testing.T) {
	g := apart("a")
	g.Object.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{
		Labels:      map[gatewayv1.LabelKey]gatewayv1.LabelValue{"team": "shop", labelOfController: "of another"},
		Annotations: map[gatewayv1.AnnotationKey]gatewayv1.AnnotationValue{"note": "x"},
	}
	g.Secrets = map[source.Key]struct{}{{Namespace: "ns", Name: "b"}: {}, {Namespace: "ns", Name: "a"}: {}, {Namespace: "far", Name: "c"}: {}}
	g.ConfigMaps = map[source.Key]struct{}{{Namespace: "ns", Name: "ca"}: {}}
	three := int32(3)
	g.Parameters.Replicas, g.Parameters.ServiceType, g.Parameters.Env = &three, corev1.ServiceTypeClusterIP, []corev1.EnvVar{{Name: "ROUTER_X", Value: "1"}}
	p := newPorts()
	p.image = "turnout:1"
	w := planned(p, []Gateway{g}, nil, "10.0.0.1")
	if len(w.Slices) != 0 || len(w.Services) != 1 || w.Services[0].Spec.Type != corev1.ServiceTypeClusterIP {
		t.Fatalf("%+v", w)
	}
	d := find[*appsv1.Deployment](&w, "ns", "a-turnout")
	account := find[*corev1.ServiceAccount](&w, "ns", "a-turnout")
	if d == nil || account == nil {
		t.Fatalf("%+v", w.Others)
	}
	pod := d.Spec.Template
	for what, m := range map[string]metav1.ObjectMeta{"pod": pod.ObjectMeta, "Service": w.Services[0].ObjectMeta, "ServiceAccount": account.ObjectMeta, "Deployment": d.ObjectMeta} {
		if m.Labels["team"] != "shop" || m.Annotations["note"] != "x" || m.Labels[gatewayv1.GatewayNameLabelKey] != "a" || m.Labels[labelOfController] != labelOf(controllerName) {
			t.Errorf("%s: %+v", what, m)
		}
		if what != "pod" && (len(m.OwnerReferences) != 1 || m.OwnerReferences[0].UID != "uid") {
			t.Errorf("%s is owned by %+v", what, m.OwnerReferences)
		}
	}
	for k, v := range w.Services[0].Spec.Selector {
		if pod.Labels[k] != v || d.Spec.Selector.MatchLabels[k] != v {
			t.Errorf("the Service selects %s=%s", k, v)
		}
	}
	c := pod.Spec.Containers[0]
	var env []string
	for _, e := range c.Env {
		env = append(env, e.Name+"="+e.Value)
	}
	if want := []string{"TURNOUT_GATEWAY_API=true", "TURNOUT_GATEWAY=ns/a", "TURNOUT_GATEWAY_CONTROLLER=" + controllerName, "ROUTER_X=1"}; !slices.Equal(env, want) {
		t.Errorf("settings %q", env)
	}
	if *d.Spec.Replicas != 3 || c.Image != "turnout:1" || pod.Spec.ServiceAccountName != "a-turnout" || d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntVal != 0 || !*pod.Spec.SecurityContext.RunAsNonRoot {
		t.Errorf("%+v", d.Spec)
	}
	role := find[*rbacv1.Role](&w, "ns", "turnout-gateway:ns:a")
	if want := []rbacv1.PolicyRule{
		{APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"gateways"}, ResourceNames: []string{"a"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"a", "b"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"ca"}, Verbs: []string{"get", "list", "watch"}},
	}; role == nil || !reflect.DeepEqual(role.Rules, want) || len(role.OwnerReferences) != 1 {
		t.Errorf("role %+v", role)
	}
	far := find[*rbacv1.RoleBinding](&w, "far", "turnout-gateway:ns:a")
	subject := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "ns", Name: "a-turnout"}
	if far == nil || len(far.OwnerReferences) != 0 || far.Subjects[0] != subject || find[*rbacv1.Role](&w, "far", "turnout-gateway:ns:a").Rules[0].ResourceNames[0] != "c" {
		t.Errorf("binding of another namespace: %+v", far)
	}
	if all := find[*rbacv1.ClusterRoleBinding](&w, "", clusterRole); all == nil || !reflect.DeepEqual(all.Subjects, []rbacv1.Subject{subject}) {
		t.Errorf("%+v", all)
	}
	if body, err := json.Marshal(d); err != nil || strings.Contains(string(body), `"replicas":0`) {
		t.Errorf("%s, %v", body, err)
	}
	// Who scales it decides, unless its parameters do; an image of the parameters counts before that of the router.
	g.Parameters = &parameters.Parameters{Deployment: true, Image: "other:2"}
	w = planned(p, []Gateway{g}, nil)
	if d := find[*appsv1.Deployment](&w, "ns", "a-turnout"); d.Spec.Replicas != nil || d.Spec.Template.Spec.Containers[0].Image != "other:2" {
		t.Errorf("%+v", d.Spec)
	}
}

// TestNames: names are those of GEP-1762, and no two Gateways have one.
func TestNames(t *testing.T) {
	long := "example-very-very-very-very-very-very-very-very-very-long-gateway-name"
	if got, want := gatewayLabel(long), "example-very-very-ve-65cb6f84bc9e50270d0a6c2f845fd98c6fe8d89f"; got != want {
		t.Errorf("label %s, want %s", got, want)
	}
	seen := make(map[string]bool)
	for _, name := range []string{"a", "a.b", "a-b", "1", "g1", long, long + "x", strings.Repeat("a", 62), strings.Repeat("a", 63)} {
		got := ObjectName(aGateway(name, nil).Object)
		if len(got) > 63 || strings.Contains(got, ".") || got[0] < 'a' || seen[got] {
			t.Errorf("%s: %s", name, got)
		}
		seen[got] = true
	}
}

// cluster is what has been written of the objects of one Gateway, and the pods that there are.
type cluster struct {
	t        *testing.T
	g        Gateway
	services map[source.Key]*corev1.Service
	ours     *discoveryv1.EndpointSlice // nil = there is none
	running  bool                       // there is a Deployment
	ready    bool                       // with a pod that is ready
	at       time.Time
	ports    *Ports
}

// step has the Gateway's objects be as they are wanted, some time later, and says what serves it. It fails if nobody does who listens.
func (c *cluster) step(later time.Duration) string {
	c.t.Helper()
	c.at = c.at.Add(later)
	own := 0
	if s := c.services[source.Key{Namespace: "ns", Name: "a-turnout"}]; s != nil && s.Spec.Selector != nil && c.running && c.ready {
		own = 1
	}
	c.g.Led = Led{Pods: own, Shared: c.ours != nil}
	open := len(ByServices([]Gateway{c.g}, c.services, false).Sockets) > 0
	w := c.ports.Plan(Now{Gateways: []Gateway{c.g}, Services: c.services, Pods: []string{"10.0.0.1"}, Running: map[source.Key]bool{c.g.key(): c.running}}, c.at)
	c.services, c.ours = made(w), nil
	if len(w.Slices) > 0 {
		c.ours = w.Slices[0]
	}
	deployment := owned.Object{Resource: owned.Deployments, Namespace: "ns", Name: "a-turnout"}
	c.running = find[*appsv1.Deployment](&w, "ns", "a-turnout") != nil || c.running && w.Keeps(deployment)
	var by []string
	switch {
	case c.ours != nil && len(c.ours.Endpoints) > 0 && open:
		by = append(by, "shared")
	case c.ours != nil && len(c.ours.Endpoints) > 0:
		by = append(by, "closed")
	case open:
		by = append(by, "open")
	}
	if own > 0 && c.running {
		by = append(by, "own")
	}
	return strings.Join(by, "+")
}

// TestTurns: a Gateway that goes over to pods of its own, and back, is served at each step; those that are left serve for a while.
func TestTurns(t *testing.T) {
	c := &cluster{t: t, g: aGateway("a", []int32{80}), at: time.Unix(0, 0), ports: newPorts()}
	c.ports.image = "turnout:1"
	local := func() int32 {
		return c.services[source.Key{Namespace: "ns", Name: "a-turnout"}].Spec.Ports[0].TargetPort.IntVal
	}
	c.step(0)
	first := local()
	for i, s := range []struct {
		apart, ready bool
		later        time.Duration
		want         string
	}{
		{false, false, 0, "shared"},
		{true, false, 0, "shared"}, // its Deployment is being made
		{true, false, time.Hour, "shared"},
		{true, true, 0, "open+own"}, // the first pod is ready: EndpointSlices are emptied
		{true, true, leaving - 1, "open+own"},
		{true, true, 1, "open+own"},
		{true, true, 0, "own"},
		{true, true, time.Hour, "own"},
		{false, true, 0, "open+own"}, // pods of the router open ports
		{false, true, opening - 1, "open+own"},
		{false, true, 1, "shared+own"},
		{false, true, leaving - 1, "shared+own"},
		{false, true, 1, "shared"},
		{false, true, 0, "shared"},
		{true, false, 0, "shared"}, // and back, twice changing its mind
		{true, true, 0, "open+own"},
		{false, true, 1, "shared+own"}, // whose ports are open still
		{true, true, 1, "open+own"},
		{true, true, leaving, "open+own"},
		{true, true, 0, "own"},
	} {
		c.g.Parameters, c.ready = &parameters.Parameters{Deployment: s.apart}, s.ready
		if got := c.step(s.later); got != s.want || local() != first {
			t.Fatalf("step %d: %s at port %d, want %s at %d", i, got, local(), s.want, first)
		}
	}
}

// TestProgrammedByOwnPods: a Gateway with pods of its own is programmed when its Service leads to one that is ready, or, while it goes over, to those of the router; what
// cannot be written is said.
func TestProgrammedByOwnPods(t *testing.T) {
	for name, c := range map[string]struct {
		led     Led
		refused string
		reason  gatewayv1.GatewayConditionReason
		message string
	}{
		"no pod":     {Led{}, "", gatewayv1.GatewayReasonPending, "Service ns/a-turnout leads to no pod of Deployment a-turnout that is ready yet"},
		"a pod":      {Led{Pods: 1}, "", "", ""},
		"goes over":  {Led{Shared: true}, "", "", "The router's pods serve the Gateway until Service ns/a-turnout leads to a pod of Deployment a-turnout that is ready"},
		"in the way": {Led{}, "Deployment ns/a-turnout is not the Gateway's", gatewayv1.GatewayReasonNoResources, "Deployment ns/a-turnout is not the Gateway's"},
	} {
		g := apart("a")
		p := newPorts()
		p.image = "turnout:1"
		there := made(planned(p, []Gateway{g}, nil))
		g.Led, g.Refused = c.led, c.refused
		places := ByServices([]Gateway{g}, there, false)
		if a := places.Assigned[g.key()]; a.Reason != c.reason || a.Message != c.message {
			t.Errorf("%s: %s %s", name, a.Reason, a.Message)
		}
		if (len(places.Sockets) > 0) != c.led.Shared {
			t.Errorf("%s: pods of the router have %d ports open", name, len(places.Sockets))
		}
		if len(ByServices([]Gateway{g}, there, true).Sockets) != 1 {
			t.Errorf("%s: its own pods do not have its port open", name)
		}
	}
}

// TestWhatStays: parameters that cannot be used, no port that can be served, or an image that is not known change nothing of what there is, and nobody else gets its ports.
func TestWhatStays(t *testing.T) {
	p := newPorts()
	p.image = "turnout:1"
	there := made(planned(p, []Gateway{apart("a")}, nil))
	for name, change := range map[string]func(*Gateway, *Ports){
		"parameters": func(g *Gateway, _ *Ports) { g.Parameters = nil },
		"ports":      func(g *Gateway, _ *Ports) { g.Ports = nil },
		"image":      func(_ *Gateway, p *Ports) { p.image = "" },
	} {
		g, next := apart("a"), newPorts()
		next.image = "turnout:1"
		change(&g, next)
		w := next.Plan(Now{Gateways: []Gateway{g, aGateway("b", []int32{80})}, Services: there, Running: map[source.Key]bool{g.key(): true}}, time.Unix(0, 0))
		if len(w.Services) != 1 || w.Services[0].Name != "b-turnout" || w.Services[0].Spec.Ports[0].TargetPort.IntVal == firstLocal {
			t.Errorf("%s: %+v", name, w.Services)
		}
		for _, o := range []owned.Object{
			{Resource: owned.Services, Namespace: "ns", Name: "a-turnout"}, {Resource: owned.Services, Namespace: "ns", Name: "a-turnout-1"}, {Resource: owned.Slices, Namespace: "ns", Name: "a-turnout-ipv4"},
			{Resource: owned.Deployments, Namespace: "ns", Name: "a-turnout"}, {Resource: owned.Roles, Namespace: "far", Name: "turnout-gateway:ns:a"},
		} {
			if !w.Keeps(o) {
				t.Errorf("%s: %s goes", name, o)
			}
		}
		if w.Keeps(owned.Object{Resource: owned.Deployments, Namespace: "other", Name: "a-turnout"}) {
			t.Errorf("%s: what is another's stays", name)
		}
		if all := find[*rbacv1.ClusterRoleBinding](&w, "", clusterRole); all == nil || len(all.Subjects) != 1 {
			t.Errorf("%s: its pods may read nothing any more", name)
		}
		if (w.Refused[g.key()] != "") != (name == "image") {
			t.Errorf("%s: %q", name, w.Refused[g.key()])
		}
	}
}

// TestDeploymentsRunOut: of all Gateways, and of those of a namespace, so many get pods of their own; those that have some keep them.
func TestDeploymentsRunOut(t *testing.T) {
	p, crowded := newPorts(), 0
	p.image, p.crowded = "turnout:1", func() { crowded++ }
	var list []Gateway
	for i := range mostRunsOne + 1 {
		list = append(list, apart(fmt.Sprintf("g%03d", i)))
	}
	last := list[mostRunsOne]
	planned(p, []Gateway{last}, nil)
	w := planned(p, list, nil)
	if _, has := p.run[last.key()]; !has || len(p.run) != mostRunsOne || crowded != 1 || w.Refused[list[mostRunsOne-1].key()] == "" {
		t.Errorf("%d have pods, %d do not, the first is among them: %t", len(p.run), crowded, has)
	}
	for i := range mostRuns {
		g := apart("g")
		g.Object.Namespace = fmt.Sprintf("n%d", i)
		list = append(list, g)
	}
	if planned(p, list, nil); len(p.run) != mostRuns {
		t.Errorf("%d have pods", len(p.run))
	}
}

// TestLedBy: of the EndpointSlices of a Service those of ours lead to pods of the router, the others to its own; a pod counts once, when it is ready.
func TestLedBy(t *testing.T) {
	key := source.Key{Namespace: "ns", Name: "a-turnout"}
	no := false
	slice := func(name string, pods ...discoveryv1.Endpoint) endpoints.Slice {
		packed, err := endpoints.Pack(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Endpoints: pods})
		if err != nil {
			t.Fatal(err)
		}
		return packed
	}
	pod := func(name string, ready *bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: name}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
	}
	for _, c := range []struct {
		slices []endpoints.Slice
		want   Led
	}{
		{nil, Led{}},
		{[]endpoints.Slice{slice("a-turnout-ipv4")}, Led{Shared: true}},
		{[]endpoints.Slice{slice("a-turnout-x7k2p", pod("a", nil), pod("b", &no)), slice("a-turnout-9dk2p", pod("a", nil))}, Led{Pods: 1}},
		{[]endpoints.Slice{slice("a-turnout-ipv6"), slice("a-turnout-x7k2p", pod("a", nil), pod("b", nil))}, Led{Pods: 2, Shared: true}},
	} {
		if got := LedBy(key, c.slices); got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}
