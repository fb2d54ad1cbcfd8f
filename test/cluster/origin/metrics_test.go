package origin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sample is one value of a metric.
type sample struct {
	labels map[string]string
	value  float64
}

// family are the samples of a metric that have these labels.
func (n namespace) family(r *router, name string, labels map[string]string) []sample {
	n.Helper()
	// When many ask at once, some are told to come again.
	got := n.answers(r, "http://metrics:1936/metrics", 200)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families := must[map[string]*dto.MetricFamily](n)(parser.TextToMetricFamilies(strings.NewReader(got.Body)))
	var found []sample
next:
	for _, m := range families[name].GetMetric() {
		s := sample{labels: map[string]string{}}
		for _, l := range m.GetLabel() {
			s.labels[l.GetName()] = l.GetValue()
		}
		for name, value := range labels {
			if s.labels[name] != value {
				continue next
			}
		}
		s.value = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue() + m.GetSummary().GetSampleSum()
		found = append(found, s)
	}
	return found
}

// metric is the sum of the samples of a metric that have these labels.
func (n namespace) metric(r *router, name string, labels map[string]string) float64 {
	n.Helper()
	sum := 0.0
	for _, s := range n.family(r, name, labels) {
		sum += s.value
	}
	return sum
}

// TestMetrics is test/extended/router/metrics.go of origin.
func TestMetrics(t *testing.T) {
	t.Parallel()
	it(t, "should expose a health check on the metrics port", healthOnMetricsPort)
	it(t, "should expose prometheus metrics for a route", metricsOfRoute)
	it(t, "should expose the profiling endpoints", profiles)
	it(t, "should enable openshift-monitoring to pull metrics", metricsForMonitoring)
}

// healthOnMetricsPort: /healthz of the metrics port is 200.
func healthOnMetricsPort(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, settings{})
	n.answers(r, "http://metrics:1936/healthz", 200)
	n.answers(r, "http://metrics:1936/healthz/ready", 200)
}

// login are the settings of a router whose admin port asks for a user and a password.
func login() settings {
	s := env("STATS_USERNAME", "admin", "STATS_PASSWORD", "password")
	s.Closed = true
	return s
}

// basic is the field of a request with that login: admin, password.
const basic = "Authorization: Basic YWRtaW46cGFzc3dvcmQ="

// metricsOfRoute: /metrics needs a login; of a route with two weighted services there are the
// metrics by server, with pod and service, and by back end, and they count requests; after a pod
// is gone, counters of the route go on.
func metricsOfRoute(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, settings{})
	n.weighted(r)
	at := "http://" + n.host("weightedroute") + "/"
	n.reaches(r, at, "endpoint-1", "endpoint-2")
	c := r.client(dials{})
	for range 10 {
		must[response](t)(c.get(at))
	}
	of := func(labels ...string) map[string]string {
		set := map[string]string{"namespace": n.name, "route": "weightedroute"}
		for i := 0; i < len(labels); i += 2 {
			set[labels[i]] = labels[i+1]
		}
		return set
	}
	for label, want := range map[string][]string{
		"pod": {"endpoint-1", "endpoint-2"}, "service": {"weightedendpoints1", "weightedendpoints2"},
		"server": {n.running("endpoint-1").Status.PodIP + ":8080", n.running("endpoint-2").Status.PodIP + ":8080"},
	} {
		var got []string
		for _, s := range n.family(r, "haproxy_server_http_responses_total", of()) {
			if got = append(got, s.labels[label]); s.labels["code"] == "2xx" && s.value == 0 || s.labels["code"] == "5xx" && s.value != 0 {
				t.Errorf("%v: %v", s.labels, s.value)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", label, got, want)
		}
	}
	for name, least := range map[string]float64{
		"haproxy_backend_connections_total": 10, "haproxy_server_connections_total": 10, "haproxy_server_bytes_in_total": 1,
		"haproxy_server_bytes_out_total": 1, "haproxy_server_max_sessions": 2, "haproxy_server_up": 2, "haproxy_backend_up": 1,
	} {
		if got := n.metric(r, name, of()); got < least {
			t.Errorf("%s is %v, want %v at least", name, got, least)
		}
	}
	for name, least := range map[string]float64{
		"haproxy_up": 1, "haproxy_exporter_total_scrapes": 1, "haproxy_process_resident_memory_bytes": 1, "haproxy_process_max_fds": 1,
		"template_router_reload_seconds": 1e-9, "template_router_write_config_seconds": 1e-9, "openshift_build_info": 0, "turnout_build_info": 1,
	} {
		if got := n.metric(r, name, nil); got < least {
			t.Errorf("%s is %v, want %v at least", name, got, least)
		}
	}
	if got := n.metric(r, "haproxy_exporter_csv_parse_failures", nil); got != 0 {
		t.Errorf("haproxy_exporter_csv_parse_failures is %v", got)
	}
	before := n.metric(r, "haproxy_backend_connections_total", of())
	if err := shared.core.CoreV1().Pods(n.name).Delete(t.Context(), "endpoint-2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one server", func() error {
		if got := n.family(r, "haproxy_server_up", of()); len(got) != 1 || got[0].labels["pod"] != "endpoint-1" {
			return fmt.Errorf("servers %v", got)
		}
		return nil
	})
	if got := n.metric(r, "haproxy_backend_connections_total", of()); got < before {
		t.Errorf("haproxy_backend_connections_total was %v, is %v", before, got)
	}
}

// weighted makes the route weightedroute to two services with a pod each, with weights 90 and 10,
// and the route zeroweight whose services have weight 0.
func (n namespace) weighted(r *router) {
	n.Helper()
	for _, i := range []string{"1", "2"} {
		n.start(pod{name: "endpoint-" + i, labels: map[string]string{"app": "weighted" + i}})
		n.service("weightedendpoints"+i, "weighted"+i)
	}
	weights := func(name string, first, second int32) {
		route := n.newRoute(r, name)
		route.Spec.To.Name, route.Spec.To.Weight = "weightedendpoints1", &first
		route.Spec.AlternateBackends = []routev1.RouteTargetReference{{Kind: "Service", Name: "weightedendpoints2", Weight: &second}}
		n.create(route)
	}
	weights("weightedroute", 90, 10)
	weights("zeroweight", 0, 0)
}

// TestWeighted is test/extended/router/weighted.go of origin.
func TestWeighted(t *testing.T) {
	t.Parallel()
	it(t, "should serve a route that points to two services and respect weights", respectWeights)
}

// respectWeights: all of a hundred requests succeed, and of two services with weights 90 and 10
// one gets at least five times as many as the other; without weights nobody answers. There the
// counts come from HAProxy's statistics page, here from the metrics.
func respectWeights(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, settings{})
	n.weighted(r)
	at := "http://" + n.host("weightedroute") + "/"
	n.reaches(r, at, "endpoint-1", "endpoint-2")
	counts := func() map[string]float64 {
		of := map[string]float64{}
		for _, s := range n.family(r, "haproxy_server_connections_total", map[string]string{"namespace": n.name, "route": "weightedroute"}) {
			of[s.labels["service"]] = s.value
		}
		return of
	}
	before := counts()
	c := r.client(dials{})
	for range 100 {
		if got := must[response](t)(c.get(at)); got.Code != 200 {
			t.Errorf("status %d", got.Code)
		}
	}
	var first, second float64
	eventually(t, "a hundred requests in the metrics", func() error {
		after := counts()
		first, second = after["weightedendpoints1"]-before["weightedendpoints1"], after["weightedendpoints2"]-before["weightedendpoints2"]
		if first+second != 100 {
			return fmt.Errorf("%v and %v", first, second)
		}
		return nil
	})
	if first < 5*second {
		t.Errorf("%v and %v requests, want 90 and 10", first, second)
	}
	n.answers(r, "http://"+n.host("zeroweight")+"/", 503)
}

// profiles: profiles need a login, and are there with one.
func profiles(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, login())
	for _, path := range []string{"/debug/pprof/heap", "/metrics"} {
		if got := n.got(r, "http://metrics:1936"+path); got.Code != 401 && got.Code != 403 {
			t.Errorf("%s without login: %d", path, got.Code)
		}
	}
	got := n.got(r, "http://metrics:1936/debug/pprof/heap?debug=1", basic)
	if got.Code != 200 || !strings.Contains(got.Body, "# runtime.MemStats") {
		t.Errorf("with login: %d %.200s", got.Code, got.Body)
	}
}

// metricsForMonitoring: who has the token of an account that may get routers/metrics reads the
// metrics over TLS, others do not. There Prometheus itself is asked for its targets.
func metricsForMonitoring(t *testing.T) {
	n := newNamespace(t, nil)
	cert := issue(t, "router-internal", nil, false)
	tlsSecret(t, routerNamespace, n.name, cert)
	s := env("ROUTER_METRICS_TLS_CERT_FILE", "/etc/pki/tls/metrics-certs/tls.crt", "ROUTER_METRICS_TLS_KEY_FILE", "/etc/pki/tls/metrics-certs/tls.key")
	s.Folders, s.Closed = map[string]string{"/etc/pki/tls/metrics-certs": "secret/" + n.name}, true
	r := with(t, s)
	n.mayReadMetrics(r, "prometheus-k8s")
	for account, want := range map[string]int{"prometheus-k8s": 200, "default": 403, "": 403} {
		var fields []string
		if account != "" {
			fields = []string{"Authorization: Bearer " + n.token(account)}
		}
		eventually(t, "metrics for "+account, func() error {
			got, err := r.get("https://metrics:1936/metrics", fields...)
			if err == nil && (got.Code != want || !got.Cert.Equal(cert.cert)) {
				err = fmt.Errorf("%d, want %d", got.Code, want)
			}
			return err
		})
	}
}

// TestRouteMetricsControllerOnlyRouteSelector: how many routes a shard has is counted by what
// their status says; a route that gets the shard's label is one more, one that loses it is one
// less.
func TestRouteMetricsControllerOnlyRouteSelector(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := alone(t, settings{})
	n.admitted(r, 0)
	n.create(n.newRoute(r, "foo"))
	n.admitted(r, 1)
	n.create(n.newRoute(r, "bar"))
	n.admitted(r, 2)
	n.change("foo", func(route *routev1.Route) { route.Labels[shardLabel] = "none" })
	n.admitted(r, 1)
	if err := shared.routes.RouteV1().Routes(n.name).Delete(t.Context(), "bar", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	n.admitted(r, 0)
}

// TestRouteMetricsControllerOnlyNamespaceSelector: the same for a shard that selects namespaces.
func TestRouteMetricsControllerOnlyNamespaceSelector(t *testing.T) {
	t.Parallel()
	name := fmt.Sprint("only-namespaces-", len(t.Name()))
	n, other := newNamespace(t, map[string]string{"type": name}), newNamespace(t, nil)
	r := alone(t, env("ROUTE_LABELS", "", "NAMESPACE_LABELS", "type="+name))
	n.create(n.newRoute(r, "foo"))
	other.create(other.newRoute(r, "foo"))
	n.admitted(r, 1)
	other.admitted(r, 0)
	object := must[*corev1.Namespace](t)(shared.core.CoreV1().Namespaces().Get(t.Context(), n.name, metav1.GetOptions{}))
	object.Labels["type"] = "another"
	must[*corev1.Namespace](t)(shared.core.CoreV1().Namespaces().Update(t.Context(), object, metav1.UpdateOptions{}))
	n.admitted(r, 0)
}

// TestRouteMetricsControllerRouteAndNamespaceSelector: the same for a shard that selects both.
func TestRouteMetricsControllerRouteAndNamespaceSelector(t *testing.T) {
	t.Parallel()
	n, other := newNamespace(t, map[string]string{"type": "both"}), newNamespace(t, nil)
	r := alone(t, env("NAMESPACE_LABELS", "type=both"))
	n.create(n.newRoute(r, "foo"))
	unlabelled := n.newRoute(r, "bar")
	unlabelled.Labels = nil
	n.create(unlabelled)
	other.create(other.newRoute(r, "foo"))
	n.admitted(r, 1)
	other.admitted(r, 0)
}

// admitted waits until a router says of so many routes of the namespace that they are admitted.
func (n namespace) admitted(r *router, want int) {
	n.Helper()
	eventually(n, "number of admitted routes", func() error {
		list, err := shared.routes.RouteV1().Routes(n.name).List(n.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		got := 0
		for i := range list.Items {
			if verdict(&list.Items[i], r.name) == "True" {
				got++
			}
		}
		if got != want {
			return fmt.Errorf("%d, want %d", got, want)
		}
		return nil
	})
}
