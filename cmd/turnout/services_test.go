package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"turnout/controller"
	"turnout/routing"
)

// namedPod answers everything with its name at addr, which may have port 0.
func namedPod(t *testing.T, addr, name string) *net.TCPAddr {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(ln) }()
	t.Cleanup(func() { server.Close(); <-ended })
	return ln.Addr().(*net.TCPAddr)
}

// plainRoute is a manifest; spec is more of its spec.
func plainRoute(name, service, spec string) string {
	return fmt.Sprintf("---\napiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: %[1]s}\nspec: {host: %[1]s.test, to: {kind: Service, name: %[2]s}%[3]s}\n", name, service, spec)
}

// endpointSlice is a manifest with one address, which is ready; ports are as YAML has them.
func endpointSlice(service, family, address, ports string) string {
	return fmt.Sprintf("---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: %[1]s-1, labels: {kubernetes.io/service-name: %[1]s}}\n"+
		"addressType: %[2]s\nports: [%[4]s]\nendpoints: [{addresses: [%[3]q], conditions: {ready: true}}]\n", service, family, address, ports)
}

// serversOf are the addresses of the servers of a route, in order.
func serversOf(store *routing.Store, host string) []string {
	route := store.Load().Match(&routing.View{Host: []byte(host), Path: []byte("/")}).Route
	if route == nil {
		return nil
	}
	var all []string
	for _, s := range route.Pool().Servers() {
		all = append(all, s.Endpoint().Addr().String())
	}
	slices.Sort(all)
	return all
}

// TestServicePorts: a route has the ports that its target port names, all without one, and none that is not TCP.
func TestServicePorts(t *testing.T) {
	t.Parallel()
	web, admin := namedPod(t, "127.0.0.1:0", "web"), namedPod(t, "127.0.0.1:0", "admin")
	dir := t.TempDir()
	write(t, dir, "all.yaml", []byte(
		plainRoute("web", "app", ", port: {targetPort: web}")+plainRoute("number", "app", fmt.Sprintf(", port: {targetPort: %d}", admin.Port))+
			plainRoute("any", "app", "")+plainRoute("none", "app", ", port: {targetPort: other}")+
			plainRoute("dns", "app", ", port: {targetPort: dns}")+plainRoute("sigtran", "app", ", port: {targetPort: sigtran}")+
			endpointSlice("app", "IPv4", "127.0.0.1", fmt.Sprintf("{name: web, port: %d, protocol: TCP}, {name: admin, port: %d}, "+
				"{name: dns, port: %[1]d, protocol: UDP}, {name: sigtran, port: %[2]d, protocol: SCTP}", web.Port, admin.Port))))
	plane, store := startInProcess(t, dir, controller.Options{})
	base := "http://" + plane.HTTP().String() + "/"
	f := func(host string, status int, answers ...string) {
		t.Helper()
		seen := map[string]bool{}
		for range 40 {
			got, body := get(t, base, host)
			if got != status {
				t.Fatalf("%s: status %d, want %d", host, got, status)
			}
			if status == 200 {
				seen[body] = true
			}
		}
		for _, a := range answers {
			if !seen[a] {
				t.Errorf("%s: %s never answered", host, a)
			}
		}
		if len(seen) != len(answers) || len(serversOf(store, host)) != len(answers) {
			t.Errorf("%s: answers of %v from %v, want %v", host, seen, serversOf(store, host), answers)
		}
	}
	f("web.test", 200, "web")
	f("number.test", 200, "admin")
	f("any.test", 200, "web", "admin")
	f("none.test", 503)
	f("dns.test", 503)
	f("sigtran.test", 503)
}

// TestIPv6Endpoint asks a pod that has nothing but an IPv6 address, and one beside another with IPv4.
func TestIPv6Endpoint(t *testing.T) {
	six, four := namedPod(t, "[::1]:0", "six"), namedPod(t, "127.0.0.1:0", "four")
	dir := t.TempDir()
	port := func(a *net.TCPAddr) string { return fmt.Sprintf("{name: http, port: %d}", a.Port) }
	write(t, dir, "all.yaml", []byte(plainRoute("six", "six", "")+endpointSlice("six", "IPv6", "::1", port(six))+
		plainRoute("both", "both", "")+endpointSlice("both", "IPv6", "::1", port(six))+
		strings.Replace(endpointSlice("both", "IPv4", "127.0.0.1", port(four)), "both-1", "both-2", 1)))
	plane, store := startInProcess(t, dir, controller.Options{})
	base := "http://" + plane.HTTP().String() + "/"
	if status, body := get(t, base, "six.test"); status != 200 || body != "six" {
		t.Errorf("%d %q", status, body)
	}
	if want := []string{six.String()}; !slices.Equal(serversOf(store, "six.test"), want) {
		t.Errorf("servers %v, want %v", serversOf(store, "six.test"), want)
	}
	seen := map[string]bool{}
	for range 60 {
		_, body := get(t, base, "both.test")
		seen[body] = true
	}
	if len(seen) != 2 {
		t.Errorf("both families: %v", seen)
	}
}

// TestHeadlessService has pods and no address of its own: the pods are asked.
func TestHeadlessService(t *testing.T) {
	pod := namedPod(t, "127.0.0.1:0", "pod")
	dir := t.TempDir()
	const service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: %s, annotations: {%s}}\nspec: {clusterIP: None, ports: [{name: http, port: %d}]}\n"
	write(t, dir, "all.yaml", []byte(plainRoute("app", "app", "")+fmt.Sprintf(service, "app", "", 80)+
		endpointSlice("app", "IPv4", "127.0.0.1", fmt.Sprintf("{name: http, port: %d}", pod.Port))+
		plainRoute("idle", "idle", "")+fmt.Sprintf(service, "idle", "idling.alpha.openshift.io/idled-at: x", pod.Port)))
	plane, _ := startInProcess(t, dir, controller.Options{})
	base := "http://" + plane.HTTP().String() + "/"
	if status, body := get(t, base, "app.test"); status != 200 || body != "pod" {
		t.Errorf("%d %q", status, body)
	}
	if status, _ := get(t, base, "idle.test"); status != 503 {
		t.Errorf("idled, with no address that could wake it up: %d", status)
	}
}

// TestUnidling asks a service whose pods were stopped: the first request waits at its cluster address until there is a pod, and
// those that follow go to the pod.
func TestUnidling(t *testing.T) {
	pod := namedPod(t, "127.0.0.1:0", "awake")
	cluster, err := net.Listen("tcp", "127.0.9.9:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cluster.Close() })
	at := cluster.Addr().(*net.TCPAddr)
	dir := t.TempDir()
	write(t, dir, "route.yaml", fmt.Appendf(nil, "%s---\napiVersion: v1\nkind: Service\nmetadata: {name: app, annotations: {idling.alpha.openshift.io/idled-at: \"2026-01-02T03:04:05Z\"}}\n"+
		"spec: {clusterIP: %s, ports: [{name: http, port: %d}, {name: sync, port: %[3]d, protocol: UDP}]}\n", plainRoute("app", "app", ""), at.IP, at.Port))
	plane, store := startInProcess(t, dir, controller.Options{})
	if got := serversOf(store, "app.test"); !slices.Equal(got, []string{at.String()}) {
		t.Fatalf("idled, the servers are %v, want %v", got, at)
	}

	// The cluster's proxy: the first connection wakes the service up, and goes to the pod.
	var connections atomic.Int64
	go func() {
		for {
			c, err := cluster.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			write(t, dir, "slice.yaml", []byte(endpointSlice("app", "IPv4", "127.0.0.1", fmt.Sprintf("{name: http, port: %d}", pod.Port))))
			up, err := net.Dial("tcp", pod.String())
			if err != nil {
				t.Error(err)
				return
			}
			go func() { _, _ = io.Copy(up, c); up.Close() }()
			go func() { _, _ = io.Copy(c, up); c.Close() }()
		}
	}()
	base := "http://" + plane.HTTP().String() + "/"
	if status, body := get(t, base, "app.test"); status != 200 || body != "awake" {
		t.Errorf("the request that woke it up: %d %q", status, body)
	}
	await(t, "the pod is the server", func() bool { return slices.Equal(serversOf(store, "app.test"), []string{pod.String()}) })
	for range 10 {
		if status, body := get(t, base, "app.test"); status != 200 || body != "awake" {
			t.Errorf("%d %q", status, body)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections to the cluster address, want the one that woke it up", n)
	}
}
