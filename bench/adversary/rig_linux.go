package adversary

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"turnout/bench/site"
)

// targets are where a router is attacked.
type targets struct{ HTTP, HTTPS, Admin string }

// rig is a router in a process of its own before pods in this one.
type rig struct {
	o      *options
	router *site.Router
	pods   map[string]*site.Backend // by name
	frozen freezer
	drops  drops
	flood  *site.Process // the pod of floods
	floods int           // its port

	mu   sync.Mutex
	self string // where the router serves, for pods that lead back to it
}

// routesBeside are routes that nobody uses, so that the pages of the admin port are long.
const routesBeside = 2000

func startRig(ctx context.Context, o *options) (*rig, error) {
	if _, err := site.OpenFiles(20000); err != nil {
		return nil, err
	}
	r := &rig{o: o, pods: map[string]*site.Backend{}}
	err := r.startPods()
	if err == nil {
		err = r.startFloodedPod(ctx)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	text, err := r.manifests()
	if err == nil {
		err = r.startRouter(ctx, text)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	r.mu.Lock()
	r.self = r.router.HTTP
	r.mu.Unlock()
	return r, nil
}

// startRouter starts the router, and then gives this process a real-time priority. The router gets a high ordinary one: among its own
// threads event loops go first, which a real-time priority would undo.
func (r *rig) startRouter(ctx context.Context, manifests string) (err error) {
	runtime.LockOSThread() // a child inherits the priority of the thread that starts it
	defer runtime.UnlockOSThread()
	if r.o.ahead && syscall.Setpriority(syscall.PRIO_PROCESS, 0, -15) == nil {
		defer syscall.Setpriority(syscall.PRIO_PROCESS, 0, 0) //nolint:errcheck // it may be lowered by anybody
	}
	r.router, err = site.Start(ctx, site.Config{
		Program: r.o.turnout, Manifests: manifests, Env: []string{"GOMEMLIMIT=256MiB"},
	})
	if err == nil && r.o.ahead {
		site.Ahead()
	}
	return err
}

func (r *rig) close() {
	if r.router != nil {
		r.router.Stop()
	}
	r.frozen.thaw()
	for _, p := range r.pods {
		p.Close()
	}
	if r.flood != nil {
		r.flood.Kill()
	}
}

// port is that of a pod.
func (r *rig) port(pod string) int {
	if pod == floodedPod {
		return r.floods
	}
	return r.pods[pod].Port()
}

// startAttackers starts a process that attacks until it is killed, behind everybody else.
func (r *rig) startAttackers(ctx context.Context, a *attack) (*site.Process, error) {
	cmd := site.Behind(site.Self(ctx, attackersRole, a.name, r.router.HTTP, r.router.HTTPS, r.router.Admin))
	return site.StartProcess("the attackers", cmd, site.AnyCore)
}

// routeOf is one route of the rig.
type routeOf struct {
	host, pod   string
	h2c         bool
	annotations string
	tls         string
}

func (r *rig) routes() ([]routeOf, error) {
	chain, err := longChain("chain.test")
	if err != nil {
		return nil, err
	}
	const quick = "haproxy.router.openshift.io/timeout: 2s"
	return []routeOf{
		{host: "own1.test", pod: "own"}, {host: "own2.test", pod: "own", h2c: true},
		{host: "shared1.test", pod: "shared"}, {host: "shared2.test", pod: "shared", h2c: true},
		{host: "flooded1.test", pod: floodedPod}, {host: "flooded2.test", pod: floodedPod, h2c: true},
		{host: "redirect.test", pod: "shared", tls: "  tls: {termination: edge, insecureEdgeTerminationPolicy: Redirect}\n"},
		{host: "freeze.test", pod: "freeze", h2c: true, annotations: quick},
		{host: "drop.test", pod: "drop", h2c: true},
		{host: "loop.test", pod: "loop", annotations: "haproxy.router.openshift.io/set-forwarded-headers: never"},
		{host: "chain.test", pod: "shared", tls: chain},
	}, nil
}

// manifests describes routes, services and pods.
func (r *rig) manifests() (string, error) {
	routes, err := r.routes()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, ro := range routes {
		protocol := ""
		if ro.h2c {
			protocol = ", appProtocol: h2c"
		}
		fmt.Fprintf(&b, "---\napiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: r%[1]d, namespace: n%[1]d, annotations: {%[3]s}}\n"+
			"spec:\n  host: %[2]s\n  to: {kind: Service, name: s}\n%[4]s", i, ro.host, ro.annotations, ro.tls)
		fmt.Fprintf(&b, "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: e, namespace: n%d, labels: {kubernetes.io/service-name: s}}\n"+
			"addressType: IPv4\nports: [{name: p, port: %d%s}]\nendpoints: [{addresses: [127.0.0.1], conditions: {ready: true}}]\n", i, r.port(ro.pod), protocol)
	}
	for i := range routesBeside {
		fmt.Fprintf(&b, "---\napiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: beside-%[1]d, namespace: beside, annotations: {haproxy.router.openshift.io/timeout: 30s}}\n"+
			"spec:\n  host: beside-%[1]d.test\n  to: {kind: Service, name: none}\n", i)
	}
	return b.String(), nil
}

// dialed is a connection to an address, nil when there is none.
func dialed(addr string) net.Conn {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil
	}
	return c
}
