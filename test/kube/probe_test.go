package kube

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"turnout/test/cluster/pki"
	"turnout/test/kube/internal/router"
)

// latencies are times from the watch event of a change to the first response that
// follows it.
type latencies []time.Duration

// String is "p50 / p99".
func (l latencies) String() string {
	return fmt.Sprintf("%.1f / %.1f ms", l.share(0.5).Seconds()*1000, l.share(0.99).Seconds()*1000)
}

// share returns what a share of the times does not exceed.
func (l latencies) share(share float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(l))[int(share*float64(len(l)-1))]
}

// probe makes changes and measures how fast they are served.
type probe struct {
	namespace
	router *router.Router

	mu      sync.Mutex
	arrived map[string]time.Time // when a watch has delivered "name resourceVersion"
}

// newProbe watches routes and slices of a namespace of its own as the router does.
func newProbe(t testing.TB, r *router.Router) *probe {
	t.Helper()
	p := &probe{namespace: newNamespace(t, "probe", nil), router: r, arrived: map[string]time.Time{}}
	routes, err := shared.routes.RouteV1().Routes(p.name).Watch(p.Context(), metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	slices, err := shared.core.DiscoveryV1().EndpointSlices(p.name).Watch(p.Context(), metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	go p.note(routes)
	go p.note(slices)
	return p
}

// note keeps when events arrive, until the test ends.
func (p *probe) note(w watch.Interface) {
	for event := range w.ResultChan() {
		now := time.Now()
		p.mu.Lock()
		p.arrived[key(event.Object)] = now
		p.mu.Unlock()
	}
}

func key(object runtime.Object) string {
	switch o := object.(type) {
	case *routev1.Route:
		return "route " + o.Name + " " + o.ResourceVersion
	case *discoveryv1.EndpointSlice:
		return "slice " + o.Name + " " + o.ResourceVersion
	}
	return ""
}

// time returns how long after the watch event of a changed object its effect was seen.
// It asks as fast as one connection can.
func (p *probe) time(object runtime.Object, seen func() (bool, error)) time.Duration {
	deadline := time.Now().Add(patience)
	for {
		ok, err := seen()
		if ok {
			break
		}
		if time.Now().After(deadline) {
			p.Fatalf("%s is not served: %v", key(object), err)
		}
	}
	end := time.Now()
	for {
		p.mu.Lock()
		arrived, ok := p.arrived[key(object)]
		p.mu.Unlock()
		switch {
		case ok:
			return max(0, end.Sub(arrived))
		case time.Now().After(deadline):
			p.Fatalf("%s has no watch event", key(object))
		}
		<-time.After(time.Millisecond)
	}
}

// newRoutes makes routes one after the other.
func (p *probe) newRoutes(samples int) latencies {
	p.service("web", pod1)
	client := p.router.Client(true)
	var l latencies
	for i := range samples {
		name := fmt.Sprintf("new%d", i)
		url := "http://" + name + ".probe.test/"
		_, _ = client.Get(url) // the connection is there before
		route := p.create(newRoute(name, name+".probe.test"))
		l = append(l, p.time(route, func() (bool, error) {
			got, err := client.Get(url)
			return err == nil && got.Pod.Pod == at(pod1), err
		}))
	}
	return l
}

// weights moves all requests of a route from one service to the other and back.
func (p *probe) weights(samples int) latencies {
	p.service("one", pod1)
	p.service("two", pod2)
	route := newRoute("weights", "weights.probe.test")
	route.Spec.To.Name, route.Spec.To.Weight = "one", new(int32(1))
	route.Spec.AlternateBackends = []routev1.RouteTargetReference{{Kind: "Service", Name: "two", Weight: new(int32(0))}}
	p.create(route)
	serves(p, p.router, "http://weights.probe.test/", at(pod1))
	client := p.router.Client(true)
	var l latencies
	for i := range samples {
		to, want := int32(i%2), at(pod1)
		if i%2 == 0 {
			want = at(pod2)
		}
		changed := p.change("weights", func(route *routev1.Route) {
			route.Spec.To.Weight, route.Spec.AlternateBackends[0].Weight = new(to), new(1-to)
		})
		l = append(l, p.time(changed, func() (bool, error) {
			got, err := client.Get("http://weights.probe.test/")
			return err == nil && got.Pod.Pod == want, err
		}))
	}
	return l
}

// certificates gives a route one new certificate after the other.
func (p *probe) certificates(samples int) latencies {
	p.create(edge(newRoute("certificates", "certificates.probe.test"), ""))
	pairs := make([]pki.Pair, 8)
	for i := range pairs {
		pairs[i] = issue(p, "certificates.probe.test")
	}
	var l latencies
	for i := range samples {
		pair := pairs[i%len(pairs)]
		want := serial(p, pair)
		changed := p.change("certificates", func(route *routev1.Route) {
			route.Spec.TLS.Certificate, route.Spec.TLS.Key = pair.Cert, pair.Key
		})
		l = append(l, p.time(changed, func() (bool, error) {
			got, err := p.router.Get("https://certificates.probe.test/")
			return err == nil && got.Serial == want && got.Code == 200, err
		}))
	}
	return l
}

// endpointsRemoved takes away the endpoint that a client is sent to, and puts it back.
// Balanced by source, a client always gets the same.
func (p *probe) endpointsRemoved(samples int) latencies {
	p.service("removed", pod1, pod2)
	route := newRoute("removed", "removed.probe.test")
	route.Spec.To.Name = "removed"
	route.Annotations = map[string]string{"haproxy.router.openshift.io/balance": "source", "haproxy.router.openshift.io/disable_cookies": "true"}
	p.create(route)
	url := "http://removed.probe.test/"
	answers(p, p.router, url, 200)
	client := p.router.Client(true)
	var l latencies
	for range samples {
		before := must[router.Response](p)(client.Get(url)).Pod.Pod
		left := pod1
		if before == at(pod1) {
			left = pod2
		}
		l = append(l, p.time(p.slice("removed", left), func() (bool, error) {
			got, err := client.Get(url)
			return err == nil && got.Pod.Pod == at(left), err
		}))
		p.time(p.slice("removed", pod1, pod2), func() (bool, error) {
			got, err := client.Get(url)
			return err == nil && got.Pod.Pod == before, err
		})
	}
	return l
}

// slice changes the endpoints of a service and returns the changed slice.
func (p *probe) slice(service string, addresses ...string) *discoveryv1.EndpointSlice {
	p.Helper()
	slices := shared.core.DiscoveryV1().EndpointSlices(p.name)
	return must[*discoveryv1.EndpointSlice](p)(slices.Update(context.Background(), newSlice(service, addresses...), metav1.UpdateOptions{}))
}
