package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"turnout/internal/testkit/testotlp"
)

// dashboard are the queries of the console's page "Networking / Ingress": I and O are bytes in and out, R responses, L latencies.
func dashboard() (queries []string) {
	queries = []string{
		`sum(rate(I[1m]))`, `sum(rate(O[1m]))`,
		`sum(increase(R{code=~"4xx|5xx", route!=""}[1m])) / sum(increase(R{route!=""}[1m]))`, `avg(L != 0)`,
	}
	for _, by := range []string{"route", "exported_namespace", "service"} {
		filter := `{route!=""}`
		if by == "exported_namespace" {
			filter = `{exported_namespace!=""}`
		}
		for _, q := range []string{
			`topk(10,sum(rate(IF[1m])) by (K) != 0)`, `topk(10,sum(rate(OF[1m])) by (K) != 0)`,
			`topk(10, sum(rate(R{code=~"4xx|5xx", route!=""}[1m]) != 0) by (K) / sum(rate(R{route!=""}[1m])) by (K))`,
			`topk(10,avg(LF != 0) by (K) != 0)`,
		} {
			q = strings.ReplaceAll(q, "K", by)
			queries = append(queries, strings.NewReplacer("IF", "I"+filter, "OF", "O"+filter, "LF", "L"+filter).Replace(q))
		}
	}
	queries = append(queries, `topk(10,count(count(haproxy_server_up == 1) by (route, service)) by (service) != 0)`)
	if len(queries) != 17 {
		panic("the page has 17 queries")
	}
	return append(queries, // of the page of one route
		`sum without (instance,exported_pod,exported_service,pod,server) (irate(I{exported_namespace="shop",route="front"}[5m]))`,
		`sum without (instance,exported_pod,exported_service,pod,server) (irate(O{exported_namespace="shop",route="front"}[5m]))`,
		`sum without (instance,exported_pod,exported_service,pod,server) (irate(haproxy_backend_connections_total{exported_namespace="shop",route="front"}[5m]))`,
	)
}

// clusterRules are those of the monitoring of a cluster, and what the alerts of the operator look at.
func clusterRules() []string {
	return []string{
		`sum by (code) (rate(R[5m]) > 0)`,
		`sum (rate(haproxy_frontend_bytes_in_total[5m]))`, `sum (rate(haproxy_frontend_bytes_out_total[5m]))`, `sum (haproxy_frontend_current_sessions)`,
		`sum(max without(service,endpoint,container,pod,job,namespace) (increase(R{code!~"2xx|1xx|4xx|3xx",exported_namespace!~"openshift-.*"}[5m]))) / sum(max without(service,endpoint,container,pod,job,namespace) (increase(R{exported_namespace!~"openshift-.*"}[5m])))`,
		`sum(max without(service,endpoint,container,pod,job,namespace) (irate(R{exported_namespace!~"openshift-.*"}[5m])))`,
		`sum by(exported_service) (rate(R{exported_namespace="shop", exported_service=~".*"}[5m]))`,
		`template_router_reload_failure == 0`, `haproxy_up == 1`, `haproxy_max_connections{namespace="openshift-ingress"}`, `rate(template_router_reload_seconds_count[5m]) >= 0`,
	}
}

// ownQueries are those of latencies, from classic or from native histograms, of which a server that takes them takes no others.
func ownQueries(native bool) []string {
	if native {
		return []string{
			`histogram_quantile(0.9, sum(rate(turnout_request_duration_seconds[1m])))`, `histogram_quantile(0.5, sum by (route) (rate(turnout_route_latency_seconds{route="front"}[1m])))`,
			`histogram_count(sum by (code) (rate(turnout_request_duration_seconds[1m])))`, `histogram_sum(turnout_upstream_connect_seconds)`, `histogram_count(turnout_time_to_first_byte_seconds)`,
		}
	}
	return []string{
		`sum by (code) (rate(turnout_request_duration_seconds_count[1m]))`,
		`histogram_quantile(0.99, sum by (le) (rate(turnout_request_duration_seconds_bucket[1m])))`,
		`histogram_quantile(0.5, sum by (le, route) (rate(turnout_route_latency_seconds_bucket{route="front"}[1m])))`,
		`rate(turnout_route_request_duration_seconds_sum{route="front"}[1m]) / rate(turnout_route_request_duration_seconds_count{route="front"}[1m])`,
		`turnout_time_to_first_byte_seconds_count`, `turnout_upstream_connect_seconds_count`, `turnout_table_changes_total`,
	}
}

// TestDashboardsInPrometheus runs the queries of dashboards, rules and alerts in a Prometheus that scrapes a router, once as text and once in
// Protocol Buffers: none is empty, and no value is NaN. The alerts of deploy/monitoring are loaded, and evaluated without an error.
func TestDashboardsInPrometheus(t *testing.T) { //nolint:tparallel // beside other tests; its own parts follow each other
	t.Parallel()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("needs prometheus, which .ci/run installs")
	}
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/404" {
			w.Header().Set("Connection", "close") // so that connections are made again and again
		}
		if status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/")); err == nil {
			w.WriteHeader(status)
		}
		_, _ = io.WriteString(w, strings.Repeat("hello", 100))
	})
	dir := siteDir(t, app)
	env := []string{"GOMEMLIMIT=1GiB", "OTEL_EXPORTER_OTLP_ENDPOINT=" + testotlp.Start(t).HTTP, "OTEL_BSP_SCHEDULE_DELAY=10"}
	p := startRouter(t, env, "run", "--manifests", dir, "--metrics-routes", "shop/front", "--admin-open", "--access-log", filepath.Join(t.TempDir(), "access.log"))
	panels, mayBeEmpty := panelQueries(t)
	servers := map[string]*prometheus{"text": startPrometheus(t, program, p.admin, ""), "native": startPrometheus(t, program, p.admin, "native-histograms")}
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			var queries []string
			for _, q := range slices.Concat(dashboard(), clusterRules(), ownQueries(name == "native")) {
				queries = append(queries, expand(q))
			}
			queries = append(queries, panels...)
			deadline := time.Now().Add(40 * time.Second)
			for n := 0; len(queries) > 0; n++ {
				write(t, dir, name+".yaml", fmt.Appendf(nil, podless, name, n))
				_, _ = get(t, "http://"+p.http+"/", name+".example.com")
				for _, path := range []string{"/", "/404", "/503"} {
					_, _ = get(t, "http://"+p.http+path, "front.example.com")
				}
				var empty []string
				for _, q := range queries {
					if !server.answers(t, q) {
						empty = append(empty, q)
					}
				}
				if queries = empty; time.Now().After(deadline) {
					break
				}
			}
			for _, q := range queries {
				t.Errorf("there is nothing in %s", q)
			}
			for _, q := range mayBeEmpty {
				server.answers(t, q)
			}
			server.checkRules(t)
		})
	}
}

// expand writes the names out that dashboard has letters for.
func expand(query string) string {
	var b strings.Builder
	for i := range len(query) {
		name := map[byte]string{
			'I': "haproxy_server_bytes_in_total", 'O': "haproxy_server_bytes_out_total", 'R': "haproxy_server_http_responses_total",
			'L': "haproxy_server_http_average_response_latency_milliseconds",
		}[query[i]]
		if name == "" {
			name = query[i : i+1]
		}
		b.WriteString(name)
	}
	return b.String()
}

// prometheus is a running server.
type prometheus struct{ addr string }

// startPrometheus has one scrape the admin port of a router as in a cluster: what the labels of the target and of series have in common
// is called exported_ in those of series.
func startPrometheus(t *testing.T, program, target, feature string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	alerts, err := filepath.Abs(filepath.Join(monitoring, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`global: {scrape_interval: 500ms, scrape_timeout: 400ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
- job_name: router-internal-default
  static_configs:
  - targets: [%q]
    labels: {namespace: openshift-ingress, service: router-internal-default, pod: router-default-1, endpoint: metrics, container: router}
`, alerts, target)
	write(t, dir, "prometheus.yml", []byte(config))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	c := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addr, "--log.level=error", "--enable-feature="+feature)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return &prometheus{addr}
}

// answers reports whether a query has a result, each of whose values is a number.
func (p *prometheus) answers(t *testing.T, query string) bool {
	t.Helper()
	response, err := http.Get("http://" + p.addr + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return false // it starts
	}
	defer response.Body.Close()
	var said struct {
		Error string
		Data  struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil || response.StatusCode == http.StatusServiceUnavailable {
		return false // the same
	}
	if said.Error != "" {
		t.Fatalf("%s: %s", query, said.Error)
	}
	for _, r := range said.Data.Result {
		if r.Value[1] == "NaN" {
			return false
		}
	}
	return len(said.Data.Result) > 0
}
