package status

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"turnout/controller/source"
)

// TestServiceAddresses: those of the load balancer come before external IPs; a Service that is not there is an error.
func TestServiceAddresses(t *testing.T) {
	var items atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if q.URL.Path != "/api/v1/namespaces/ns/services" || q.FormValue("fieldSelector") != "metadata.name=lb" {
			http.NotFound(w, q)
			return
		}
		_, _ = io.WriteString(w, `{"kind":"ServiceList","apiVersion":"v1","items":[`+items.Load().(string)+`]}`)
	}))
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	core, err := rest.RESTClientFor(&rest.Config{Host: server.URL, APIPath: "/api", ContentConfig: rest.ContentConfig{
		GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for object, want := range map[string]string{
		"":                           "cannot read Service ns/lb: there is none",
		`{"metadata":{"name":"lb"}}`: "",
		`{"metadata":{"name":"lb"},"spec":{"externalIPs":["192.0.2.7"]}}`:                                                                                   "192.0.2.7",
		`{"metadata":{"name":"lb"},"spec":{"externalIPs":["192.0.2.7"]},"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"},{"hostname":"lb.test"}]}}}`: "192.0.2.1 lb.test",
	} {
		items.Store(object)
		list, err := ServiceAddresses(core, source.Key{Namespace: "ns", Name: "lb"})(t.Context())
		if got := strings.Join(list, " "); err == nil && got != want || err != nil && err.Error() != want {
			t.Errorf("%s: %q, %v", object, got, err)
		}
	}
	if _, err := ServiceAddresses(core, source.Key{Namespace: "other", Name: "lb"})(t.Context()); err == nil {
		t.Error("an API server that refuses is no error")
	}
}

// TestAddressesFollow: statuses say what is read, as soon as it is another; while nothing can be read they stay, and those that there are none for are left alone.
func TestAddressesFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newIngressAPI()
		var list atomic.Pointer[[]string]
		w, err := NewIngressWriter(IngressWriterConfig{API: f, RouterName: "mine", Read: func(context.Context) ([]string, error) {
			if list.Load() == nil {
				return nil, errors.New("not now")
			}
			return *list.Load(), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		w.Report(f.change("web", nothing), IngressOutcome{Served: true})
		w.Report(f.change("idle", func(o *networkingv1.Ingress) {
			o.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "10.9.9.9"}}
		}), IngressOutcome{})
		for i, c := range []struct {
			list []string
			want string
		}{{nil, ""}, {[]string{"192.0.2.1"}, "192.0.2.1"}, {[]string{"192.0.2.1"}, "192.0.2.1"}, {nil, "192.0.2.1"}, {[]string{"192.0.2.2", "lb.test"}, "192.0.2.2 lb.test"}, {[]string{}, "192.0.2.2 lb.test"}} {
			if list.Store(nil); c.list != nil {
				list.Store(&c.list)
			}
			sleep(2 * addressesPause)
			if got := f.addresses("web"); got != c.want || f.addresses("idle") != "10.9.9.9" {
				t.Errorf("step %d: %q, want %q", i, got, c.want)
			}
		}
		if n := f.wrote(); n != 2 {
			t.Errorf("%d writes", n)
		}
		cancel()
		if err := <-ended; err != nil || len(w.want) != 0 {
			t.Errorf("%v, %v", w.want, err)
		}
	})
}
