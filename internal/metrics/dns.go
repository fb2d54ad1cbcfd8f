package metrics

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"turnout/internal/bound"
	"turnout/internal/dns/server"
	"turnout/internal/dns/zone"
	"turnout/internal/problem"
)

// DNSConfig says where the numbers of turnout dns come from. Each function is called once per scrape, from the scraping goroutine.
type DNSConfig struct {
	Version string              // of the build
	Zones   func() *zone.Set    // required: what is answered from
	Server  func() server.Stats // nil: nobody is answered
	Source  func() DNSSource    // nil: no source counts
	Bounds  *bound.Counts       // nil: none was ever reached
	// Problems are those that there are now; nil: none.
	Problems *problem.List
}

// DNSSource is what turnout dns makes of the objects of a cluster.
type DNSSource struct {
	Routers, Bindings int
	LeftOut           int    // Routers that have no zone, and names that are in none, for a reason that the list of problems has
	Changes           uint64 // sets of zones that were published
	FileErrors        uint64 // zone files that could not be written
	EndpointErrors    uint64 // DNSEndpoint objects that could not be written
}

// NewDNS returns what serves the metrics of turnout dns, with those of the Go runtime and the process.
func NewDNS(cfg DNSConfig) (http.Handler, error) {
	c, err := newDNSCollector(cfg)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	zips := new(sync.Pool)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve(w, r, zips, func(w io.Writer, format expfmt.Format) {
			encoder := expfmt.NewEncoder(w, format)
			if encode(encoder, registry) {
				end(encoder)
			}
		})
	}), nil
}

// dnsCollector reads the packages of turnout dns when Collect is called.
type dnsCollector struct {
	cfg     DNSConfig
	process families[DNSConfig]
	zones   families[*zone.Set]
	server  families[server.Stats]
	source  families[DNSSource]
}

func newDNSCollector(cfg DNSConfig) (*dnsCollector, error) {
	if cfg.Zones == nil {
		return nil, errors.New("cannot make metrics: Zones are required")
	}
	return &dnsCollector{cfg: cfg, process: dnsProcessFamilies(), zones: zoneFamilies(), server: dnsServerFamilies(), source: dnsSourceFamilies()}, nil
}

// Describe implements prometheus.Collector.
func (c *dnsCollector) Describe(out chan<- *prometheus.Desc) {
	c.describe(func(d *prometheus.Desc, _ prometheus.ValueType) { out <- d })
}

func (c *dnsCollector) describe(each func(*prometheus.Desc, prometheus.ValueType)) {
	c.process.describe(each)
	c.zones.describe(each)
	c.server.describe(each)
	c.source.describe(each)
}

// Collect implements prometheus.Collector.
func (c *dnsCollector) Collect(out chan<- prometheus.Metric) {
	c.process.collect(out, c.cfg)
	c.zones.collect(out, c.cfg.Zones())
	collectFrom(out, c.server, c.cfg.Server)
	collectFrom(out, c.source, c.cfg.Source)
}

func dnsProcessFamilies() families[DNSConfig] {
	return families[DNSConfig]{
		gauge("turnout_build_info", "Always 1; the label is the version of the build.",
			func(c DNSConfig, send send) { send(1, c.Version) }, "version"),
		gauge("turnout_problems", "What is wrong now, by kind.",
			func(c DNSConfig, send send) { sendProblems(c.Problems, send) }, "kind"),
		counter("turnout_bound_reached_total", "How often a bound on what clients may use was reached.",
			func(c DNSConfig, send send) { sendBounds(c.Bounds, send) }, "bound"),
	}
}

// sendProblems sends how many problems of each kind there are.
func sendProblems(list *problem.List, send send) {
	for kind, n := range list.Counts() {
		send(float64(n), problem.Kind(kind).String())
	}
}

// sendBounds sends how often each bound was reached.
func sendBounds(counts *bound.Counts, send send) {
	for _, n := range bound.All() {
		send(float64(counts.Of(n)), n.String())
	}
}

func zoneFamilies() families[*zone.Set] {
	each := func(value func(*zone.Zone) float64) func(*zone.Set, send) {
		return func(s *zone.Set, send send) {
			for _, z := range s.All() {
				send(value(z), z.Origin())
			}
		}
	}
	return families[*zone.Set]{
		gauge("turnout_dns_zones", "Zones that are answered for.", number(func(s *zone.Set) int { return len(s.All()) })),
		gauge("turnout_dns_zone_serial", "Serial of a zone.", each(func(z *zone.Zone) float64 { return float64(z.Serial()) }), "zone"),
		gauge("turnout_dns_zone_addresses", "Addresses of the router of a zone; 0: its names are not there.", each(func(z *zone.Zone) float64 { return float64(z.Addresses()) }), "zone"),
		gauge("turnout_dns_zone_names", "Names of a zone with records of their own.", each(func(z *zone.Zone) float64 { return float64(z.Names()) }), "zone"),
	}
}

// rcodes are the labels of rcodes in the header (RFC 1035 section 4.1.1, RFC 2136, RFC 8945); others have none.
var rcodes = [server.MaxRcode + 1]string{0: "noerror", 1: "formerr", 2: "servfail", 3: "nxdomain", 4: "notimp", 5: "refused", 9: "notauth"}

func dnsServerFamilies() families[server.Stats] {
	return families[server.Stats]{
		counter("turnout_dns_queries_total", "Queries, by protocol.",
			func(s server.Stats, send send) {
				send(float64(s.UDP), "udp")
				send(float64(s.TCP), "tcp")
			}, "protocol"),
		counter("turnout_dns_answers_total", "Answers, by their rcode.",
			func(s server.Stats, send send) {
				for i, rcode := range rcodes {
					if rcode != "" {
						send(float64(s.Answers[i]), rcode)
					}
				}
			}, "rcode"),
		counter("turnout_dns_truncated_total", "Answers over UDP that did not fit.", number(func(s server.Stats) uint64 { return s.Truncated })),
		counter("turnout_dns_rate_limited_total", "Queries over UDP beyond the rate of their client, by what became of them.",
			func(s server.Stats, send send) {
				send(float64(s.Slipped), "truncated")
				send(float64(s.Dropped), "dropped")
			}, "action"),
		counter("turnout_dns_malformed_total", "Messages that are no queries, and were not answered.", number(func(s server.Stats) uint64 { return s.Malformed })),
		counter("turnout_dns_signed_total", "Queries with a signature (TSIG), by whether it was right.",
			func(s server.Stats, send send) {
				send(float64(s.Signed), "right")
				send(float64(s.BadSigned), "wrong")
			}, "signature"),
		counter("turnout_dns_transfers_total", "Transfers of zones, by what became of them.",
			func(s server.Stats, send send) {
				send(float64(s.Transfers), "begun")
				send(float64(s.Refused), "refused")
			}, "outcome"),
		counter("turnout_dns_notifies_total", "Secondaries that were to be notified of a change, by what became of it.",
			func(s server.Stats, send send) {
				send(float64(s.Notified), "notified")
				send(float64(s.NotNotified), "failed")
			}, "outcome"),
		gauge("turnout_dns_connections_open", "Connections over TCP.", number(func(s server.Stats) int { return s.Connections })),
		counter("turnout_panics_total", "Panics that ended a query or a connection, and not the process. Each is a bug.", number(func(s server.Stats) uint64 { return s.Panics })),
	}
}

func dnsSourceFamilies() families[DNSSource] {
	return families[DNSSource]{
		gauge("turnout_dns_routers", "Router objects.", number(func(s DNSSource) int { return s.Routers })),
		gauge("turnout_dns_bindings", "RouteBinding objects.", number(func(s DNSSource) int { return s.Bindings })),
		gauge("turnout_dns_left_out", "Routers without a zone and names in none, for a reason that the log has.", number(func(s DNSSource) int { return s.LeftOut })),
		counter("turnout_dns_changes_total", "Sets of zones that were published.", number(func(s DNSSource) uint64 { return s.Changes })),
		counter("turnout_dns_write_errors_total", "Zone files and DNSEndpoint objects that could not be written.",
			func(s DNSSource, send send) {
				send(float64(s.FileErrors), "file")
				send(float64(s.EndpointErrors), "endpoint")
			}, "kind"),
	}
}
