package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"turnout/bench/site"
)

// The hosts of the scene.
const (
	hostWeb    = "web.soak.test"    // edge and plain, pods that change, weights, a certificate that is renewed
	hostSticky = "sticky.soak.test" // the same pods, with the cookie
	hostStream = "stream.soak.test" // edge; its pods speak HTTP/2
	hostSocket = "socket.soak.test" // edge and plain; its pod stays
)

// scene is a router in a process of its own, before pods in this one, and what is being changed about them.
type scene struct {
	o      *options
	out    io.Writer
	router *site.Router
	tally  tally

	mu       sync.Mutex
	pods     int // started so far
	web      []*pod
	stream   []*pod
	canary   *pod
	sockets  []*pod
	weight   int            // of the canary, in percent
	extra    [2]int         // numbers of the first route that only comes and goes, and of the one behind the last
	keys     site.KeyPair   // of hostWeb
	retiring sync.WaitGroup // pods that nobody should ask any more
}

// Pods of a service that are there at any time, and routes that come and go.
const (
	webPods     = 4
	streamPods  = 2
	extraRoutes = 20
)

// startScene starts a router that has nothing to serve, and pods.
func startScene(ctx context.Context, o *options, out io.Writer) (*scene, error) {
	s := &scene{o: o, out: out, weight: 10, extra: [2]int{0, extraRoutes}}
	files, err := site.OpenFiles(uint64(4*o.sockets + 1000))
	if err != nil {
		return nil, err
	}
	if files < uint64(4*o.sockets+1000) {
		return nil, fmt.Errorf("cannot open %d WebSockets: a process may open %d files (ulimit -Hn)", o.sockets, files)
	}
	if err := s.start(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *scene) start(ctx context.Context) (err error) {
	var errs []error
	start := func() *pod {
		p, err := s.newPod()
		errs = append(errs, err)
		return p
	}
	for range webPods {
		s.web = append(s.web, start())
	}
	for range streamPods {
		s.stream = append(s.stream, start())
	}
	s.canary = start()
	s.sockets = []*pod{start()}
	if s.keys, err = site.NewKeyPair(hostWeb, false); err != nil {
		return err
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.router, err = site.Start(ctx, site.Config{Program: s.o.turnout})
	return err
}

// furnish gives the router its routes and waits until they are served.
func (s *scene) furnish(ctx context.Context) error {
	if err := s.router.Write("site.yaml", s.manifests()); err != nil {
		return err
	}
	err := until(ctx, func() bool { return s.status(hostWeb) == http.StatusOK && s.status(hostStream) == http.StatusOK })
	if err != nil {
		return fmt.Errorf("cannot go on, the routes are not served: %w, %s", err, s.router.Tail())
	}
	return nil
}

// newPod starts the next pod.
func (s *scene) newPod() (*pod, error) {
	s.pods++
	return newPod(s.pods)
}

func (s *scene) close() {
	if s.router != nil {
		s.router.Stop()
	}
	s.stopPods()
}

// stopPods ends all of them.
func (s *scene) stopPods() {
	s.retiring.Wait()
	for _, p := range slices.Concat(s.web, s.stream, s.sockets, []*pod{s.canary}) {
		if p != nil {
			_ = p.server.Close()
		}
	}
}

// manifests describes the scene as it is.
func (s *scene) manifests() string {
	var b strings.Builder
	route := func(name, host, service, annotations, rest string) {
		fmt.Fprintf(&b, "---\napiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: %s, namespace: soak, annotations: {%s}}\nspec:\n"+
			"  host: %s\n  to: {kind: Service, name: %s, weight: 100}\n%s", name, annotations, host, service, rest)
	}
	slice := func(name, protocol string, pods []*pod) {
		for _, p := range pods {
			fmt.Fprintf(&b, "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n"+
				"metadata: {name: \"%[1]s-%[2]d\", namespace: soak, labels: {kubernetes.io/service-name: %[1]s}}\naddressType: IPv4\n"+
				"ports: [{name: p, port: %[2]d%[3]s}]\nendpoints: [{addresses: [%[4]s], conditions: {ready: true}}]\n",
				name, p.addr.Port(), protocol, p.addr.Addr())
		}
	}
	const (
		plain   = "  tls: {termination: edge, insecureEdgeTerminationPolicy: Allow}\n"
		without = "haproxy.router.openshift.io/disable_cookies: \"true\""
	)
	indent := func(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ") }
	route("web", hostWeb, "web", without, fmt.Sprintf("  alternateBackends: [{kind: Service, name: canary, weight: %d}]\n"+
		"  tls:\n    termination: edge\n    insecureEdgeTerminationPolicy: Allow\n    certificate: |\n      %s\n    key: |\n      %s\n",
		s.weight, indent(s.keys.Certificate), indent(s.keys.Key)))
	route("sticky", hostSticky, "web", "", plain)
	route("stream", hostStream, "stream", without, plain)
	route("socket", hostSocket, "socket", without+", haproxy.router.openshift.io/timeout-tunnel: 5d", plain)
	for i := s.extra[0]; i < s.extra[1]; i++ {
		route(fmt.Sprint("extra-", i), extraHost(i), "canary", without, "")
	}
	slice("web", "", s.web)
	slice("canary", "", []*pod{s.canary})
	slice("stream", ", appProtocol: h2c", s.stream)
	slice("socket", "", s.sockets)
	return b.String()
}

func extraHost(n int) string { return fmt.Sprintf("extra-%d.soak.test", n) }

// serves reports whether the pod at this address has a place in the service of the web.
func (s *scene) serves(addr string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.web, func(p *pod) bool { return p.addr.String() == addr })
}

// retirement is how long a pod goes on after it was taken out of its service.
const retirement = 5 * time.Second

// retire lets a pod go that was taken out.
func (s *scene) retire(ctx context.Context, p *pod) {
	s.retiring.Go(func() { p.retire(ctx, retirement) })
}
