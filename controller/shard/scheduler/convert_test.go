package scheduler

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"turnout/controller/shard"
	"turnout/controller/shard/api"
)

func aRoute() *routev1.Route {
	return &routev1.Route{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "r", UID: "u", ResourceVersion: "17", CreationTimestamp: metav1.Unix(5, 0),
			Labels: map[string]string{"color": "red"}, Annotations: map[string]string{"other": "x"},
		},
		Spec: routev1.RouteSpec{Host: "r.test", Path: "/p", WildcardPolicy: routev1.WildcardPolicySubdomain, TLS: &routev1.TLSConfig{Termination: routev1.TLSTerminationPassthrough}},
		Status: routev1.RouteStatus{Ingress: []routev1.RouteIngress{
			{RouterName: "a", Conditions: []routev1.RouteIngressCondition{{Type: routev1.RouteAdmitted, Status: corev1.ConditionTrue}}},
			{RouterName: "b", Conditions: []routev1.RouteIngressCondition{{Type: routev1.RouteAdmitted, Status: corev1.ConditionFalse}}},
		}},
	}
}

func TestRouteOf(t *testing.T) {
	r, seen, admitted := routeOf(aRoute())
	want := shard.Route{
		Namespace: "ns", Name: "r", UID: "u", Host: "r.test", Path: "/p", Created: 5, Labels: shard.MakeLabels(map[string]string{"color": "red"}),
		Wildcard: true, TLS: true, Passthrough: true,
	}
	if r != want {
		t.Errorf("%+v, want %+v", r, want)
	}
	if !reflect.DeepEqual(seen, shard.View{Version: 17}) || !reflect.DeepEqual(admitted, []string{"a"}) {
		t.Errorf("says %+v, admitted by %v", seen, admitted)
	}
	generated := aRoute()
	generated.Annotations[api.HostGenerated] = "true"
	if r, _, _ = routeOf(generated); r.Host != "" {
		t.Errorf("a host that the API server has made up is asked for: %q", r.Host)
	}
}

// merge is what an API server makes of an object and a merge patch (RFC 7396).
func merge(object, patch map[string]any) {
	for key, value := range patch {
		if value == nil {
			delete(object, key)
		} else if inner, ok := value.(map[string]any); ok {
			to, ok := object[key].(map[string]any)
			if !ok {
				to = make(map[string]any)
				object[key] = to
			}
			merge(to, inner)
		} else {
			object[key] = value
		}
	}
}

// TestRoutePatch: what a patch has written is read again, whatever was there, and nothing of others is lost.
func TestRoutePatch(t *testing.T) {
	views := []shard.View{
		{},
		{Phase: shard.RouteNew, Message: "no router selects the route"},
		{Phase: shard.RouteScheduled, DNS: "r.test", Target: "ns-r.a.test", Routers: []string{"a", "b"}, Bound: []string{"a", "b", "c"}},
		{Phase: shard.RouteScheduled, DNS: "ns-r.a.test", Target: "ns-r.a.test", Routers: []string{"b"}, Bound: []string{"b"}},
	}
	for _, before := range views {
		for _, after := range views {
			o := aRoute()
			for _, view := range []shard.View{before, after} {
				patch, err := json.Marshal(routePatch(&shard.Action{RouteUID: "u", View: view}, boundLabels(o.Labels)))
				if err != nil {
					t.Fatal(err)
				}
				var whole, change map[string]any
				text, err := json.Marshal(o)
				if err = errors.Join(err, json.Unmarshal(text, &whole), json.Unmarshal(patch, &change)); err != nil {
					t.Fatal(err)
				}
				merge(whole, change)
				text, err = json.Marshal(whole)
				o = new(routev1.Route)
				if err = errors.Join(err, json.Unmarshal(text, o)); err != nil {
					t.Fatal(err)
				}
			}
			seen := viewOf(o)
			if seen.Version = 0; !reflect.DeepEqual(seen, after) {
				t.Errorf("%+v and then %+v reads %+v", before, after, seen)
			}
			if o.Labels["color"] != "red" || o.Annotations["other"] != "x" || len(plainLabels(o.Labels)) != 1 {
				t.Errorf("labels %v, annotations %v", o.Labels, o.Annotations)
			}
		}
	}
}

func TestRouterOf(t *testing.T) {
	o := &api.Router{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "9", CreationTimestamp: metav1.Unix(5, 0), Labels: map[string]string{"zone": "1"}},
		Spec: api.RouterSpec{
			DNS: &api.RouterDNS{Domain: "a.test", TTLSeconds: 30}, Capacity: &api.RouterCapacity{Routes: 10, RequestsPerSecond: 20},
			Taints: []api.RouterTaint{{Key: "x", Effect: api.TaintNoSchedule}, {Key: "y", Effect: api.TaintDrain}}, Addresses: []string{"192.0.2.1"},
		},
		Status: api.RouterStatus{
			Phase: api.RouterReady, ReadyReplicas: 1, RoutesBound: 2, Moving: 3, Addresses: []string{"192.0.2.9", "192.0.2.1"},
			Conditions: []metav1.Condition{{Type: api.ConditionDeployed}, {Type: api.ConditionValid, Status: metav1.ConditionTrue, Reason: "v"}, {Type: api.ConditionAvailable, Reason: "a"}},
			Replicas:   []api.ReplicaStatus{{Name: "p", Ready: true, Addresses: []string{"192.0.2.9"}, ObservedBindings: "12", RequestsPerSecond: 4, Leaving: []string{"ns/b"}, Renewed: metav1.NewMicroTime(time.Unix(7, 0))}},
		},
	}
	r, seen := routerOf(o)
	want := shard.Router{
		Name: "a", UID: "u", Created: 5, Labels: shard.MakeLabels(map[string]string{"zone": "1"}), Domain: "a.test", TTL: 30 * time.Second, Capacity: 10, RequestsCapacity: 20,
		Taints: []shard.Effect{shard.NoSchedule, shard.Drain}, Addresses: []string{"192.0.2.1"},
		Replicas: []shard.Replica{{Name: "p", Ready: true, Addresses: []string{"192.0.2.9"}, Observed: 12, RequestsPerSecond: 4, Renewed: time.Unix(7, 0), Leaving: []shard.Key{{Namespace: "ns", Name: "b"}}}},
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("%+v, want %+v", r, want)
	}
	said := shard.RouterStatus{
		Phase: shard.RouterReady, ReadyReplicas: 1, RoutesBound: 2, Moving: 3, Addresses: []string{"192.0.2.1", "192.0.2.9"}, Version: 9,
		Conditions: []shard.Condition{{Type: api.ConditionAvailable, Reason: "a"}, {Type: api.ConditionValid, True: true, Reason: "v"}},
	}
	if !reflect.DeepEqual(seen, said) {
		t.Errorf("says %+v, want %+v", seen, said)
	}
}

func TestOutcome(t *testing.T) {
	kind := schema.GroupResource{Resource: "routebindings"}
	other := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "metadata.uid"}}}}}
	for name, c := range map[string]struct {
		err  error
		want shard.Outcome
	}{
		"written":           {nil, shard.Written},
		"another version":   {apierrors.NewConflict(kind, "b", errors.New("x")), shard.Conflict},
		"there already":     {apierrors.NewAlreadyExists(kind, "b"), shard.Conflict},
		"another object":    {other, shard.Conflict},
		"gone":              {apierrors.NewNotFound(kind, "b"), shard.NotFound},
		"not allowed":       {apierrors.NewForbidden(kind, "b", errors.New("x")), shard.Refused},
		"invalid":           {apierrors.NewInvalid(schema.GroupKind{}, "b", nil), shard.Refused},
		"too many":          {apierrors.NewTooManyRequests("x", 1), shard.Failed},
		"an outage":         {errors.New("connection refused"), shard.Failed},
		"an internal error": {apierrors.NewInternalError(errors.New("x")), shard.Failed},
	} {
		if got := outcome("5", c.err); got.Outcome != c.want {
			t.Errorf("%s: %s, want %s", name, got.Outcome, c.want)
		}
	}
	if got := outcome("5", nil).Version; got != 5 {
		t.Errorf("version %d", got)
	}
}

// TestConditionsKeepTheirTime: since when something is so changes only with what is so.
func TestConditionsKeepTheirTime(t *testing.T) {
	long := metav1.Unix(100, 0)
	seen := &api.Router{Status: api.RouterStatus{Conditions: []metav1.Condition{{Type: api.ConditionValid, Status: metav1.ConditionTrue, Reason: "Before", LastTransitionTime: long}}}}
	if c := condition(shard.Condition{Type: api.ConditionValid, True: true, Reason: "Now"}, seen); !c.LastTransitionTime.Equal(&long) || c.Reason != "Now" {
		t.Errorf("%+v", c)
	}
	if c := condition(shard.Condition{Type: api.ConditionValid}, seen); c.LastTransitionTime.Equal(&long) || c.Status != metav1.ConditionFalse {
		t.Errorf("%+v", c)
	}
}

// TestStrategiesOfSpecs: each kind can be made, and what is missing or unknown is said.
func TestStrategiesOfSpecs(t *testing.T) {
	s := &Scheduler{cfg: Config{Strategies: Strategies()}}
	for name, c := range map[string]struct {
		spec api.RouteSchedulerSpec
		err  string
	}{
		"nothing said": {api.RouteSchedulerSpec{}, ""},
		"spread":       {api.RouteSchedulerSpec{Strategy: api.StrategySpread, Routers: 3}, ""},
		"hash":         {api.RouteSchedulerSpec{Strategy: api.StrategyConsistentHash}, ""},
		"labels":       {api.RouteSchedulerSpec{Strategy: api.StrategyLabel}, ""},
		"routes":       {api.RouteSchedulerSpec{Strategy: api.StrategyLeastRoutes}, ""},
		"requests":     {api.RouteSchedulerSpec{Strategy: api.StrategyLeastRequests}, ""},
		"CEL":          {api.RouteSchedulerSpec{Strategy: api.StrategyCEL, CEL: &api.CELStrategy{Expression: "-router.routes"}}, ""},
		"no CEL":       {api.RouteSchedulerSpec{Strategy: api.StrategyCEL}, "spec.cel is missing: strategy CEL needs an expression"},
		"webhook":      {api.RouteSchedulerSpec{Strategy: api.StrategyWebhook, Webhook: &api.WebhookStrategy{URL: "https://chooser.test/"}}, ""},
		"no webhook":   {api.RouteSchedulerSpec{Strategy: api.StrategyWebhook}, "spec.webhook is missing: strategy Webhook needs a URL"},
		"unknown": {api.RouteSchedulerSpec{Strategy: "Best"},
			"spec.strategy Best is not one of this scheduler; allowed: CEL, ConsistentHash, Label, LeastRequests, LeastRoutes, RoundRobin, Spread, Webhook"},
	} {
		made, err := s.strategyOf(&c.spec)
		if got := errorText(err); got != c.err || (made == nil) != (c.err != "") {
			t.Errorf("%s: %v, %q, want %q", name, made, got, c.err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestSilentReplicas: the entry of a replica that has said nothing for very long is removed, and only if it still says the same.
func TestSilentReplicas(t *testing.T) {
	renewed := metav1.NewMicroTime(time.Unix(7, 0))
	o := &api.Router{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: api.RouterStatus{Replicas: []api.ReplicaStatus{{Name: "alive", Renewed: renewed}, {Name: "dead", Renewed: renewed}}}}
	l := &leader{silence: map[string]map[string]*silent{}, routers: map[string]*api.Router{"a": o}}
	begin := time.Unix(1000, 0)
	l.listen(o, begin)
	later := o.DeepCopy()
	later.Status.Replicas[0].Renewed = metav1.NewMicroTime(time.Unix(8, 0))
	l.listen(later, begin.Add(time.Hour))
	if s := l.silence["a"]; !s["dead"].heard.Equal(begin) || !s["alive"].heard.Equal(begin.Add(time.Hour)) {
		t.Errorf("heard of dead at %s, of alive at %s", s["dead"].heard, s["alive"].heard)
	}
	want := `[{"op":"test","path":"/status/replicas/1/name","value":"dead"},{"op":"test","path":"/status/replicas/1/renewed","value":"1970-01-01T00:00:07.000000Z"},{"op":"remove","path":"/status/replicas/1"}]`
	if got := string(removal(o, "dead")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if removal(o, "unknown") != nil || removal(nil, "dead") != nil {
		t.Error("what is not there is removed")
	}
	o.Status.Replicas = o.Status.Replicas[:1]
	if l.listen(o, begin); l.silence["a"]["dead"] != nil {
		t.Error("a replica that is gone is remembered")
	}
}
