package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// sickPod answers connections always and its health check as the test says. It counts the requests of clients, and of checks by host.
type sickPod struct {
	*httptest.Server
	status             atomic.Int32
	pages, byA, byB    atomic.Int64
	otherHosts, badAsk atomic.Int64
}

func startSickPod(t *testing.T, name string) *sickPod {
	p := &sickPod{}
	p.status.Store(200)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			p.pages.Add(1)
			_, _ = io.WriteString(w, name)
			return
		}
		switch r.Host {
		case "app.test":
			p.byA.Add(1)
		case "shared.test:8080":
			p.byB.Add(1)
		default:
			p.otherHosts.Add(1)
		}
		if r.UserAgent() != "turnout-health-check" || r.URL.RawQuery != "full=1" || r.Header.Get("X-Forwarded-For") != "" {
			p.badAsk.Add(1)
		}
		w.WriteHeader(int(p.status.Load()))
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *sickPod) addr() string { return p.Listener.Addr().String() }

// TestHTTPHealthChecks: a pod that accepts connections and answers its check with 500 gets no requests of the routes that ask,
// goes on with those of another pod that does not, and comes back when it answers well again.
func TestHTTPHealthChecks(t *testing.T) {
	t.Parallel()
	pods := []*sickPod{startSickPod(t, "well"), startSickPod(t, "sick")}
	const ask = ", turnout.router/health-check-path: '/healthz?full=1'"
	var b strings.Builder
	for host, annotations := range map[string]string{
		"app.test": ask, "bad.test": ", turnout.router/health-check-path: healthz", "plain.test": "",
		"first.test":  ask + ", turnout.router/health-check-host: shared.test:8080",
		"second.test": ask + ", turnout.router/health-check-host: Shared.test:8080",
	} {
		fmt.Fprintf(&b, "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: %s, annotations: {haproxy.router.openshift.io/balance: roundrobin%s}}\n"+
			"spec: {host: %s, to: {kind: Service, name: app}}\n---\n", strings.TrimSuffix(host, ".test"), annotations, host)
	}
	for i, pod := range pods {
		addr := pod.Listener.Addr().(*net.TCPAddr)
		fmt.Fprintf(&b, "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: app-%d, labels: {kubernetes.io/service-name: app}}\naddressType: IPv4\n"+
			"ports: [{name: http, port: %d, protocol: TCP}]\nendpoints: [{addresses: [%q], conditions: {ready: true}}]\n---\n", i, addr.Port, addr.IP)
	}
	dir := t.TempDir()
	write(t, dir, "app.yaml", []byte(b.String()))
	var report bytes.Buffer
	if err := runOnce(t.Context(), "validate", []string{dir}, envOf(), nil, &report, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"ok: default/first (first.test) http, 2 servers, checked by GET /healthz?full=1, host shared.test:8080, statuses 200-399\n",
		"ok: default/plain (plain.test) http, 2 servers\n",
		"note: default/bad: annotation turnout.router/health-check-path: \"healthz\" is not a path",
	} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("no %q in\n%s", want, &report)
		}
	}

	sick := pods[1]
	sick.status.Store(500)
	p := startRouter(t, []string{"ROUTER_BACKEND_CHECK_INTERVAL=50ms"}, "run", "--manifests", dir)

	// One line for each check, whatever the number of routes that share it.
	hosts := map[string]bool{"app.test": true, "shared.test:8080": true}
	logged := func(msg, result string, status int) {
		t.Helper()
		for range len(hosts) {
			line := p.line(msg)
			if line["address"] != sick.addr() || line["result"] != result || line["status"] != float64(status) || line["path"] != "/healthz?full=1" || !hosts[fmt.Sprint(line["host"])] {
				t.Errorf("logged %v", line)
			}
		}
	}
	logged("endpoint is down: its health checks fail", "L7STS", 500)
	reach := func(host string, want bool) {
		t.Helper()
		before := sick.pages.Load()
		for range 10 {
			if status, body := get(t, "http://"+p.http+"/", host); status != 200 {
				t.Errorf("%s: answer %d %q", host, status, body)
			}
		}
		if got := sick.pages.Load() - before; (got > 0) != want {
			t.Errorf("%s: the pod got %d of 10 requests", host, got)
		}
	}
	up := func(route string, pod *sickPod) string {
		_, metrics := get(t, "http://"+p.admin+"/metrics", "")
		_, rest, _ := strings.Cut(metrics, `haproxy_server_up{namespace="default",pod="",route="`+route+`",server="`+pod.addr()+`",service="app"} `)
		value, _, _ := strings.Cut(rest, "\n")
		return value
	}
	type explanation struct {
		Check struct {
			Kind, Path, Host, Statuses, Interval string
			Running                              bool
			Down                                 []string
		}
		Notes []string
	}
	explain := func(route string) (e explanation) {
		t.Helper()
		if _, text := get(t, "http://"+p.admin+"/routes/default/"+route, ""); json.Unmarshal([]byte(text), &e) != nil {
			t.Fatalf("%s is explained by %s", route, text)
		}
		return e
	}
	for host, out := range map[string]bool{"app": true, "first": true, "second": true, "plain": false, "bad": false} {
		reach(host+".test", !out)
		if got, want := up(host, sick), map[bool]string{true: "0", false: "1"}[out]; got != want || up(host, pods[0]) != "1" {
			t.Errorf("%s: haproxy_server_up is %q and %q", host, got, up(host, pods[0]))
		}
		e := explain(host)
		if e.Check.Running != true || (len(e.Check.Down) == 1 && e.Check.Down[0] == sick.addr()) != out || (e.Check.Kind == "http") != out {
			t.Errorf("%s: explained by %+v", host, e)
		}
	}
	if e := explain("second"); e.Check.Path != "/healthz?full=1" || e.Check.Host != "shared.test:8080" || e.Check.Statuses != "200-399" || e.Check.Interval != "50ms" {
		t.Errorf("explained by %+v", e.Check)
	}
	if e := explain("bad"); len(e.Notes) != 1 || !strings.Contains(e.Notes[0], `turnout.router/health-check-path: "healthz" is not a path`) {
		t.Errorf("notes %q", e.Notes)
	}

	sick.status.Store(204)
	logged("endpoint is up", "L7OK", 204)
	for host := range map[string]bool{"app.test": true, "second.test": true, "plain.test": true} {
		reach(host, true)
	}
	if e := explain("app"); len(e.Check.Down) != 0 || up("app", sick) != "1" {
		t.Errorf("explained by %+v", e)
	}
	if sick.byA.Load() == 0 || sick.byB.Load() == 0 || sick.otherHosts.Load() != 0 || sick.badAsk.Load() != 0 {
		t.Errorf("asked %d and %d times, %d for another host, %d otherwise", sick.byA.Load(), sick.byB.Load(), sick.otherHosts.Load(), sick.badAsk.Load())
	}
}
