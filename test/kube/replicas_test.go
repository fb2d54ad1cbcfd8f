package kube

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/test/kube/internal/router"
)

// quiet watches the routes of a namespace for a while, in which nothing may change.
func (n namespace) quiet(d time.Duration) {
	n.Helper()
	if got := n.writes(d); len(got) > 0 {
		n.Errorf("routes change although nobody changes them: %v", got)
	}
}

// writes counts the changes of routes within d, by route.
func (n namespace) writes(d time.Duration) map[string]int {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), d)
	defer cancel()
	client := shared.routes.RouteV1().Routes(n.name)
	list := must[*routev1.RouteList](n)(client.List(ctx, metav1.ListOptions{}))
	watcher, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		n.Fatal(err)
	}
	defer watcher.Stop()
	changed := map[string]int{}
	for event := range watcher.ResultChan() {
		if route, ok := event.Object.(*routev1.Route); ok {
			changed[route.Name]++
		}
	}
	if ctx.Err() == nil {
		n.Fatal("the watch ended early")
	}
	return changed
}

// TestReplicas: three replicas with one name write each entry once, and then nothing.
func TestReplicas(t *testing.T) {
	replicas := make([]*router.Router, 3)
	for i := range replicas {
		replicas[i] = newRouter(t, "default")
	}
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	const count = 50
	for i := range count {
		n.create(newRoute(fmt.Sprintf("r%d", i), fmt.Sprintf("r%d.replicas.test", i)))
	}
	// Times are whole seconds: of two routes made within one, that with the smaller UID wins.
	winner, loser := n.get("r0"), n.create(newRoute("second", "r0.replicas.test"))
	if winner.CreationTimestamp.Equal(&loser.CreationTimestamp) && loser.UID < winner.UID {
		winner, loser = loser, winner
	}
	for i := 1; i < count; i++ {
		n.says(fmt.Sprintf("r%d", i), "default", fmt.Sprintf("r%d.replicas.test True", i))
	}
	n.says(winner.Name, "default", "r0.replicas.test True")
	n.saysLike(loser.Name, "default", "r0.replicas.test False HostAlreadyClaimed")
	for _, r := range replicas {
		serves(t, r, "http://r7.replicas.test/", at(pod1))
	}
	n.quiet(5 * time.Second)
	list := must[*routev1.RouteList](t)(shared.routes.RouteV1().Routes(n.name).List(t.Context(), metav1.ListOptions{}))
	for i := range list.Items {
		if got := len(list.Items[i].Status.Ingress); got != 1 {
			t.Errorf("%s: %d entries, want one for all replicas", list.Items[i].Name, got)
		}
		if g := list.Items[i].Generation; g != 1 {
			t.Errorf("%s: generation %d; a status update changed the spec", list.Items[i].Name, g)
		}
	}

	// A fourth that comes later finds all said, and the others go on when one dies.
	newRouter(t, "default")
	n.quiet(3 * time.Second)
	if err := replicas[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := replicas[1].Kill(); err != nil {
		t.Fatal(err)
	}
	n.create(newRoute("after", "after.replicas.test"))
	n.says("after", "default", "after.replicas.test True")
	n.remove(winner.Name)
	n.says(loser.Name, "default", "r0.replicas.test True")
}

// TestConflicts: someone else writes the same route twenty times a second; the entry is written
// and the other's writes survive.
func TestConflicts(t *testing.T) {
	newRouter(t, "default")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(newRoute("r", "conflicts.test"))
	ctx, stop := context.WithCancel(t.Context())
	var writes atomic.Int64
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.annotate(ctx, "r", &writes)
	}()
	eventually(t, "other writes", func() error {
		if writes.Load() < 20 {
			return fmt.Errorf("%d so far", writes.Load())
		}
		return nil
	})
	n.change("r", func(route *routev1.Route) { route.Spec.Host = "changed.conflicts.test" })
	n.says("r", "default", "changed.conflicts.test True")
	n.create(newRoute("second", "second.conflicts.test"))
	n.says("second", "default", "second.conflicts.test True")
	stop()
	<-stopped
	if got := n.get("r").Annotations["writes"]; got != fmt.Sprint(writes.Load()) {
		t.Errorf("the last of %d other writes is %q", writes.Load(), got)
	}
	n.says("r", "default", "changed.conflicts.test True")
}

// annotate writes a route twenty times a second, and counts.
func (n namespace) annotate(ctx context.Context, name string, writes *atomic.Int64) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		route, err := shared.routes.RouteV1().Routes(n.name).Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			continue
		}
		route.Annotations = map[string]string{"writes": fmt.Sprint(writes.Load() + 1)}
		if _, err := shared.routes.RouteV1().Routes(n.name).Update(context.Background(), route, metav1.UpdateOptions{}); err == nil {
			writes.Add(1)
		}
	}
}

// TestForeignEntries: entries of other routers stay as they are, also odd ones.
func TestForeignEntries(t *testing.T) {
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	route := n.create(newRoute("r", "foreign.test"))
	past := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	foreign := routev1.RouteIngress{Host: "other.test", RouterName: "other", Conditions: []routev1.RouteIngressCondition{
		{Type: routev1.RouteAdmitted, Status: "False", Reason: "Odd", Message: "odd", LastTransitionTime: &past},
		{Type: "Else", Status: "Unknown"},
	}}
	route.Status.Ingress = []routev1.RouteIngress{foreign}
	must[*routev1.Route](t)(shared.routes.RouteV1().Routes(n.name).UpdateStatus(t.Context(), route, metav1.UpdateOptions{}))
	newRouter(t, "default")
	route = n.says("r", "default", "foreign.test True")
	if len(route.Status.Ingress) != 2 || verdict(route, "other") != "other.test False Odd: odd" || len(entry(route, "other").Conditions) != 2 {
		t.Errorf("status %+v", route.Status.Ingress)
	}
	n.quiet(2 * time.Second)
}

// TestClockSkew: what a replica with a wrong clock has said correctly is left alone, be
// its time in the past or in the future.
func TestClockSkew(t *testing.T) {
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	for name, skew := range map[string]time.Duration{"early": -26 * time.Hour, "late": 26 * time.Hour} {
		route := n.create(newRoute(name, name+".skew.test"))
		at := metav1.NewTime(time.Now().Add(skew).Truncate(time.Second))
		route.Status.Ingress = []routev1.RouteIngress{{
			Host: name + ".skew.test", RouterName: "default", WildcardPolicy: "None",
			Conditions: []routev1.RouteIngressCondition{{Type: routev1.RouteAdmitted, Status: "True", LastTransitionTime: &at}},
		}}
		must[*routev1.Route](t)(shared.routes.RouteV1().Routes(n.name).UpdateStatus(t.Context(), route, metav1.UpdateOptions{}))
	}
	first, second := newRouter(t, "default"), newRouter(t, "default")
	n.create(newRoute("new", "new.skew.test"))
	n.says("new", "default", "new.skew.test True")
	for _, r := range []*router.Router{first, second} {
		serves(t, r, "http://late.skew.test/", at(pod1))
	}
	n.quiet(3 * time.Second)
	// A real change is written all the same.
	for _, name := range []string{"early", "late"} {
		n.change(name, func(route *routev1.Route) { route.Spec.Host = "changed." + name + ".skew.test" })
		n.says(name, "default", "changed."+name+".skew.test True")
	}
}

// TestStatusOff: a router that may not write status writes none.
func TestStatusOff(t *testing.T) {
	r := newRouter(t, "default", "--update-status=false")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(newRoute("r", "off.test"))
	serves(t, r, "http://off.test/", at(pod1))
	n.quiet(2 * time.Second)
	n.says("r", "default", "nothing")
	if got := verdict(new(r.Routes(t)[n.name+"/r"]), "default"); got != "off.test True" {
		t.Errorf("/routes says %q", got)
	}
}

// TestTwoRoutersWithOneName: two that disagree under one name do not write for ever.
func TestTwoRoutersWithOneName(t *testing.T) {
	newRouter(t, "default", "--router-canonical-hostname", "one.test")
	newRouter(t, "default", "--router-canonical-hostname", "two.test")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(newRoute("r", "fight.test"))
	n.says("r", "default", "fight.test True")
	if got := n.writes(15 * time.Second)["r"]; got > 12 {
		t.Errorf("%d writes in 15 s", got)
	}
	n.quiet(5 * time.Second)
}
