package main

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// TestRouterIsNoPod: a route whose endpoints are the router itself has none, says so, and answers 503.
func TestRouterIsNoPod(t *testing.T) {
	dir := t.TempDir()
	t.Parallel()
	p := startRouter(t, nil, "run", "--manifests", dir, "--log-level", "debug")
	var b strings.Builder
	b.WriteString("apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: app}\nspec: {host: loop.test, to: {kind: Service, name: app}}\n")
	for i, addr := range []string{p.http, p.https, p.admin} {
		at := netip.MustParseAddrPort(addr)
		fmt.Fprintf(&b, "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: app-%d, labels: {kubernetes.io/service-name: app}}\naddressType: IPv4\n"+
			"ports: [{name: http, port: %d, protocol: TCP}]\nendpoints: [{addresses: [%q]}]\n", i, at.Port(), at.Addr())
	}
	write(t, dir, "app.yaml", []byte(b.String()))
	for p.line("table published")["routes"] != 1.0 {
	}
	if status, _ := get(t, "http://"+p.http+"/", "loop.test"); status != 503 {
		t.Errorf("a loop is answered with %d", status)
	}
	for _, addr := range []string{p.http, p.https, p.admin} {
		at := netip.MustParseAddrPort(addr)
		note := fmt.Sprintf("port %d of address %s is not used: the router itself listens there", at.Port(), at.Addr())
		await(t, "the route has the note "+note, func() bool { // the notes follow the table
			_, text := get(t, "http://"+p.admin+"/routes/notes", "")
			return strings.Contains(text, note)
		})
	}
	if _, text := get(t, "http://"+p.admin+"/metrics", ""); strings.Contains(text, `turnout_bound_reached_total{bound="own-addresses"} 0`) {
		t.Error("it is not counted")
	}
}
