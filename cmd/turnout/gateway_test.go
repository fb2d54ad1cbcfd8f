package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"turnout/internal/explain"
)

// gatewaySite is a folder with a Gateway at a port, which wants that of plain HTTP, too, an HTTPRoute of a.test, one that no listener takes, and a Route.
func gatewaySite(t *testing.T, port int, taken string) string {
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "by the pod, ", r.Header.Get("X-Set")) }))
	t.Cleanup(pod.Close)
	text := slice("s", pod.Listener.Addr()) + faultyRoute("default", "front", "plain.test", "s", "") + fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: turnout}
spec: {controllerName: turnout.router/gateway}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: default}
spec:
  gatewayClassName: turnout
  listeners:
  - {name: web, port: %d, protocol: HTTP}
  - {name: clash, port: %s, protocol: HTTP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: front, namespace: default}
spec:
  parentRefs: [{name: gw, sectionName: web}]
  hostnames: [a.test, second.test]
  rules:
  - matches: [{path: {type: PathPrefix, value: /}, method: GET}]
    filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Set, value: here}, {name: X-Token, value: hidden-token}]}}]
    backendRefs: [{name: s, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: lost, namespace: default}
spec:
  parentRefs: [{name: gw, sectionName: none}]
  hostnames: [a.test]
  rules: [{backendRefs: [{name: s, port: 80}]}]
---
`, port, taken)
	dir := t.TempDir()
	write(t, dir, "all.yaml", []byte(text))
	return dir
}

// freePort is a port of this machine that nobody has at the moment.
func freePort(t *testing.T) int {
	t.Helper()
	return deadAddr(t).(*net.TCPAddr).Port
}

// TestGatewaysAreSeen: by explain, from a folder and from a running router, by routes and problems, and on the page.
func TestGatewaysAreSeen(t *testing.T) {
	port, taken := freePort(t), fmt.Sprint(freePort(t))
	dir := gatewaySite(t, port, taken)
	p := startProcess(t, turnout(t, "turnout", nil, "run", "--manifests", dir, "--gateway-api", "--http-addr", "127.0.0.1:"+taken, "--https-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"))
	p.line("ready")
	url := fmt.Sprintf("http://a.test:%d/x", port)
	if status, got := get(t, fmt.Sprintf("http://127.0.0.1:%d/x", port), "a.test"); status != 200 || got != "by the pod, here" {
		t.Errorf("the Gateway: %d %s", status, got)
	}
	folder := []string{"--manifests", dir, "--gateway-api", "--http-addr", "127.0.0.1:" + taken}
	for _, from := range [][]string{folder, {"--router", p.admin}} {
		a := explained(t, append(from, url)...)
		if a.Outcome.By != explain.ByEndpoint || a.Route == nil || a.Route.Kind != "HTTPRoute" || a.Listener.Gateway != "default/gw" || a.Listener.Name != "Gateway/default/gw/web" {
			t.Errorf("%q: %+v", from, a)
		}
		if !finds(a, "rejected", "NoMatchingParent") || !finds(a, "gateway", "PortUnavailable: Port "+taken+" cannot be opened: it is the port of Routes without TLS") {
			t.Errorf("%q: %+v", from, a.Findings)
		}
		if text := explainCommand(t, append(from, url)...); !strings.Contains(text, "+ x-set: here\n") || strings.Contains(text, "hidden-token") || !strings.Contains(text, "+ HTTPRoute default/front (a.test; path below /, method GET) http\n") {
			t.Errorf("%q:\n%s", from, text)
		}
		if a = explained(t, append(from, url, "--method", "POST")...); a.Outcome.Status != 404 || len(a.Candidates) < 1 || a.Candidates[0].Reason != "method" {
			t.Errorf("%q: %+v", from, a)
		}
		if a = explained(t, append(from, "http://plain.test:"+taken+"/")...); a.Route == nil || a.Route.Name != "front" || a.Route.Kind != "" || a.Listener.Gateway != "" {
			t.Errorf("%q: the port of Routes is explained as another: %+v", from, a)
		}
		if a = explained(t, append(from, "http://plain.test/", "--gateway", "default/gw:"+taken)...); a.Outcome.Reason != "gateway" || !strings.Contains(a.Outcome.Text, "it is the port of Routes") {
			t.Errorf("%q: %+v", from, a.Outcome)
		}
	}
	gatewayChange(t, dir, folder, p, port)
	gatewayLists(t, p)
}

// gatewayChange asks what a change of an HTTPRoute would do.
func gatewayChange(t *testing.T, dir string, folder []string, p *process, port int) {
	change := write(t, t.TempDir(), "change.yaml", []byte(`apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: front, namespace: default}
spec:
  parentRefs: [{name: gw, sectionName: web}]
  hostnames: [a.test]
  rules:
  - filters: [{type: RequestRedirect, requestRedirect: {hostname: new.test, statusCode: 301}}]
`))
	diff := explainCommand(t, append(folder, "--with", change, "--diff")...)
	for _, want := range []string{
		fmt.Sprintf("GET http://a.test:%d/ at Gateway default/gw:%[1]d\n    outcome: answered by a pod -> 301, redirect\n", port),
		fmt.Sprintf("GET http://second.test:%d/ at Gateway default/gw:%[1]d\n    outcome: answered by a pod -> 404, no-route\n", port),
	} {
		if !strings.Contains(diff, want) {
			t.Errorf("no %q in\n%s", want, diff)
		}
	}
	if strings.Contains(diff, "hidden-token") {
		t.Errorf("a secret is shown:\n%s", diff)
	}
	if running := explainCommand(t, "--router", p.admin, "--with", change, "--diff"); running != diff {
		t.Errorf("a running router says\n%s\nand the folder %s\n%s", running, dir, diff)
	}
	if a := explained(t, "--router", p.admin, "--with", change, fmt.Sprintf("http://a.test:%d/", port)); a.Change == nil || a.Change.Outcome.Status != 301 || a.Outcome.By != explain.ByEndpoint {
		t.Errorf("%+v", a)
	}
}

// gatewayLists looks at what is listed.
func gatewayLists(t *testing.T, p *process) {
	ask := func(command string, args ...string) string {
		t.Helper()
		status, out, text := told(append([]string{command, "--router", p.admin}, args...)...)
		if status != 0 {
			t.Errorf("%s %v: status %d, %s", command, args, status, text)
		}
		return out
	}
	if out := ask("routes", "second.test"); !strings.Contains(out, "HTTPRoute default/front  a.test and 1 more  http") || strings.Contains(out, "plain.test") {
		t.Errorf("%s", out)
	}
	if out := ask("routes"); !strings.Contains(out, "\ndefault/front ") || !strings.Contains(out, "Gateway default/gw ") || !strings.Contains(out, "NoMatchingParent") {
		t.Errorf("%s", out)
	}
	out := ask("problems")
	for _, want := range []string{"rejected: HTTPRoute default/lost: NoMatchingParent: ", "rejected: Gateway default/gw: PortUnavailable: listener clash: Port "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	resp, err := http.Get("http://" + p.admin + "/routes/default/front?kind=HTTPRoute")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("the object: status %d", resp.StatusCode)
	}
}

// TestGatewaysOnThePage: an HTTPRoute is found by any of its hosts, and has a page with its rules and status; problems lead to their objects.
func TestGatewaysOnThePage(t *testing.T) {
	t.Parallel()
	dir := gatewaySite(t, freePort(t), fmt.Sprint(freePort(t)))
	p := startRouter(t, nil, "run", "--manifests", dir, "--gateway-api")
	b := openTab(t, p)
	b.open("")
	b.sees("problems", "HTTPRoute default/lost")
	b.eval("document.querySelector(\"#problems a[href='#/routes/default/lost/HTTPRoute']\").click()")
	b.sees("route-title", "HTTPRoute default/lost")
	b.sees("route-body", "NoMatchingParent")
	b.open("#/routes")
	b.eval("(() => { const q = document.getElementById('q'); q.value = 'second.test'; q.dispatchEvent(new Event('input')); })()")
	b.sees("found", "Routes 1 to 1 of 1")
	b.sees("list", "HTTPRoute default/front")
	b.open("#/routes/default/front/HTTPRoute")
	for _, want := range []string{"Gateway/default/gw/web", "second.test", "path below /, method GET", "default/s:80", "timeout of the whole exchange", "request headers", "ResolvedRefs"} {
		b.sees("route-body", want)
	}
	b.open("#/routes/default/front")
	b.sees("route-body", "plain.test")
	b.open("#/routes/default/gw/Gateway")
	b.sees("route-body", "web: HTTP, port ")
}
