package metrics

import (
	"io"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"turnout/internal/bound"
	"turnout/internal/dns/server"
	"turnout/internal/dns/zone"
)

func dnsConfig(t *testing.T) DNSConfig {
	t.Helper()
	z, err := zone.New(zone.Spec{
		Origin: "shard1.test", Servers: []zone.Server{{Name: "ns.example.com"}}, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")},
		Names: []zone.Name{{Name: "a.shard1.test", Target: "b.example.com"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	set, err := zone.NewSet(z.WithSerial(1790000000))
	if err != nil {
		t.Fatal(err)
	}
	bounds := new(bound.Counts)
	bounds.Reached(bound.NameAnswers)
	stats := server.Stats{UDP: 1, TCP: 2, Truncated: 3, Slipped: 4, Dropped: 5, Malformed: 6, Signed: 7, BadSigned: 8, Transfers: 9, Refused: 10, Notified: 11, NotNotified: 12, Panics: 13, Connections: 14}
	for i := range stats.Answers {
		stats.Answers[i] = uint64(100 + i)
	}
	return DNSConfig{
		Version: "v1", Zones: func() *zone.Set { return set }, Server: func() server.Stats { return stats }, Bounds: bounds,
		Source: func() DNSSource {
			return DNSSource{Routers: 21, Bindings: 22, LeftOut: 23, Changes: 24, FileErrors: 25, EndpointErrors: 26}
		},
	}
}

// declaredDNS is declared of turnout dns.
func declaredDNS(t *testing.T) map[string]string {
	t.Helper()
	c, err := newDNSCollector(dnsConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	c.describe(declareInto(all))
	return all
}

func TestDNS(t *testing.T) {
	h, err := NewDNS(dnsConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, want := range strings.Split(strings.TrimSpace(`
turnout_build_info{version="v1"} 1
turnout_bound_reached_total{bound="dns-answers"} 1
turnout_dns_zones 1
turnout_dns_zone_serial{zone="shard1.test."} 1.79e+09
turnout_dns_zone_addresses{zone="shard1.test."} 1
turnout_dns_zone_names{zone="shard1.test."} 2
turnout_dns_queries_total{protocol="udp"} 1
turnout_dns_queries_total{protocol="tcp"} 2
turnout_dns_answers_total{rcode="noerror"} 100
turnout_dns_answers_total{rcode="nxdomain"} 103
turnout_dns_answers_total{rcode="notauth"} 109
turnout_dns_truncated_total 3
turnout_dns_rate_limited_total{action="truncated"} 4
turnout_dns_rate_limited_total{action="dropped"} 5
turnout_dns_malformed_total 6
turnout_dns_signed_total{signature="right"} 7
turnout_dns_signed_total{signature="wrong"} 8
turnout_dns_transfers_total{outcome="begun"} 9
turnout_dns_transfers_total{outcome="refused"} 10
turnout_dns_notifies_total{outcome="notified"} 11
turnout_dns_notifies_total{outcome="failed"} 12
turnout_panics_total 13
turnout_dns_connections_open 14
turnout_dns_routers 21
turnout_dns_bindings 22
turnout_dns_left_out 23
turnout_dns_changes_total 24
turnout_dns_write_errors_total{kind="file"} 25
turnout_dns_write_errors_total{kind="endpoint"} 26`), "\n") {
		if !slices.Contains(lines, want) {
			t.Errorf("no %s", want)
		}
	}
	if !strings.Contains(string(text), "go_goroutines ") || !strings.Contains(string(text), "process_cpu_seconds_total ") {
		t.Error("nothing of the process")
	}
	if _, err := NewDNS(DNSConfig{}); err == nil {
		t.Error("no zones")
	}
}
