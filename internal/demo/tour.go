package demo

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
)

// Addresses are where the router of the demo serves.
type Addresses struct{ HTTP, HTTPS, Admin netip.AddrPort }

// Step is one command of the tour.
type Step struct {
	File    string   // the example it shows; "" for the admin server
	About   string   // one line
	Command string   // for a POSIX shell with curl
	Want    []string // each occurs in the command's output
}

// Tour returns the commands to try with the router at the given addresses, in a
// good order. They work as they are. dir is the folder of the demo.
func Tour(dir string, at Addresses) []Step {
	plain := "curl -s " + connectTo(80, at.HTTP) + " "
	secure := "curl -sk " + connectTo(443, at.HTTPS) + " "
	verified := "curl -s --cacert " + quote(caFile(dir)) + " " + connectTo(443, at.HTTPS) + " "
	socket := "-i --http1.1 -H 'Connection: Upgrade' -H 'Upgrade: websocket' " +
		"-H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' "
	cookies := "-c " + quote(cookieFile(dir)) + " -b " + quote(cookieFile(dir)) + " "
	admin := "curl -s " + connectTo(1936, at.Admin) + " "

	return []Step{
		{"host-route.yaml", "A host and its pods; each answers with what it saw.",
			plain + "http://host-route.example.com/any/path?q=1",
			[]string{`"service":"host-service"`, `"path":"/any/path?q=1"`, `"x-forwarded-proto":"http"`}},
		{"no-route-hostname.yaml", "A route without a host: the router's template made one.",
			plain + "http://no-route-hostname-examples.router.default.svc.cluster.local/",
			[]string{`"service":"no-hostname-service"`}},
		{"route-unsecured.yaml", "Paths that are not /test belong to the route without a path.",
			plain + "http://www.example.com/testing",
			[]string{`"service":"unsecured-service"`}},
		{"route-unsecured-path.yaml", "The longest path wins.",
			plain + "http://www.example.com/test/more",
			[]string{`"service":"path-service"`, `"path":"/test/more"`}},
		{"route-edge-secured.yaml", "TLS ends at the router, which shows the route's own certificate.",
			verified + "https://route-edge-secured.example.com/",
			[]string{`"service":"edge-service"`, `"tls":false`, `"x-forwarded-proto":"https"`}},
		{"route-edge-secured.yaml", "Over plain HTTP that route does not exist.",
			plain + "-o /dev/null -w '%{http_code}\\n' http://route-edge-secured.example.com/",
			[]string{"503"}},
		{"route-edge-default-certificate.yaml", "Without a certificate of its own: the router's default one.",
			secure + "https://route-edge-default-certificate.example.com/",
			[]string{`"service":"edge-default-service"`, `"tls":false`}},
		{"route-edge-secured-allow-insecure.yaml", "Served over plain HTTP as well.",
			plain + "http://route-edge-secured-allow-insecure.example.com/",
			[]string{`"service":"edge-allow-service"`}},
		{"route-edge-secured-redirect-insecure.yaml", "Plain HTTP is sent to https.",
			plain + "-i http://route-edge-secured-redirect-insecure.example.com/a?b",
			[]string{"302", "location: https://route-edge-secured-redirect-insecure.example.com/a?b"}},
		{"route-passthrough-secured.yaml", "The pod's own certificate; the router only copies.",
			verified + "https://route-passthrough-secured.example.com/",
			[]string{`"service":"passthrough-service"`, `"tls":true`}},
		{"route-pt-secured.yaml", "Re-encrypted: TLS to the router, and TLS again to the pod.",
			secure + "https://route-pt-secured.example.com/",
			[]string{`"service":"reencrypt-service"`, `"tls":true`, `"x-forwarded-proto":"https"`}},
		{"route-alternate-service.yaml", "Weights 20, 10, 10: who served 40 requests.",
			"for i in $(seq 40); do " + plain + "http://route-alternate-service.example.com/; done | " +
				`grep -o '"service":"[^"]*"' | sort | uniq -c`,
			[]string{`20 "service":"service-name"`, `10 "service":"service-name2"`, `10 "service":"service-name3"`}},
		{"wildcard-route.yaml", "Any host of the domain.",
			plain + "http://anything.wild.example.com/",
			[]string{`"service":"wildcard-service"`}},
		{"route-annotated.yaml", "A client that sends the cookie back stays on its pod.",
			"for i in 1 2 3 4; do " + plain + cookies + "http://route-annotated.example.com/; done | " +
				`grep -o '"pod":"[^"]*"' | sort | uniq -c`,
			[]string{`4 "pod":"annotated-service-`}},
		{"route-subdomain.yaml", "The route's subdomain and the router's domain.",
			plain + "http://front.apps.example.com/",
			[]string{`"service":"subdomain-service"`}},
		{"route-websocket.yaml", "A WebSocket over TLS; the pod greets and closes.",
			secure + socket + "https://route-websocket.example.com/hello",
			[]string{"101 Switching Protocols", "hello from pod websocket-service-"}},
		{"", "A host that no route has.",
			plain + "-o /dev/null -w '%{http_code}\\n' http://nobody.example.com/",
			[]string{"503"}},
		{"", "Every route with the status it would have in a cluster.",
			admin + "http://localhost:1936/routes",
			[]string{`"route-edge-secured"`, `"Admitted"`}},
		{"", "Ready, and the metrics.",
			admin + "http://localhost:1936/healthz/ready http://localhost:1936/metrics",
			[]string{"ok", "turnout_build_info"}},
	}
}

// connectTo has curl connect to an address instead of a port.
func connectTo(port int, a netip.AddrPort) string {
	host := a.Addr()
	if !host.IsValid() || host.IsUnspecified() {
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return fmt.Sprintf("--connect-to :%d:%s", port, netip.AddrPortFrom(host.Unmap(), a.Port()))
}

// Tour returns all commands to try with the demo: those of Tour and GatewayTour.
func (d *Demo) Tour(at Addresses) []Step {
	return append(Tour(d.dir, at), GatewayTour(d.dir, at, d.ports)...)
}

// quote makes s one word of a POSIX shell.
func quote(s string) string {
	if !strings.ContainsAny(s, " \t\n'\"\\$&|;<>()*?[]#~`!{}") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Print writes the tour for a reader.
func (d *Demo) Print(w io.Writer, at Addresses) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nTurnout demo: %d pods for the manifests in %s\n", len(d.pods), d.dir)
	fmt.Fprintf(&b, "HTTP %s, HTTPS %s, admin http://%s\n", at.HTTP, at.HTTPS, at.Admin)
	b.WriteString("Edit the manifests: changes are served at once. Ctrl-C ends the demo.\n\nTry, in another terminal:\n\n")
	for _, s := range d.Tour(at) {
		fmt.Fprintf(&b, "# %s", s.About)
		if s.File != "" {
			fmt.Fprintf(&b, " (%s)", s.File)
		}
		fmt.Fprintf(&b, "\n%s\n\n", s.Command)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("cannot print the tour: %w", err)
	}
	return nil
}
