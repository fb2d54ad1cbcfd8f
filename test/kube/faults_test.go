package kube

import (
	"context"
	"fmt"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/test/kube/internal/router"
)

// serving asks for a URL until stop, and sends the number of requests and the first that
// failed.
func serving(r *router.Router, url string, stop <-chan struct{}, done chan<- error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-stop:
			done <- nil
			return
		case <-tick.C:
		}
		if got, err := r.Get(url); err != nil || got.Code != 200 {
			done <- fmt.Errorf("request %d: %d, %v", n, got.Code, err)
			return
		}
	}
}

// throughout does something while a router serves a URL without an error.
func throughout(t testing.TB, r *router.Router, url string, do func()) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan error, 1)
	go serving(r, url, stop, done)
	do()
	close(stop)
	if err := <-done; err != nil {
		t.Errorf("%s: %v", url, err)
	}
}

// startAPI starts the API server again.
func startAPI(t testing.TB) {
	t.Helper()
	if err := shared.API.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// killAPI ends the API server.
func killAPI(t testing.TB) {
	t.Helper()
	if err := shared.API.Kill(); err != nil {
		t.Fatal(err)
	}
}

// lasts lets an outage last. Nothing is waited for: that is the point.
func lasts(d time.Duration) { <-time.After(d) }

// outage is how long the API server is away.
func outage(short bool) time.Duration {
	if short {
		return 5 * time.Second
	}
	return 2 * time.Minute
}

// TestAPIServerDies: routes are served while there is no API server, and what changes
// after it is back arrives. The router neither ends nor fills its log, and does not storm.
func TestAPIServerDies(t *testing.T) {
	r := newRouter(t, "default")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(newRoute("r", "dies.faults.test"))
	n.create(newRoute("gone", "gone.faults.test"))
	n.says("r", "default", "dies.faults.test True")
	n.says("gone", "default", "gone.faults.test True")
	before := len(audit(t))
	throughout(t, r, "http://dies.faults.test/", func() {
		killAPI(t)
		lasts(outage(testing.Short()))
		startAPI(t)
		n.create(newRoute("new", "new.faults.test"))
		n.remove("gone")
		n.endpoints("web", pod1, pod2)
		n.says("new", "default", "new.faults.test True")
		answers(t, r, "http://gone.faults.test/", 503)
		serves(t, r, "http://new.faults.test/", at(pod2))
	})
	if code, text := r.Admin(t, "/healthz/ready"); code != 200 {
		t.Errorf("not ready after the API server was away: %s", text)
	}
	if lines := r.Log.Count("\n"); lines > 200 {
		t.Errorf("%d lines of log", lines)
	}
	if requests := len(audit(t)) - before; requests > 60 {
		t.Errorf("%d requests to the API server when it was back", requests)
	}
}

// TestAPIServerHangs: the same for one that keeps its connections and says nothing.
func TestAPIServerHangs(t *testing.T) {
	r := newRouter(t, "default")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(newRoute("r", "hangs.faults.test"))
	n.says("r", "default", "hangs.faults.test True")
	throughout(t, r, "http://hangs.faults.test/", func() {
		if err := shared.API.Pause(); err != nil {
			t.Fatal(err)
		}
		lasts(outage(testing.Short()))
		if err := shared.API.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.create(newRoute("new", "new.hangs.faults.test"))
		n.says("new", "default", "new.hangs.faults.test True")
		serves(t, r, "http://new.hangs.faults.test/", at(pod1))
	})
}

// TestStartWithoutAPIServer: a router that starts first is alive, not ready, and becomes
// ready by itself.
func TestStartWithoutAPIServer(t *testing.T) {
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(newRoute("r", "first.faults.test"))
	ip, config := nextIP(), kubeconfig(t)
	killAPI(t)
	r := router.Start(t, router.Config{Binary: shared.binary, IP: ip, Args: []string{"--name", "default", "--kubeconfig", config}})
	if code, _ := r.Admin(t, "/healthz"); code != 200 {
		t.Errorf("healthz is %d", code)
	}
	if code, _ := r.Admin(t, "/healthz/ready"); code == 200 {
		t.Error("ready without having seen a route")
	}
	startAPI(t)
	r.WaitReady(t)
	if got, err := r.Get("http://first.faults.test/"); err != nil || got.Code != 200 {
		t.Errorf("right after ready: %d, %v", got.Code, err)
	}
}

// TestWatchExpired: the router was away for so long that the API server no longer knows
// what changed. It lists again, and drops what is gone.
func TestWatchExpired(t *testing.T) {
	r := newRouter(t, "default")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(newRoute("stays", "stays.faults.test"))
	n.create(newRoute("gone", "gone.expired.faults.test"))
	n.create(newRoute("moves", "old.expired.faults.test"))
	for name, host := range map[string]string{"stays": "stays", "gone": "gone.expired", "moves": "old.expired"} {
		n.says(name, "default", host+".faults.test True")
	}
	if err := r.Pause(); err != nil {
		t.Fatal(err)
	}
	n.remove("gone")
	n.change("moves", func(route *routev1.Route) { route.Spec.Host = "new.expired.faults.test" })
	n.create(newRoute("new", "second.expired.faults.test"))
	// A new API server has no memory of what came before it.
	killAPI(t)
	startAPI(t)
	if err := r.Resume(); err != nil {
		t.Fatal(err)
	}
	serves(t, r, "http://second.expired.faults.test/", at(pod1))
	serves(t, r, "http://new.expired.faults.test/", at(pod1))
	answers(t, r, "http://old.expired.faults.test/", 503)
	answers(t, r, "http://gone.expired.faults.test/", 503)
	serves(t, r, "http://stays.faults.test/", at(pod1))
	n.says("moves", "default", "new.expired.faults.test True")
}

// TestSlowEtcd: etcd runs an eighth of the time. Everything arrives, later.
func TestSlowEtcd(t *testing.T) {
	r := newRouter(t, "default")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(newRoute("r", "slow.faults.test"))
	n.says("r", "default", "slow.faults.test True")
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			err := shared.Etcd.Pause()
			lasts(350 * time.Millisecond)
			if err == nil {
				err = shared.Etcd.Resume(t.Context())
			}
			lasts(50 * time.Millisecond)
			select {
			case <-stop:
				stopped <- err
				return
			default:
			}
		}
	}()
	throughout(t, r, "http://slow.faults.test/", func() {
		for i := range 10 {
			name := fmt.Sprintf("r%d", i)
			n.create(newRoute(name, name+".slow.faults.test"))
		}
		for i := range 10 {
			name := fmt.Sprintf("r%d", i)
			n.says(name, "default", name+".slow.faults.test True")
			serves(t, r, "http://"+name+".slow.faults.test/", at(pod1))
		}
	})
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if got := n.get("r0"); len(got.Status.Ingress) != 1 {
		t.Errorf("status %+v", got.Status)
	}
}

// TestFlood: 500 changes per second for a minute. Requests go on, the work of the router
// has a bound, and in the end the latest state is served.
func TestFlood(t *testing.T) {
	const perSecond = 500
	duration := time.Minute
	if testing.Short() {
		duration = 10 * time.Second
	}
	r := newRouter(t, "default")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(newRoute("witness", "witness.flood.test"))
	n.says("witness", "default", "witness.flood.test True")
	const routes = 100
	for i := range routes {
		n.service(fmt.Sprintf("s%d", i), pod1)
		route := newRoute(fmt.Sprintf("r%d", i), fmt.Sprintf("r%d.flood.test", i))
		route.Spec.To.Name = fmt.Sprintf("s%d", i)
		n.create(route)
	}
	n.says("r99", "default", "r99.flood.test True")
	cpu := must[time.Duration](t)(r.CPU())
	start := time.Now()
	throughout(t, r, "http://witness.flood.test/", func() {
		pace(t, perSecond, duration, 16, func(ctx context.Context, i int) error { return n.flood(ctx, i, routes) })
	})
	took := time.Since(start)
	used := must[time.Duration](t)(r.CPU()) - cpu
	t.Logf("%d changes per second for %v: %.2f processors", perSecond, took.Round(time.Second), used.Seconds()/took.Seconds())
	for i := range routes {
		n.endpoints(fmt.Sprintf("s%d", i), pod3)
	}
	n.change("r0", func(route *routev1.Route) { route.Spec.Path = "/last" })
	for i := range routes {
		url := fmt.Sprintf("http://r%d.flood.test/", i)
		if i == 0 {
			url += "last"
		}
		serves(t, r, url, at(pod3))
	}
	answers(t, r, "http://r0.flood.test/other", 503)
	n.says("r0", "default", "r0.flood.test True")
}

// flood makes change number i: endpoints three times out of four, else a route.
func (n namespace) flood(ctx context.Context, i, routes int) error {
	target := i / 4 % routes
	if i%4 != 0 {
		slice := newSlice(fmt.Sprintf("s%d", target), fmt.Sprintf("10.1.%d.%d", 1+i/250%250, 1+i%250))
		_, err := shared.core.DiscoveryV1().EndpointSlices(n.name).Update(ctx, slice, metav1.UpdateOptions{})
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"to":{"weight":%d}}}`, 1+i%200)
	_, err := shared.routes.RouteV1().Routes(n.name).Patch(ctx, fmt.Sprintf("r%d", target), mergePatch, patch, metav1.PatchOptions{})
	return err
}

// TestRestartWithManyRoutes: a router that starts is not ready before it serves every route.
func TestRestartWithManyRoutes(t *testing.T) {
	count := 10000
	if testing.Short() {
		count = 2000
	}
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	fill(t, count, func(ctx context.Context, i int) error {
		_, err := shared.routes.RouteV1().Routes(n.name).Create(ctx, newRoute(fmt.Sprintf("r%d", i), fmt.Sprintf("r%d.many.test", i)), metav1.CreateOptions{})
		return err
	})
	for range 2 {
		r := startRouter(t, "default")
		for i, ready := 0, false; !ready; i++ {
			code, _ := r.Admin(t, "/healthz/ready")
			ready = code == 200
			if i > 100000 {
				t.Fatal("never ready")
			}
		}
		for i := range 200 {
			name := fmt.Sprintf("r%d.many.test", (i*7919+count-1)%count)
			if got, err := r.Get("http://" + name + "/"); err != nil || got.Code != 200 {
				t.Fatalf("ready, and %s is answered with %d, %v", name, got.Code, err)
			}
		}
		if err := r.Kill(); err != nil {
			t.Fatal(err)
		}
	}
}
