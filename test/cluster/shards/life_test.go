package shards

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var routes = flag.Int("routes", 200, "routes that move in TestLife")

// bound is which routers each route of a namespace is bound to, and stays on, and how many bindings leave.
func (s *seen) bound(namespace string) (routers map[string][]string, leaving int) {
	routers = make(map[string][]string)
	for _, b := range objects(s.bindings) {
		if b.GetNamespace() != namespace {
			continue
		}
		route := text(b, "spec", "routeName")
		if text(b, "status", "phase") == "Leaving" {
			leaving++
			continue
		}
		routers[route] = append(routers[route], text(b, "spec", "router")+" "+text(b, "status", "phase"))
	}
	return routers, leaving
}

// settled waits until each of so many routes of a namespace serves on exactly one of the routers and nothing leaves, and returns how many routes each has.
func (s *seen) settled(t *testing.T, namespace string, routes int, on ...string) map[string]int {
	t.Helper()
	var counts map[string]int
	begin := time.Now()
	eventually(t, "bindings on "+strings.Join(on, ", "), func() error {
		all, leaving := s.bound(namespace)
		counts = make(map[string]int)
		for route, to := range all {
			name, phase, _ := strings.Cut(to[0], " ")
			if len(to) != 1 || phase != "Serving" || !slices.Contains(on, name) {
				return fmt.Errorf("%s is bound to %v; %d of %d routes are bound, %d bindings leave", route, to, len(all), routes, leaving)
			}
			counts[name]++
		}
		if len(all) != routes || leaving > 0 {
			return fmt.Errorf("%d of %d routes are bound, %d bindings leave", len(all), routes, leaving)
		}
		return nil
	})
	t.Logf("%v after %s", counts, time.Since(begin).Round(100*time.Millisecond))
	return counts
}

// makeRoutes makes routes; every second one asks for a host.
func makeRoutes(t *testing.T) {
	t.Helper()
	var all bytes.Buffer
	for i := range *routes {
		host := ""
		if i%2 == 1 {
			host = fmt.Sprintf("  host: r%d.custom.test\n", i)
		}
		fmt.Fprintf(&all, "---\napiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: r%d, namespace: %s}\nspec:\n%s  to: {kind: Service, name: echo, weight: 100}\n", i, live, host)
	}
	shared.kubectl.Must(t, all.String(), "create", "-f", "-")
}

// TestLife: routes are bound, named and served; they move while clients ask for them, when a router is drained, lost and added, and when those that
// schedule are killed. No request fails.
func TestLife(t *testing.T) {
	client, err := shared.Client("clients")
	if err != nil {
		t.Fatal(err)
	}
	shared.kubectl.Must(t, schedulerObject("default", `{"writesPerSecond": 1000, "lostAfterSeconds": 30}`), "apply", "-f", "-")
	for _, name := range []string{"a", "b"} {
		shared.kubectl.Must(t, router(name, fmt.Sprintf(`{"dns": {"domain": "%s.shards.test", "ttlSeconds": 1}}`, name)), "create", "-f", "-")
	}
	t.Cleanup(func() {
		if _, err := shared.kubectl.Run(context.Background(), "", "delete", "routers", "a", "b"); err != nil {
			t.Error(err)
		}
	})
	all := watchAll(t)
	startPods(t, live, 3)
	startScheduler(t)
	startReplicas(t, "a", 2)
	startReplicas(t, "b", 2)
	makeRoutes(t)
	counts := all.settled(t, live, *routes, "a", "b")
	if most := *routes/2 + 1; counts["a"] > most || counts["b"] > most {
		t.Errorf("routes are not bound in turn: %v", counts)
	}
	named(t)
	l := startLoad(t, all, client)
	t.Run("drain", func(t *testing.T) {
		shared.kubectl.Must(t, "", "patch", "router/a", "--type=merge", "-p", `{"spec": {"taints": [{"key": "maintenance", "effect": "Drain"}]}}`)
		killLeader(t)
		all.settled(t, live, *routes, "b")
	})
	t.Run("back", func(t *testing.T) {
		if err := shared.API.Kill(); err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * time.Second) // nothing is waited for: that is the point
		if err := shared.API.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		shared.kubectl.Must(t, "", "patch", "router/a", "--type=merge", "-p", `{"spec": {"taints": null}}`)
		is(t, "router/a", "{.status.phase}", "Ready")
		shared.kubectl.Must(t, "", "patch", "routescheduler/default", "--type=merge", "-p", `{"spec": {"rebalance": "once"}}`)
		is(t, "routescheduler/default", "{.status.rebalanced}", "once")
		if counts := all.settled(t, live, *routes, "a", "b"); counts["a"] < *routes*45/100 {
			t.Errorf("after a rebalance: %v", counts)
		}
	})
	l.end(t)
	t.Run("lost", func(t *testing.T) {
		shared.kubectl.Must(t, "", "delete", "deployment/router-b", "-n", programs, "--cascade=orphan")
		shared.kubectl.Must(t, "", "delete", "replicaset", "-n", programs, "-l", "router=b", "--cascade=orphan")
		shared.kubectl.Must(t, "", "delete", "pod", "-n", programs, "-l", "router=b", "--grace-period=0", "--force")
		all.settled(t, live, *routes, "a")
		is(t, "router/b", "{.status.phase}", "Lost")
	})
}

// is waits until a field of an object has a value. The object is in the namespace of programs unless another one is given.
func is(t *testing.T, object, path, want string, in ...string) {
	t.Helper()
	eventually(t, object+" "+path, func() error {
		got, err := shared.kubectl.Run(t.Context(), "", "get", object, "-n", append(in, programs)[0], "-o", "jsonpath="+path)
		if err == nil && got != want {
			err = fmt.Errorf("is %q, want %q", got, want)
		}
		return err
	})
}

// killLeader ends the process that schedules without a word.
func killLeader(t *testing.T) {
	t.Helper()
	leader := shared.kubectl.Must(t, "", "get", "lease/turnout-scheduler", "-n", programs, "-o", "jsonpath={.spec.holderIdentity}")
	shared.kubectl.Must(t, "", "delete", "pod/"+leader, "-n", programs, "--grace-period=0", "--force")
	eventually(t, "another leader", func() error {
		now := shared.kubectl.Must(t, "", "get", "lease/turnout-scheduler", "-n", programs, "-o", "jsonpath={.spec.holderIdentity}")
		if now == leader || now == "" {
			return fmt.Errorf("the holder is %q", now)
		}
		return nil
	})
}

// named: each route says its phase, its name and its router.
func named(t *testing.T) {
	t.Helper()
	for i, want := range []string{live + "-r0.", "r1.custom.test"} {
		name := fmt.Sprintf("route/r%d", i)
		got := shared.kubectl.Must(t, "", "get", name, "-n", live, "-o", `jsonpath={.metadata.annotations.turnout\.router/phase} {.metadata.annotations.turnout\.router/dns} {.metadata.annotations.turnout\.router/target} {.status.ingress[0].routerName}`)
		f := strings.Fields(got)
		if len(f) != 4 || f[0] != "scheduled" || !strings.HasPrefix(f[1], want) || !strings.HasPrefix(f[2], fmt.Sprintf("%s-r%d.", live, i)) || !strings.HasSuffix(f[2], f[3]+".shards.test") {
			t.Errorf("%s says %q", name, got)
		}
	}
}
