package demo

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
)

// listenerPort is the port of a listener in the manifest of a Gateway.
var listenerPort = regexp.MustCompile(`(?m)^    port: ([0-9]+)$`)

// free returns the manifest of a Gateway whose ports can be opened: one that is taken, or all with other, becomes another. What became of each is kept for the tour.
func (d *Demo) free(manifest string, other bool) (string, error) {
	var first error
	changed := listenerPort.ReplaceAllStringFunc(manifest, func(line string) string {
		wanted, _ := strconv.Atoi(listenerPort.FindStringSubmatch(line)[1]) // it is digits
		if d.ports[wanted] == 0 {
			ln, err := freePort(wanted, other)
			if err != nil {
				first = cmp.Or(first, err)
				return line
			}
			d.held = append(d.held, ln)
			d.ports[wanted] = ln.Addr().(*net.TCPAddr).Port
		}
		return fmt.Sprintf("    port: %d", d.ports[wanted])
	})
	return changed, first
}

// freePort listens on a port of loopback that nobody listens on: the wanted one if it is so and no other is asked for.
func freePort(wanted int, other bool) (net.Listener, error) {
	if other {
		wanted = 0
	}
	ln, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(wanted)))
	if err != nil && !other {
		return freePort(wanted, true)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find a port for a Gateway: %w", err)
	}
	return ln, nil
}

// release leaves the ports of Gateways to the router. Until then no pod can get one of them from the system.
func (d *Demo) release() {
	for _, ln := range d.held {
		_ = ln.Close()
	}
	d.held = nil
}

// GatewayTour returns the commands for the Gateway of the examples, none if it is not there. ports are those of its listeners, by those of the examples.
func GatewayTour(dir string, at Addresses, ports map[int]int) []Step {
	if len(ports) == 0 {
		return nil
	}
	to := func(port, listener int) string {
		return connectTo(port, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(ports[listener])))
	}
	plain := "curl -s " + to(80, 8081) + " "
	verified := "curl -s --cacert " + quote(caFile(dir)) + " " + to(443, 8444) + " "
	shares := `; done | grep -o '"service":"[^"]*"' | sort | uniq -c`
	return []Step{
		{"http-route-shop.yaml", "HTTPRoute: weights 3 and 1: who served 40 requests.",
			"for i in $(seq 40); do " + plain + "http://shop.examples.svc/" + shares, []string{`"service":"shop-stable"`, `"service":"shop-canary"`}},
		{"http-route-shop.yaml", "A header asks for the canary.",
			"for i in 1 2 3 4 5 6; do " + plain + "-H 'X-Canary: always' http://shop.examples.svc/" + shares, []string{`6 "service":"shop-canary"`}},
		{"http-route-shop.yaml", "The same route on the HTTPS listener, whose certificate is in a Secret.",
			verified + "-H 'X-Canary: always' https://shop.examples.svc/", []string{`"service":"shop-canary"`, `"tls":false`, `"x-forwarded-proto":"https"`}},
		{"http-route-filters.yaml", "Path and host are rewritten, and the answer gets a field.",
			plain + "-i http://filters.example.com/api/items?id=1", []string{`"path":"/v2/items?id=1"`, `"host":"inner.example.com"`, "x-answered-by: turnout"}},
		{"http-route-filters.yaml", "A redirect to https, with another path.",
			plain + "-i http://filters.example.com/old/page", []string{"301", "location: https://filters.example.com/new/page"}},
		{"http-route-filters.yaml", "A copy of the request goes to another Service; the metrics count it.",
			plain + "-d order http://filters.example.com/orders; curl -s " + connectTo(1936, at.Admin) + " http://localhost:1936/metrics | grep mirrored",
			[]string{`"service":"filters"`, `"body":5`, "turnout_mirrored_requests_total"}},
		{"tls-route.yaml", "TLSRoute: the pod's own certificate; the router only copies.",
			verified + "https://route-passthrough-secured.example.com/", []string{`"service":"gateway-passthrough"`, `"tls":true`}},
		{"", "A host that no route of the Gateway has.",
			plain + "-o /dev/null -w '%{http_code}\\n' http://nobody.example.com/", []string{"404"}},
	}
}
