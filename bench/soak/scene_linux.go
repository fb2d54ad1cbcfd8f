package soak

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/websocket"

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
	*site.T
	o      options
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
func startScene(t *site.T, o options) *scene {
	s := &scene{T: t, o: o, weight: 10, extra: [2]int{0, extraRoutes}, keys: site.NewKeyPair(hostWeb, false)}
	t.Cleanup(s.stopPods)
	for range webPods {
		s.web = append(s.web, s.newPod())
	}
	for range streamPods {
		s.stream = append(s.stream, s.newPod())
	}
	s.canary, s.sockets = s.newPod(), []*pod{s.newPod()}
	s.router = t.Start(site.Config{})
	return s
}

// prepare gives the router its routes and waits until they are served.
func (s *scene) prepare() {
	s.router.Write("site.yaml", s.manifests())
	if !s.Until(patience, 5*time.Millisecond, func() bool { return s.status(hostWeb) == 200 && s.status(hostStream) == 200 }) {
		site.Stopf("cannot go on, the routes are not served: %s", s.router.Tail())
	}
}

// newPod starts the next pod.
func (s *scene) newPod() *pod {
	s.pods++
	return newPod(s.pods)
}

// stopPods ends all of them.
func (s *scene) stopPods() {
	s.retiring.Wait()
	for _, p := range slices.Concat(s.web, s.stream, s.sockets, []*pod{s.canary}) {
		if p != nil {
			p.Close()
		}
	}
}

// manifests describes the scene as it is.
func (s *scene) manifests() string {
	const plain = "termination: edge, insecureEdgeTerminationPolicy: Allow"
	var b strings.Builder
	for _, r := range []site.Route{
		{Host: hostWeb, Service: "web", Annotations: site.NoCookies, TLS: s.keys.EdgeTLS(), More: fmt.Sprintf("alternateBackends: [{kind: Service, name: canary, weight: %d}]", s.weight)},
		{Name: "sticky", Host: hostSticky, Service: "web", TLS: plain},
		{Host: hostStream, Service: "stream", Annotations: site.NoCookies, TLS: plain},
		{Host: hostSocket, Service: "socket", Annotations: site.NoCookies + ", haproxy.router.openshift.io/timeout-tunnel: 5d", TLS: plain},
	} {
		b.WriteString(r.String())
	}
	for i := s.extra[0]; i < s.extra[1]; i++ {
		b.WriteString(site.Route{Name: fmt.Sprint("extra-", i), Host: extraHost(i), Service: "canary", Annotations: site.NoCookies}.String())
	}
	for _, service := range []struct {
		name, protocol string
		pods           []*pod
	}{{"web", "", s.web}, {"canary", "", []*pod{s.canary}}, {"stream", "h2c", s.stream}, {"socket", "", s.sockets}} {
		for _, p := range service.pods {
			b.WriteString(site.Service{Name: service.name, Protocol: service.protocol, Port: p.Port(), Addrs: []netip.Addr{p.Addr().Addr()}}.String())
		}
	}
	return b.String()
}

func extraHost(n int) string { return fmt.Sprintf("extra-%d.soak.test", n) }

// serves reports whether the pod at this address has a place in the service of the web.
func (s *scene) serves(addr string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.web, func(p *pod) bool { return p.name() == addr })
}

// tally is what became of the changes.
type tally struct {
	changes atomic.Int64

	mu      sync.Mutex
	slowest time.Duration // until a change was in force
	checked int
	wrong   []string // at most someWrong
}

// someWrong is how many errors of a kind are kept.
const someWrong = 5

func (t *tally) failf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.wrong) < someWrong {
		t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
	}
}

func (t *tally) print(out io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(out, "%d changes; of routes and certificates %d were looked for, and the last of them seen after %v\n",
		t.changes.Load(), t.checked, t.slowest.Round(time.Millisecond))
}

func (t *tally) judge() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changes.Load() == 0 {
		return append(t.wrong, "nothing was changed")
	}
	return t.wrong
}

// change changes something each time, one thing after the other, until ctx is done.
func (s *scene) change(ctx context.Context) {
	changes := []func(context.Context) (seen func() bool){
		s.addPod, s.swapRoutes, s.removePod, s.renew, s.reweigh, s.replaceStreamPod, s.toggleSocketPod,
	}
	tick := time.NewTicker(s.o.update)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var seen func() bool
		if err := site.Try(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			seen = changes[n%len(changes)](ctx)
			s.router.Write("site.yaml", s.manifests())
		}); err != nil {
			s.tally.failf("change %d: %v", n, err)
			continue
		}
		s.tally.changes.Add(1)
		if seen != nil {
			s.await(ctx, n, seen)
		}
	}
}

// await looks for a change until it is seen.
func (s *scene) await(ctx context.Context, n int, seen func() bool) {
	began := time.Now()
	for !seen() {
		if time.Since(began) > patience {
			s.tally.failf("change %d is not in force after %v", n, patience)
			return
		}
		if site.Pause(ctx, 5*time.Millisecond) != nil {
			return
		}
	}
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	s.tally.checked++
	s.tally.slowest = max(s.tally.slowest, time.Since(began))
}

func (s *scene) addPod(context.Context) func() bool {
	s.web = append(s.web, s.newPod())
	return nil
}

// removePod removes the oldest one.
func (s *scene) removePod(ctx context.Context) func() bool {
	if len(s.web) <= webPods { // none could be added
		return nil
	}
	old := s.web[0]
	s.web = slices.Clone(s.web[1:])
	if old.requests.Load() == 0 {
		s.tally.failf("pod %v got no request", old.name())
	}
	s.retire(ctx, old)
	return nil
}

func (s *scene) replaceStreamPod(ctx context.Context) func() bool {
	p := s.newPod()
	s.retire(ctx, s.stream[0])
	s.stream = append(slices.Clone(s.stream[1:]), p)
	return nil
}

// toggleSocketPod adds a second pod or takes it away; the first has the WebSockets.
func (s *scene) toggleSocketPod(ctx context.Context) func() bool {
	if len(s.sockets) > 1 {
		s.retire(ctx, s.sockets[1])
		s.sockets = s.sockets[:1:1]
	} else {
		s.sockets = append(s.sockets, s.newPod())
	}
	return nil
}

func (s *scene) reweigh(context.Context) func() bool {
	s.weight = (s.weight + 30) % 100
	return nil
}

// swapRoutes adds a route and takes the oldest away.
func (s *scene) swapRoutes(context.Context) func() bool {
	gone, come := s.extra[0], s.extra[1]
	s.extra[0]++
	s.extra[1]++
	return func() bool { return s.status(extraHost(come)) == 200 && s.status(extraHost(gone)) == 503 }
}

// status asks once for the page of a host; 0 = there was no answer.
func (s *scene) status(host string) (status int) {
	l := &lane{s: s, host: host, most: 1}
	defer l.drop()
	_ = site.Try(func() { status = l.answer("GET / HTTP/1.1\r\nConnection: close\r\n", nil, io.Discard).StatusCode }) //nolint:bodyclose // answer closes it
	return status
}

// renew replaces the certificate of the web.
func (s *scene) renew(context.Context) func() bool {
	s.keys = site.NewKeyPair(hostWeb, false)
	want := s.keys.DER()
	return func() (same bool) {
		_ = site.Try(func() {
			c := dial(s.router.HTTPS, clientTLS(hostWeb))
			defer c.Close()
			same = bytes.Equal(c.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw, want)
		})
		return same
	}
}

// retire stops a pod that was taken out of its service as Kubernetes does: it goes on for a while, and then finishes what it has.
func (s *scene) retire(ctx context.Context, p *pod) {
	s.retiring.Go(func() {
		_ = site.Pause(ctx, 5*time.Second)
		p.Shutdown()
	})
}

// largeSize is the length of a download, in bytes.
const largeSize = 4 << 20

// recycleAfter is how many pages a pod serves between two connections of HTTP/2 that it asks to be replaced.
const recycleAfter = 500

// pod is a backend in this process, with an address that no other pod ever had.
type pod struct {
	*site.Backend
	requests atomic.Int64
}

// newPod starts pod number n.
func newPod(n int) *pod {
	p := &pod{}
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", p.page)
	mux.HandleFunc("/echo", echo)
	mux.HandleFunc("/large", large)
	mux.HandleFunc("/stream", stream)
	mux.Handle("/socket", websocket.Server{Handler: func(c *websocket.Conn) {
		var text string
		for websocket.Message.Receive(c, &text) == nil && websocket.Message.Send(c, text) == nil { // it sends back each message
		}
	}})
	ip := netip.AddrFrom4([4]byte{127, byte(1 + n>>16), byte(n >> 8), byte(n)})
	p.Backend = site.ServeHTTP(netip.AddrPortFrom(ip, 0), http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		p.requests.Add(1)
		mux.ServeHTTP(w, q)
	}))
	return p
}

func (p *pod) name() string {
	if p.Backend == nil {
		return ""
	}
	return p.Addr().String()
}

func (p *pod) page(w http.ResponseWriter, q *http.Request) {
	if q.ProtoMajor == 2 && p.requests.Load()%recycleAfter == 0 {
		w.Header().Set("Connection", "close") // GOAWAY
	}
	_, _ = io.WriteString(w, p.name())
}

// echo answers with the length and the sum of the body.
func echo(w http.ResponseWriter, q *http.Request) {
	sum := crc32.NewIEEE()
	n, err := io.Copy(sum, q.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprintf(w, "%d %08x", n, sum.Sum32())
}

func large(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", fmt.Sprint(largeSize))
	site.WriteZeros(w, largeSize)
}

// stream sends back each piece at once, and at the end how it went, as gRPC does.
func stream(w http.ResponseWriter, q *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	var piece [4 << 10]byte
	for {
		n, err := q.Body.Read(piece[:])
		if _, werr := w.Write(piece[:n]); werr != nil || flush.Flush() != nil {
			return
		}
		if err == io.EOF {
			w.Header().Set("Grpc-Status", "0")
		}
		if err != nil {
			return
		}
	}
}
