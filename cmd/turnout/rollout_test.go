package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/controller"
	"turnout/internal/server"
	"turnout/routing"
)

// rolloutPods is how many pods of the service are ready at any time.
const rolloutPods = 3

// latest is how long after the publication of its removal a pod may still get requests.
const latest = 50 * time.Millisecond

type rolloutPod struct {
	server      *http.Server
	addr        *net.TCPAddr
	requests    atomic.Int64
	terminating bool
}

// startPod starts a pod that speaks HTTP/1.1, and HTTP/2 to who begins so.
func startPod(t *testing.T) *rolloutPod {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &rolloutPod{addr: ln.Addr().(*net.TCPAddr)}
	p.server = &http.Server{Handler: rolloutPages(&p.requests), Protocols: new(http.Protocols)}
	p.server.Protocols.SetHTTP1(true)
	p.server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = p.server.Serve(ln) }() // ends with the pod
	t.Cleanup(func() { p.server.Close() })
	return p
}

// rollout is a service whose pods are replaced one after the other.
type rollout struct {
	t        *testing.T
	dir      string
	protocol string // appProtocol, as it is written
	store    *routing.Store
	pods     []*rolloutPod // those the EndpointSlice names
	late     int           // requests after the removal
	gone     int           // pods that were replaced
}

// write publishes the pods, each as an EndpointSlice of its own that is named after its port.
func (r *rollout) write() {
	var b strings.Builder
	b.WriteString("apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: app}\nspec: {host: app.test, to: {kind: Service, name: app}, tls: {termination: edge, insecureEdgeTerminationPolicy: Allow}}\n")
	for _, p := range r.pods {
		conditions := "ready: true"
		if p.terminating {
			conditions = "ready: false, serving: true, terminating: true"
		}
		fmt.Fprintf(&b, "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: app-%d, labels: {kubernetes.io/service-name: app}}\naddressType: IPv4\n"+
			"ports: [{name: http, port: %d, protocol: TCP%s}]\nendpoints: [{addresses: [%q], conditions: {%s}}]\n", p.addr.Port, p.addr.Port, r.protocol, p.addr.IP, conditions)
	}
	write(r.t, r.dir, "app.yaml", []byte(b.String()))
}

// server is what the router has for p, nil when no request may go there.
func (r *rollout) server(p *rolloutPod) *balancer.Server {
	route := r.store.Load().Match(&routing.View{Host: []byte("app.test"), Path: []byte("/")}).Route
	if route == nil {
		return nil
	}
	for _, s := range route.Pool().Servers() {
		if int(s.Endpoint().Addr().Port()) == p.addr.Port {
			return s
		}
	}
	return nil
}

// await waits until requests may go to p, or may not.
func (r *rollout) await(p *rolloutPod, want bool) {
	r.t.Helper()
	ctx, stop := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer stop()
	for (r.server(p) != nil) != want {
		select {
		case <-ctx.Done():
			r.t.Fatalf("pod %v: in the table %v, want %v", p.addr, !want, want)
		case <-time.After(time.Millisecond):
		}
	}
}

// awaitRequest waits until p has had a request, so that its removal is one of a pod in use.
func (r *rollout) awaitRequest(p *rolloutPod) {
	r.t.Helper()
	ctx, stop := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer stop()
	for p.requests.Load() == 0 {
		select {
		case <-ctx.Done():
			r.t.Fatalf("pod %v: it is in the table, and no request went to it", p.addr)
		case <-time.After(time.Millisecond):
		}
	}
}

// replace puts a new pod in the place of the oldest. A patient pod goes on for a while after
// it was asked to stop, as one with a preStop hook does; others close their port at once.
func (r *rollout) replace(patient bool) {
	next := startPod(r.t)
	r.pods = append(r.pods, next)
	r.write()
	r.await(next, true)
	old := r.pods[0]
	r.awaitRequest(old)
	old.terminating = true
	stopped := make(chan error, 1)
	stop := func() { stopped <- old.server.Shutdown(context.Background()) }
	if !patient {
		go stop()
	}
	server := r.server(old)
	if server == nil {
		r.t.Fatalf("pod %v is not in the table, and nobody removed it", old.addr)
	}
	r.write()
	r.await(old, false)
	<-time.NewTimer(latest).C // what is allowed is over
	until := server.Requests()
	if patient {
		<-time.NewTimer(latest).C // what would come late comes now
		go stop()
	}
	if err := <-stopped; err != nil {
		r.t.Fatal(err)
	}
	if late := server.Requests() - until; late > 0 {
		r.late++
		r.t.Errorf("a pod was chosen %d times later than %v after its removal", late, latest)
	}
	r.pods = r.pods[1:]
	r.write()
	r.gone++
}

// TestRollout replaces pods without a pause under load, while other clients read slowly or leave. No request fails, and none goes to
// a pod whose removal is known.
func TestRollout(t *testing.T) { //nolint:tparallel // beside other tests; its own parts follow each other
	t.Parallel()
	length := 3 * time.Second
	if !testing.Short() {
		length = 30 * time.Second
	}
	t.Run("HTTP/1.1", func(t *testing.T) { rollOut(t, length, "") })
	t.Run("HTTP/2", func(t *testing.T) { rollOut(t, length, ", appProtocol: h2c") })
}

func rollOut(t *testing.T, length time.Duration, protocol string) {
	r := &rollout{t: t, dir: t.TempDir(), protocol: protocol}
	for range rolloutPods {
		r.pods = append(r.pods, startPod(t))
	}
	r.write()
	var plane *server.Server
	plane, r.store = startInProcess(t, r.dir, controller.Options{})
	load := &clientLoad{t: t, plain: plane.HTTP().String(), secure: plane.HTTPS().String(), stop: make(chan struct{})}
	load.start()
	others := startRude(load.plain)
	for begin := time.Now(); time.Since(begin) < length; {
		r.replace(r.gone%2 == 0)
	}
	load.end()
	others.end()
	if load.requests.Load() == 0 || others.done.Load() == 0 {
		t.Errorf("%d requests, and %d of clients that read slowly or leave", load.requests.Load(), others.done.Load())
	}
	t.Logf("%d pods replaced in %v, %d requests: %d connections refused, %d requests failed, %d pods asked later than %v after their removal; %d requests of clients that read slowly or leave",
		r.gone, length, load.requests.Load(), load.refused.Load(), load.failed.Load(), r.late, latest, others.done.Load())
}
