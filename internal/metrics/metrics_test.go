package metrics

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"turnout/balancer"
	"turnout/internal/accesslog"
	"turnout/internal/keypair"
	"turnout/internal/overload"
	"turnout/internal/server"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/tracing"
	"turnout/internal/traffic"
	"turnout/proxy"
	"turnout/proxy/datagram"
	"turnout/routing"
	"turnout/tlsmux"
	"turnout/tlsmux/clientcert"
)

// fixture is a table of one route per termination with two servers each.
func fixture(t testing.TB) *routing.Table {
	t.Helper()
	registry := balancer.NewRegistry()
	var specs []routing.RouteSpec
	for i, term := range []routing.Termination{routing.TermNone, routing.TermEdge, routing.TermReencrypt, routing.TermPassthrough} {
		var targets []balancer.Target
		for n := range 2 {
			addr := netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(8000+10*i+n))
			pod := fmt.Sprintf("pod-%d", n)
			targets = append(targets, balancer.Target{ID: balancer.ServerID(pod, "svc", "http", addr.Addr().String(), addr.Port()), Addr: testaddr.Of(addr), Weight: 100, Pod: pod, Service: "svc"})
		}
		var own *routing.CertificateSpec
		if term == routing.TermEdge {
			own = &routing.CertificateSpec{Leaf: expiring(1234)}
		}
		specs = append(specs, routing.RouteSpec{
			Certificate: own,
			RouteKey:    routing.RouteKey{Namespace: "ns", Name: term.String() + "-route", UID: fmt.Sprint(i)},
			Host:        term.String() + ".example.com", Termination: term, Targets: targets,
		})
	}
	table, rejected := routing.Compile(routing.Options{Registry: registry, DefaultCertificate: &tls.Certificate{Leaf: &x509.Certificate{NotAfter: time.Unix(5678, 0)}}}, nil, specs)
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	routing.NewStore().Publish(table)
	return table
}

// expiring returns a certificate of which nothing is known but its end.
func expiring(at int64) *keypair.Leaf {
	return &keypair.Leaf{NotAfter: time.Unix(at, 0)}
}

func config(t testing.TB) Config {
	table := fixture(t)
	var ports [2]traffic.Sessions
	for i := range ports {
		ports[0].Begin(int64(i))
	}
	ports[1].Begin(0)
	return Config{
		Ports: &ports, MaxConnections: func() int { return 50000 },
		Version: "v1.2.3",
		Table:   func() *routing.Table { return table },
		Totals: func() proxy.Totals {
			totals := proxy.Totals{Active: 3, Requests: 10, Connections: [2]uint64{7, 8}, Open: [2]int64{1, 2}}
			totals.Ports[1].BytesIn, totals.Ports[0].Answers[4] = 51, 52
			totals.Reasons[proxy.ReasonNoRoute] = 4
			return totals
		},
		TLS: func() tlsmux.Load {
			l := tlsmux.Load{Pending: 31, Waiting: 32}
			l.Steps[tlsmux.WorkRSA], l.Time[tlsmux.WorkRSA], l.Refused[tlsmux.WorkRSA] = 33, 1500*time.Millisecond, 34
			l.AsksClients, l.ListEnds = true, []clientcert.ListEnd{{Issuer: "CN=ca", At: time.Unix(9876, 0)}}
			l.ClientRefused[clientcert.Revoked] = 35
			return l
		},
		Tunnels: func() map[proxy.TunnelRoute]int {
			return map[proxy.TunnelRoute]int{{Namespace: "ns", Name: "gone"}: 45}
		},
		Datagrams: func() server.Datagrams {
			return server.Datagrams{Sessions: 61, Begun: 62, In: 63, Out: 64, Dropped: [datagram.Drops]uint64{datagram.DropRefused: 65}}
		},
		Log:    func() accesslog.Stats { return accesslog.Stats{Written: 5, Dropped: 6} },
		Traces: func() tracing.Stats { return tracing.Stats{Exported: 51, Failed: 52, Dropped: 53} },
		Source: func() Source {
			return Source{Objects: 11, Problems: 1, Rejected: 2, Changed: time.UnixMilli(1700000000500), Tables: 71, Waiting: 3, Publish: 1500 * time.Millisecond, Propagation: &traffic.Histogram{}}
		},
		Load: func() server.Load {
			l := server.Load{Waiting: [2]int{41, 42}, Addresses: 43}
			l.Reasons[overload.Memory] = overload.Stat{Now: true, Times: 44, Time: 2500 * time.Millisecond}
			return l
		},
		Status: func() Status {
			return Status{Written: 21, Removed: 22, Conflicts: 23, Contended: 24, Failed: 25, Pending: 26, Leader: true}
		},
	}
}

// scrape returns every series as "name{label=value,...}" with its value.
func scrape(t *testing.T, cfg Config) map[string]float64 {
	t.Helper()
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for name, family := range families {
		for _, m := range family.Metric {
			series[name+labelsOfSeries(m.Label)] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return series
}

func labelsOfSeries(labels []*dto.LabelPair) string {
	if len(labels) == 0 {
		return ""
	}
	var pairs []string
	for _, l := range labels {
		pairs = append(pairs, l.GetName()+"="+l.GetValue())
	}
	slices.Sort(pairs)
	return "{" + strings.Join(pairs, ",") + "}"
}

func TestSeries(t *testing.T) {
	cfg := config(t)
	for r := range cfg.Table().Routes {
		if r.Name() != "edge-route" {
			continue
		}
		stats := r.Stats()
		stats.Sessions.Begin(0)
		stats.Sessions.Begin(0)
		stats.Sessions.End()
		stats.Answers[2].Add(1)
		stats.Answers[5].Add(1)
		stats.CountBytes(101, 2002)
		stats.Errors.Add(1)
		lease, ok := r.Pool().Pick(balancer.Pick{Cookie: []byte(r.Pool().Servers()[1].Cookie())})
		if !ok {
			t.Fatal("no server")
		}
		defer lease.Release()
		lease.Server().CountFailure()
	}
	got := scrape(t, cfg)
	for name, want := range map[string]float64{
		"turnout_build_info{version=v1.2.3}":      1,
		"turnout_routes{termination=http}":        1,
		"turnout_routes{termination=passthrough}": 1,
		"turnout_requests_total":                  10,
		"turnout_requests_active":                 3,
		"turnout_udp_sessions_open":               61, "turnout_udp_sessions_total": 62, "turnout_udp_datagrams_total{direction=in}": 63, "turnout_udp_datagrams_total{direction=out}": 64, "turnout_udp_datagrams_dropped_total{reason=refused}": 65,
		"turnout_exchanges_total{reason=no-route}":                        4,
		"turnout_exchanges_total{reason=ok}":                              0,
		"turnout_connections_total{port=https}":                           8,
		"turnout_connections_open{port=http}":                             1,
		"haproxy_frontend_connections_total{frontend=public}":             2,
		"haproxy_frontend_current_sessions{frontend=public_ssl}":          1,
		"haproxy_frontend_max_sessions{frontend=public}":                  2,
		"haproxy_frontend_bytes_in_total{frontend=public_ssl}":            51,
		"haproxy_frontend_http_responses_total{code=4xx,frontend=public}": 52,
		"haproxy_max_connections":                                         50000,
		"haproxy_exporter_total_scrapes":                                  1,
		"turnout_access_log_lines_total":                                  5,
		"turnout_access_log_dropped_total":                                6,
		"turnout_table_changed_timestamp_seconds":                         1700000000.5,
		"turnout_source_objects":                                          11,
		"turnout_source_problems":                                         1,
		"turnout_objects_waiting":                                         3,
		"turnout_table_changes_total":                                     71, "template_router_reload_failure": 0,
		"turnout_routes_rejected":                                                                                          2,
		"turnout_status_writes_total{outcome=written}":                                                                     21,
		"turnout_status_writes_total{outcome=removed}":                                                                     22,
		"turnout_status_writes_total{outcome=conflict}":                                                                    23,
		"turnout_status_writes_total{outcome=contended}":                                                                   24,
		"turnout_status_writes_total{outcome=failed}":                                                                      25,
		"turnout_status_pending":                                                                                           26,
		"turnout_status_leader":                                                                                            1,
		"turnout_overload{reason=memory}":                                                                                  1,
		"turnout_overload{reason=late}":                                                                                    0,
		"turnout_overload_begun_total{reason=memory}":                                                                      44,
		"turnout_overload_seconds_total{reason=memory}":                                                                    2.5,
		"turnout_connections_waiting{port=http}":                                                                           41,
		"turnout_connections_waiting{port=https}":                                                                          42,
		"turnout_route_tunnels_open{namespace=ns,route=gone}":                                                              45,
		"turnout_rate_limit_addresses":                                                                                     43,
		"turnout_tls_handshakes_pending":                                                                                   31,
		"turnout_tls_handshakes_waiting":                                                                                   32,
		"turnout_tls_handshake_turns_total{work=rsa}":                                                                      33,
		"turnout_tls_handshake_steps_total{work=rsa}":                                                                      33,
		"turnout_tls_handshake_seconds_total{work=rsa}":                                                                    1.5,
		"turnout_tls_handshakes_refused_total{work=rsa}":                                                                   34,
		"turnout_client_certificates_refused_total{reason=revoked}":                                                        35,
		"turnout_client_certificates_refused_total{reason=no-list}":                                                        0,
		"turnout_client_revocation_list_expiry_timestamp_seconds{issuer=CN=ca}":                                            9876,
		"turnout_tls_handshake_turns_total{work=ecdsa}":                                                                    0,
		"turnout_tls_handshake_steps_total{work=ecdsa}":                                                                    0,
		"turnout_certificate_expiry_timestamp_seconds{namespace=ns,route=edge-route}":                                      1234,
		"turnout_default_certificate_expiry_timestamp_seconds":                                                             5678,
		"turnout_route_errors_total{namespace=ns,route=edge-route}":                                                        1,
		"haproxy_backend_connections_total{backend=https-edge,namespace=ns,route=edge-route}":                              2,
		"haproxy_backend_current_sessions{backend=https-edge,namespace=ns,route=edge-route}":                               1,
		"haproxy_backend_bytes_in_total{backend=https-edge,namespace=ns,route=edge-route}":                                 101,
		"haproxy_backend_bytes_out_total{backend=https-edge,namespace=ns,route=edge-route}":                                2002,
		"haproxy_backend_http_responses_total{backend=https-edge,code=2xx,namespace=ns,route=edge-route}":                  1,
		"haproxy_backend_http_responses_total{backend=https-edge,code=5xx,namespace=ns,route=edge-route}":                  1,
		"haproxy_backend_http_responses_total{backend=https-edge,code=other,namespace=ns,route=edge-route}":                0,
		"haproxy_backend_up{backend=tcp,namespace=ns,route=passthrough-route}":                                             1,
		"haproxy_backend_up{backend=https,namespace=ns,route=reencrypt-route}":                                             1,
		"haproxy_backend_up{backend=http,namespace=ns,route=http-route}":                                                   1,
		"haproxy_server_connections_total{namespace=ns,pod=pod-1,route=edge-route,server=10.0.0.1:8011,service=svc}":       1,
		"haproxy_server_current_sessions{namespace=ns,pod=pod-1,route=edge-route,server=10.0.0.1:8011,service=svc}":        1,
		"haproxy_server_connection_errors_total{namespace=ns,pod=pod-1,route=edge-route,server=10.0.0.1:8011,service=svc}": 1,
		"haproxy_server_weight{namespace=ns,pod=pod-0,route=edge-route,server=10.0.0.1:8010,service=svc}":                  100,
		"haproxy_server_up{namespace=ns,pod=pod-0,route=edge-route,server=10.0.0.1:8010,service=svc}":                      1,
		"haproxy_exporter_server_threshold{type=current}":                                                                  8,
		"haproxy_exporter_server_threshold{type=limit}":                                                                    500,
		"haproxy_up": 1,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s = %v (present: %v), want %v", name, v, ok, want)
		}
	}
	if _, ok := got["turnout_certificate_expiry_timestamp_seconds{namespace=ns,route=reencrypt-route}"]; ok {
		t.Error("a route with the default certificate has an expiry of its own")
	}
	for _, runtime := range []string{"go_goroutines", "process_resident_memory_bytes"} {
		if _, ok := got[runtime]; !ok {
			t.Errorf("no %s", runtime)
		}
	}
}

// TestAboveTheThresholdNoServerIsListed: of eight servers all are, or none.
func TestAboveTheThresholdNoServerIsListed(t *testing.T) {
	for threshold, want := range map[int]int{7: 0, 8: 8, 9: 8} {
		cfg := config(t)
		cfg.ServerThreshold = threshold
		listed, up := 0, 0
		for name := range scrape(t, cfg) {
			if strings.HasPrefix(name, "haproxy_server_") {
				listed++
			}
			if strings.HasPrefix(name, "haproxy_server_up{") {
				up++
			}
		}
		if up != want || listed > 0 != (want > 0) {
			t.Errorf("threshold %d: %d series of %d servers, want %d servers", threshold, listed, up, want)
		}
	}
}

func TestServersOfTheSameNameShareASeries(t *testing.T) {
	addr := netip.MustParseAddrPort("[2001:db8::1]:80")
	table, _ := routing.Compile(routing.Options{}, nil, []routing.RouteSpec{{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: "r", UID: "1"}, Host: "h.example.com",
		Targets: []balancer.Target{
			{ID: balancer.ServerID("p", "s", "a", addr.Addr().String(), addr.Port()), Addr: testaddr.Of(addr), Weight: 1, Pod: "p", Service: "s"},
			{ID: balancer.ServerID("p", "s", "b", addr.Addr().String(), addr.Port()), Addr: testaddr.Of(addr), Weight: 2, Pod: "p", Service: "s"},
		},
	}})
	routing.NewStore().Publish(table)
	cfg := config(t)
	cfg.Table = func() *routing.Table { return table }
	name := "haproxy_server_weight{namespace=ns,pod=p,route=r,server=2001:db8::1:80,service=s}"
	if got := scrape(t, cfg); got[name] != 3 {
		t.Errorf("%s = %v", name, got[name])
	}
}

func TestEmptyTable(t *testing.T) {
	cfg := config(t)
	store := routing.NewStore()
	cfg.Table, cfg.Log, cfg.Source, cfg.Status = store.Load, nil, nil, nil
	got := scrape(t, cfg)
	if _, ok := got["turnout_access_log_lines_total"]; ok {
		t.Error("access log series without an access log")
	}
	if _, ok := got["turnout_status_pending"]; ok {
		t.Error("status series without status")
	}
	if got["turnout_table_generation"] != 0 || got["haproxy_up"] != 1 {
		t.Error(got)
	}
}

func TestOddNamesHideNothingElse(t *testing.T) {
	table, _ := routing.Compile(routing.Options{}, nil, []routing.RouteSpec{
		{RouteKey: routing.RouteKey{Namespace: "ns", Name: "bad\xff", UID: "1"}, Host: "bad.example.com"},
		{RouteKey: routing.RouteKey{Namespace: "ns", Name: "good", UID: "2"}, Host: "good.example.com"},
	})
	cfg := config(t)
	cfg.Table = func() *routing.Table { return table }
	if _, ok := scrape(t, cfg)["haproxy_backend_up{backend=http,namespace=ns,route=good}"]; !ok {
		t.Error("the good route is missing")
	}
}

func TestConfig(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("no table, no totals: accepted")
	}
}

var documentedRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (counter|gauge|histogram|summary) \\|([^|]*)\\|")

// TestMetricsAreDocumented compares every name, type and label with docs/metrics.md.
func TestMetricsAreDocumented(t *testing.T) {
	all := declared(t, everyColumn())
	maps.Copy(all, declaredDNS(t))
	for _, wrong := range misdocumented(all, metricsPage(t)) {
		t.Error(wrong)
	}
}

// everyColumn are the numbers of all columns.
func everyColumn() (all []int) {
	for _, c := range haproxyColumns() {
		all = append(all, c.number)
	}
	return all
}

// declared is the type and the labels of every family, "gauge a,b", when these columns are exported.
func declared(t *testing.T, columns []int) map[string]string {
	t.Helper()
	cfg := config(t)
	cfg.Columns = columns
	c, err := newCollector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range []interface {
		describe(each func(*prometheus.Desc, prometheus.ValueType))
	}{c.scrape, c.process, c.totals, c.tls, c.log, c.traces, c.source, c.status, c.health, c.load, c.tunnels, c.udp, c.table, schedulerFamilies(), converterFamilies()} {
		f.describe(declareInto(all))
	}
	for _, d := range c.described() {
		name := nameOf.FindStringSubmatch(d.String())[1]
		kind := "histogram"
		if strings.HasPrefix(name, "template_router_") {
			kind = "summary"
		}
		all[name] = declaration(kind, strings.Split(labelsOf.FindStringSubmatch(d.String())[1], ","))
	}
	declareRows(all, c.route)
	declareRows(all, c.haproxy.ports)
	declareRows(all, c.haproxy.backends)
	declareRows(all, c.haproxy.servers)
	return all
}

// declareInto adds the type and the labels of families to all.
func declareInto(all map[string]string) func(*prometheus.Desc, prometheus.ValueType) {
	return func(d *prometheus.Desc, of prometheus.ValueType) {
		kind := "gauge"
		if of == prometheus.CounterValue {
			kind = "counter"
		}
		all[nameOf.FindStringSubmatch(d.String())[1]] = declaration(kind, strings.Split(labelsOf.FindStringSubmatch(d.String())[1], ","))
	}
}

func declareRows[R any](all map[string]string, families []rowFamily[R]) {
	for _, f := range families {
		all[f.name] = declaration(f.typed(), slices.Clone(f.labels))
	}
}

func declaration(kind string, labels []string) string {
	slices.Sort(labels)
	return kind + " " + strings.Join(labels, ",")
}

func metricsPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// misdocumented says in what a page and the metrics differ.
func misdocumented(exported map[string]string, page string) (wrong []string) {
	documented := map[string]string{}
	for _, m := range documentedRow.FindAllStringSubmatch(page, -1) {
		labels := strings.FieldsFunc(m[3], func(r rune) bool { return strings.ContainsRune("`, ", r) })
		slices.Sort(labels)
		documented[m[1]] = m[2] + " " + strings.Join(labels, ",")
	}
	for name, want := range exported {
		if documented[name] != want {
			wrong = append(wrong, fmt.Sprintf("%s is %q, docs/metrics.md says %q", name, want, documented[name]))
		}
	}
	for name := range documented {
		if exported[name] == "" {
			wrong = append(wrong, fmt.Sprintf("docs/metrics.md describes %s, which does not exist", name))
		}
	}
	return wrong
}

var (
	nameOf   = regexp.MustCompile(`fqName: "([^"]*)"`)
	labelsOf = regexp.MustCompile(`variableLabels: \{([^}]*)\}`)
)
