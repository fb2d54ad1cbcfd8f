package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"turnout/bench/site"
)

// checks measures health checks of many endpoints: the processor time of a minute with them less that of a minute without, the
// descriptors, and how evenly the checks come; of checks that connect, that ask, and that ask over TLS.
func checks(f *flag.FlagSet) func(*site.T) {
	endpoints := f.Int("endpoints", 20_000, "how many endpoints are checked")
	interval := f.Duration("interval", 5*time.Second, "of the checks of an endpoint")
	seconds := f.Int("seconds", 60, "how long each of the four measurements is")
	connect := f.Float64("bound", 7, "percent of a core that checks may cost")
	asking := f.Float64("asking", 9, "percent of a core that checks may cost that ask")
	secure := f.Float64("secure", 40, "percent of a core that checks may cost that ask over TLS")
	return func(t *site.T) {
		pair := site.NewKeyPair("pod.test", false)
		plain, overTLS := checked(t, nil), checked(t, &tls.Config{Certificates: []tls.Certificate{pair.TLS()}, MinVersion: tls.VersionTLS12})
		const asks = "turnout.router/health-check-path: /healthz"
		without := measureChecks(t, checkedSites(*endpoints, plain, "", ""), 24*time.Hour, *seconds)
		for _, kind := range []struct {
			name  string
			sites string
			bound float64
		}{
			{"connect", checkedSites(*endpoints, plain, "", ""), *connect},
			{"ask", checkedSites(*endpoints, plain, asks, ""), *asking},
			{"ask over TLS", checkedSites(*endpoints, overTLS, asks, fmt.Sprintf("termination: reencrypt, destinationCACertificate: %q", pair.Certificate)), *secure},
		} {
			with := measureChecks(t, kind.sites, *interval, *seconds)
			cost := with.cpu - without.cpu
			share := 100 * cost.Seconds() / float64(*seconds)
			t.Printf("checks that %s, of %d endpoints every %v: %.2f s of processor time in %d s, %.1f %% of a core; %.1f µs for each of %.0f checks\n",
				kind.name, *endpoints, *interval, cost.Seconds(), *seconds, share, cost.Seconds()*1e6/max(with.checks, 1), with.checks)
			t.Printf("from %.0f to %.0f checks in a second; %d descriptors more than without, at most\n", with.least, with.most, with.descriptors-without.descriptors)
			if with.checks == 0 {
				t.Failf("no endpoint was checked")
			}
			if with.failed > 0 {
				t.Failf("%.0f of the checks failed", with.failed)
			}
			if share > kind.bound {
				t.Failf("checks that %s cost %.1f %% of a core, more than %.1f", kind.name, share, kind.bound)
			}
		}
	}
}

// checked has all addresses of loopback accept connections, over TLS unless cfg is nil, and answer who asks. It returns the port.
func checked(t *site.T, cfg *tls.Config) int {
	pods := site.ServeConns(netip.MustParseAddrPort("0.0.0.0:0"), func(c net.Conn) {
		if cfg != nil {
			c = tls.Server(c, cfg)
		}
		if n, err := c.Read(make([]byte, 1024)); n > 0 && err == nil { // else nothing was asked
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
		}
		_ = c.Close() // with close_notify
	})
	t.Cleanup(pods.Close)
	return pods.Port()
}

// checkedSites are routes to services of 100 endpoints each, n in all.
func checkedSites(n, port int, annotations, tls string) string {
	const perService = 100
	var b strings.Builder
	for first := 0; first < n; first += perService {
		name := fmt.Sprintf("app-%d", first/perService)
		var addrs []netip.Addr
		for i := first; i < min(first+perService, n); i++ {
			addrs = append(addrs, netip.AddrFrom4([4]byte{127, byte(1 + i/62500), byte(i / 250 % 250), byte(1 + i%250)}))
		}
		b.WriteString(site.Route{Host: name + ".test", Service: name, Annotations: annotations, TLS: tls}.String())
		b.WriteString(site.Service{Name: name, Port: port, Addrs: addrs}.String())
	}
	return b.String()
}

// checkFigures are what a measurement found.
type checkFigures struct {
	cpu         time.Duration
	checks      float64
	failed      float64
	least, most float64 // in a second
	descriptors int     // most at a time
}

// measureChecks runs a router whose endpoints are checked every interval.
func measureChecks(t *site.T, manifests string, interval time.Duration, seconds int) (f checkFigures) {
	const total, looks = "turnout_health_checks_total", 10 // in a second, at descriptors
	router := site.Start(t.Context, site.Config{
		Program: t.Program, Manifests: manifests, Env: []string{fmt.Sprintf("ROUTER_BACKEND_CHECK_INTERVAL=%dms", interval.Milliseconds())},
	})
	defer router.Stop()
	settle := 5 * time.Second // after reading the manifests
	if interval < time.Hour {
		settle = 10 * interval // until every endpoint was checked
	}
	t.Wait(settle)
	before, began := router.Metric(t.Context, total), router.CPU()
	last := before
	for second := range seconds {
		for range looks {
			t.Wait(time.Second / looks)
			f.descriptors = max(f.descriptors, len(router.Descriptors()))
		}
		now := router.Metric(t.Context, total)
		if n := now - last; second == 0 || n < f.least {
			f.least = n
		}
		f.most, last = max(f.most, now-last), now
	}
	f.checks, f.cpu = router.Metric(t.Context, total)-before, router.CPU()-began
	f.failed = router.Samples(t.Context)[total+`{outcome="failed"}`]
	t.Printf("checked every %v: %.2f s of processor time in %d s\n", interval, f.cpu.Seconds(), seconds)
	return f
}
