package adversary

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"turnout/bench/site"
)

// Hosts of the tenant with costly rules. Requests for the first one end with 431, those for the
// second one with a response, after nearly as much work.
const (
	costlyHost = "costly.test"
	servedHost = "served.test"
)

// costlyRoutes returns a Gateway at an address, and HTTPRoutes of a tenant with several namespaces.
// Their rules are costly for requests with costlyPath and costlyFields: conditions on paths, fields
// and parameters hold for most of a request, and fail in the end.
func costlyRoutes(gateway string, port int) string {
	const class, first, namespaces = "adversary", "costly0", 4
	host, listen, _ := net.SplitHostPort(gateway)
	var b strings.Builder
	fmt.Fprintf(&b, `---
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: %[1]s}, spec: {controllerName: turnout.router/gateway}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: %[2]s}
spec:
  gatewayClassName: %[1]s
  addresses: [{value: %[3]s}]
  listeners: [{name: web, port: %[4]s, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
`, class, first, host, listen)
	route := func(namespace, name, host, rules string) {
		fmt.Fprintf(&b, `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %s, namespace: %s}
spec: {parentRefs: [{name: gw, namespace: %s}], hostnames: [%s], rules: [%s]}
`, name, namespace, first, host, rules)
	}
	pods := func(namespace string) {
		b.WriteString(site.Service{Namespace: namespace, Name: "s", Port: port}.String())
		fmt.Fprintf(&b, "---\n{apiVersion: v1, kind: Service, metadata: {name: s, namespace: %s}, spec: {ports: [{name: http, port: 80}]}}\n", namespace)
	}
	const to = "backendRefs: [{name: s, port: 80}]"
	for n := range namespaces {
		namespace := fmt.Sprint("costly", n)
		pods(namespace)
		for _, host := range []string{costlyHost, servedHost} {
			name, _, _ := strings.Cut(host, ".")
			route(namespace, name, host, costlyRules(to))
		}
	}
	// The last namespace has used up no share. It takes what the others do not.
	pods("served")
	route("served", "served", servedHost, "{"+to+"}")
	return b.String()
}

// costlyRules returns rules with expressions, query parameters and fields, which take no request.
func costlyRules(to string) string {
	var query strings.Builder
	for n := range 15 {
		fmt.Fprintf(&query, "{name: q%d, value: v}, ", n)
	}
	var rules []string
	add := func(match string) {
		var matches []string
		for n := range 8 {
			matches = append(matches, "{"+fmt.Sprintf(match, n)+"}")
		}
		rules = append(rules, fmt.Sprintf("{matches: [%s], %s}", strings.Join(matches, ", "), to))
	}
	for n := range 4 {
		add(fmt.Sprintf("path: {type: RegularExpression, value: '/(?:[^/]?){%d}x%%d'}", 100+n))
		add(fmt.Sprintf("queryParams: [%s{name: z%d, value: v%%d}]", query.String(), n))
		add(fmt.Sprintf("headers: [{name: field, type: RegularExpression, value: '(?:a|b)*%d%%d'}]", n))
	}
	return strings.Join(rules, ", ")
}

// costlyPath is the target of a costly request.
var costlyPath = func() string {
	var b strings.Builder
	fmt.Fprintf(&b, "/%s?", strings.Repeat("a", 2000))
	for n := range 15 {
		fmt.Fprintf(&b, "q%d=v&", n)
	}
	return b.String()
}()

// costlyFields are the fields of a costly request. They nearly fill a head of 24 KiB. HPACK makes a
// byte of each but the first.
var costlyFields = func() (fields [][2]string) {
	for range 5 {
		fields = append(fields, [2]string{"field", strings.Repeat("ab", 1900)})
	}
	return fields
}()

// costlyRequests pipelines costly requests and reads the responses.
func costlyRequests(host string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		c := dialed(t.Gateway)
		defer func() { _ = c.Close() }()
		go func() { _, _ = io.Copy(io.Discard, c) }()
		var b strings.Builder
		fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\n", costlyPath, host)
		for _, f := range costlyFields {
			fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
		}
		many := []byte(strings.Repeat(b.String()+"\r\n", 16))
		for ctx.Err() == nil {
			site.Must(c.Write(many))
		}
	}
}

// costlyStreams keeps as many streams with costly requests open as the router allows.
func costlyStreams(host string) func(context.Context, *targets) {
	gateway := func(t *targets) string { return t.Gateway }
	return fullOfStreams(gateway, func(h *site.H2) { h.Get(host, costlyPath, costlyFields...) })
}

// costlyEnd sends costly requests over both protocols, and checks that each ends as it must.
func costlyEnd(ctx context.Context, r *rig, length time.Duration) (wrong []string) {
	var ends tries
	for began := time.Now(); time.Since(began) < length; _ = site.Pause(ctx, 200*time.Millisecond) {
		for host, want := range map[string]int{costlyHost: http.StatusRequestHeaderFieldsTooLarge, servedHost: http.StatusOK} {
			for _, http2 := range []bool{false, true} {
				ends.add(askCostly(ctx, r.gateway, host, http2, want))
			}
		}
	}
	return ends.wrong("costly requests")
}

// askCostly sends a costly request over HTTP/2 by prior knowledge, or HTTP/1.1.
func askCostly(ctx context.Context, addr, host string, http2 bool, want int) error {
	const patience = 5 * time.Second
	ctx, end := context.WithTimeout(ctx, patience)
	defer end()
	b := newBystander(addr, host, http2, false)
	defer b.CloseIdleConnections()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+costlyPath, nil)
	if err != nil {
		return err
	}
	q.Host = host
	for _, f := range costlyFields {
		q.Header.Add(f[0], f[1])
	}
	a, err := b.RoundTrip(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if _, err = io.Copy(io.Discard, a.Body); err == nil && a.StatusCode != want {
		err = fmt.Errorf("%s: status %d, want %d", host, a.StatusCode, want)
	}
	return err
}
