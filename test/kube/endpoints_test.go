package kube

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"turnout/test/kube/internal/pods"
	"turnout/test/kube/internal/router"
)

// putSlice creates or replaces a slice.
func (n namespace) putSlice(slice *discoveryv1.EndpointSlice) {
	n.Helper()
	slices := shared.core.DiscoveryV1().EndpointSlices(n.name)
	_, err := slices.Update(n.Context(), slice, metav1.UpdateOptions{})
	if err != nil {
		_, err = slices.Create(n.Context(), slice, metav1.CreateOptions{})
	}
	if err != nil {
		n.Fatal(err)
	}
}

// only waits until 20 requests in a row are answered by the pod at an address.
func only(t testing.TB, r *router.Router, url, address string) {
	t.Helper()
	eventually(t, "only "+address, func() error {
		for range 20 {
			if got, err := r.Get(url); err != nil || got.Pod.Pod != address {
				return fmt.Errorf("%d by %q, error %v", got.Code, got.Pod.Pod, err)
			}
		}
		return nil
	})
}

// TestEndpointsChange: endpoints come and go, in one slice and in several.
func TestEndpointsChange(t *testing.T) {
	r := newRouter(t, "default")
	n := newNamespace(t, "a", nil)
	n.service("web")
	route := newRoute("r", "change.endpoints.test")
	route.Annotations = map[string]string{"haproxy.router.openshift.io/balance": "roundrobin", "haproxy.router.openshift.io/disable_cookies": "true"}
	n.create(route)
	url := "http://change.endpoints.test/"
	n.says("r", "default", "change.endpoints.test True")
	answers(t, r, url, 503)
	n.endpoints("web", pod1)
	serves(t, r, url, at(pod1))
	n.endpoints("web", pod1, pod2)
	serves(t, r, url, at(pod2))
	serves(t, r, url, at(pod1))
	n.endpoints("web", pod2)
	only(t, r, url, at(pod2))
	second := newSlice("web", pod3)
	second.Name = "web-2"
	n.putSlice(second)
	serves(t, r, url, at(pod3))
	// An endpoint that is not ready, and one that terminates, get nothing new.
	slice := newSlice("web", pod1, pod2)
	no := false
	slice.Endpoints[0].Conditions.Ready = &no
	slice.Endpoints[1].Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: new(true), Terminating: new(true)}
	n.putSlice(slice)
	only(t, r, url, at(pod3))
	if err := shared.core.DiscoveryV1().EndpointSlices(n.name).Delete(t.Context(), "web-2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	answers(t, r, url, 503)
}

// TestTerminatingEndpointFinishes: a request that is under way when its endpoint goes is
// finished by that endpoint.
func TestTerminatingEndpointFinishes(t *testing.T) {
	r := newRouter(t, "default")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(newRoute("r", "finish.endpoints.test"))
	serves(t, r, "http://finish.endpoints.test/", at(pod1))
	body, writer := io.Pipe()
	request := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.IP+"/echo", body))
	request.Host = "finish.endpoints.test"
	type result struct {
		resp *http.Response
		err  error
	}
	answered := make(chan result, 1)
	go func() {
		resp, err := http.DefaultTransport.RoundTrip(request)
		answered <- result{resp, err}
	}()
	// The pod sends each byte back, so that the request is known to have arrived.
	must[int](t)(writer.Write([]byte("a")))
	got := <-answered
	if got.err != nil {
		t.Fatal(got.err)
	}
	defer got.resp.Body.Close()
	one := make([]byte, 1)
	must[int](t)(io.ReadFull(got.resp.Body, one))
	slice := newSlice("web", pod1, pod2)
	no := false
	slice.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: new(true), Terminating: new(true)}
	n.putSlice(slice)
	serves(t, r, "http://finish.endpoints.test/", at(pod2))
	must[int](t)(writer.Write([]byte("b")))
	must[int](t)(io.ReadFull(got.resp.Body, one))
	if one[0] != 'b' || got.resp.Header.Get("X-Pod") != at(pod1) {
		t.Errorf("got %q of %s", one, got.resp.Header.Get("X-Pod"))
	}
	if err := writer.Close(); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(got.resp.Body); err != nil || len(rest) != 0 {
		t.Errorf("rest %q, %v", rest, err)
	}
}

// TestIdledService: a service without pods that is idled is asked at its own address,
// which wakes it.
func TestIdledService(t *testing.T) {
	r := newRouter(t, "default")
	n := newNamespace(t, "a", nil)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
		{Name: "http", Port: pods.HTTP, TargetPort: intstr.FromInt32(9999)},
	}}}
	service = must[*corev1.Service](t)(shared.core.CoreV1().Services(n.name).Create(t.Context(), service, metav1.CreateOptions{}))
	n.putSlice(newSlice("web"))
	n.create(newRoute("r", "idle.endpoints.test"))
	answers(t, r, "http://idle.endpoints.test/", 503)
	annotate := func(annotations map[string]string) {
		eventually(t, "annotation of the service", func() error {
			s, err := shared.core.CoreV1().Services(n.name).Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			s.Annotations = annotations
			_, err = shared.core.CoreV1().Services(n.name).Update(t.Context(), s, metav1.UpdateOptions{})
			return err
		})
	}
	annotate(map[string]string{"idling.alpha.openshift.io/idled-at": "2026-01-02T03:04:05Z"})
	serves(t, r, "http://idle.endpoints.test/", at(service.Spec.ClusterIP))
	n.endpoints("web", pod1)
	serves(t, r, "http://idle.endpoints.test/", at(pod1))
	annotate(nil)
	n.endpoints("web")
	answers(t, r, "http://idle.endpoints.test/", 503)
}

// TestRestrictedAddresses: endpoints at addresses that no pod has get no request; the
// others of the slice do. What the API server itself refuses need not be tried.
func TestRestrictedAddresses(t *testing.T) {
	r := newRouter(t, "default")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	for _, address := range []string{"168.63.129.16", "169.254.169.254", "127.0.0.1", "224.0.0.1", "0.0.0.0"} {
		slice := newSlice("web", address, pod2)
		slice.Name = "web-bad"
		_, err := shared.core.DiscoveryV1().EndpointSlices(n.name).Create(t.Context(), slice, metav1.CreateOptions{})
		if err == nil {
			t.Logf("the API server accepts %s", address)
			break
		}
		if address == "0.0.0.0" {
			t.Fatalf("the API server refuses all: %v", err)
		}
	}
	route := newRoute("r", "restricted.endpoints.test")
	route.Annotations = map[string]string{"haproxy.router.openshift.io/balance": "roundrobin", "haproxy.router.openshift.io/disable_cookies": "true"}
	n.create(route)
	serves(t, r, "http://restricted.endpoints.test/", at(pod2))
	for range 20 {
		if got, err := r.Get("http://restricted.endpoints.test/"); err != nil || got.Code != 200 {
			t.Fatalf("a restricted address is asked: %d, %v", got.Code, err)
		}
	}
	// Nothing but restricted addresses is no endpoint at all.
	only := newSlice("only", "168.63.129.16")
	n.service("only")
	n.putSlice(only)
	alone := newRoute("alone", "alone.endpoints.test")
	alone.Spec.To.Name = "only"
	n.create(alone)
	n.says("alone", "default", "alone.endpoints.test True")
	answers(t, r, "http://alone.endpoints.test/", 503)
}

// TestNamesAsEndpoints: a slice of host names is left alone.
func TestNamesAsEndpoints(t *testing.T) {
	r := newRouter(t, "default")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	names := newSlice("web", "metadata.internal")
	names.Name, names.AddressType = "web-names", discoveryv1.AddressTypeFQDN
	n.putSlice(names)
	n.create(newRoute("r", "names.endpoints.test"))
	for range 20 {
		serves(t, r, "http://names.endpoints.test/", at(pod1))
	}
}

// TestWeights: requests are shared by weight, and the share follows a change.
func TestWeights(t *testing.T) {
	r := newRouter(t, "default")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.service("canary", pod2)
	route := newRoute("r", "weights.endpoints.test")
	route.Annotations = map[string]string{"haproxy.router.openshift.io/disable_cookies": "true"}
	route.Spec.To.Weight = new(int32(100))
	route.Spec.AlternateBackends = []routev1.RouteTargetReference{{Kind: "Service", Name: "canary", Weight: new(int32(0))}}
	n.create(route)
	share := func(want int) {
		t.Helper()
		eventually(t, "share of the canary", func() error {
			canary := 0
			for range 40 {
				got, err := r.Get("http://weights.endpoints.test/")
				if err != nil {
					return err
				}
				if got.Pod.Pod == at(pod2) {
					canary++
				}
			}
			if canary != want {
				return fmt.Errorf("%d of 40, want %d", canary, want)
			}
			return nil
		})
	}
	share(0)
	n.change("r", func(route *routev1.Route) {
		route.Spec.To.Weight, route.Spec.AlternateBackends[0].Weight = new(int32(3)), new(int32(1))
	})
	share(10)
	n.change("r", func(route *routev1.Route) {
		route.Spec.To.Weight, route.Spec.AlternateBackends[0].Weight = new(int32(0)), new(int32(1))
	})
	share(40)
}
