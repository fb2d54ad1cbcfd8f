package adversary

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/http2"

	"turnout/bench/site"
)

// targets are where a router is attacked.
type targets struct{ HTTP, HTTPS, Admin, Gateway string }

// rig is a router in a process of its own before pods in this one.
type rig struct {
	*site.T
	seconds int           // of an attack
	floor   time.Duration // p99 may always be that
	ahead   bool          // real-time priority for router and bystanders
	verbose bool

	router  *site.Router
	gateway string // address of the Gateway of costlyRoutes
	frozen  freezer
	self    atomic.Pointer[string] // where the router serves, for pods that lead back to it
}

// floodedPod is the pod that floods are sent to. It is a process of its own behind everybody else, because its work would
// otherwise keep bystanders waiting: what is measured is what the router does about a flood.
const floodedPod = "flooded-pod"

// routesBeside are routes that nobody uses, so that the pages of the admin port are long.
const routesBeside = 2000

// start starts pods and the router, and then gives this process a real-time priority. The router gets a high ordinary one: among its
// own threads event loops go first, which a real-time priority would undo.
func (r *rig) start() {
	site.OpenFiles(20000)
	r.gateway = freeAddr()
	text := r.manifests()
	runtime.LockOSThread() // a child inherits the priority of the thread that starts it
	defer runtime.UnlockOSThread()
	if r.ahead && syscall.Setpriority(syscall.PRIO_PROCESS, 0, -15) == nil {
		defer syscall.Setpriority(syscall.PRIO_PROCESS, 0, 0) //nolint:errcheck // it may be lowered by anybody
	}
	r.router = r.Start(site.Config{Manifests: text, Args: []string{"--gateway-api"}, Env: []string{"GOMEMLIMIT=256MiB"}})
	r.Cleanup(r.frozen.thaw)
	r.self.Store(&r.router.HTTP)
	if r.ahead {
		site.RealTime()
	}
}

// manifests starts the pods and describes routes and services.
func (r *rig) manifests() string {
	var drops atomic.Int64
	ports := map[string]int{
		"own": r.ServeHTTP(pages()).Port(), "shared": r.ServeHTTP(pages()).Port(), floodedPod: r.startFloodedPod(),
		"freeze": r.ServeConns(r.frozen.serve).Port(), "loop": r.ServeConns(r.lead).Port(),
		"drop": r.ServeConns(func(c net.Conn) { serveDropping(c, &drops) }).Port(),
	}
	const quick = "haproxy.router.openshift.io/timeout: 2s"
	var b strings.Builder
	for i, ro := range []struct{ host, pod, protocol, annotations, tls string }{
		{host: "own1.test", pod: "own"}, {host: "own2.test", pod: "own", protocol: "h2c"},
		{host: "shared1.test", pod: "shared"}, {host: "shared2.test", pod: "shared", protocol: "h2c"},
		{host: "flooded1.test", pod: floodedPod}, {host: "flooded2.test", pod: floodedPod, protocol: "h2c"},
		{host: "redirect.test", pod: "shared", tls: "termination: edge, insecureEdgeTerminationPolicy: Redirect"},
		{host: "freeze.test", pod: "freeze", protocol: "h2c", annotations: quick},
		{host: "drop.test", pod: "drop", protocol: "h2c"},
		{host: "loop.test", pod: "loop", annotations: "haproxy.router.openshift.io/set-forwarded-headers: never"},
		{host: "chain.test", pod: "shared", tls: longChain("chain.test")},
		{host: "clients.test", pod: "shared", tls: "termination: edge", annotations: "turnout.router/client-ca: " + clientsSecret},
	} {
		namespace := fmt.Sprint("n", i)
		if ro.host == "clients.test" {
			namespace = clientsNamespace
		}
		b.WriteString(site.Route{Namespace: namespace, Host: ro.host, Service: "s", Annotations: ro.annotations, TLS: ro.tls}.String())
		b.WriteString(site.Service{Namespace: namespace, Name: "s", Protocol: ro.protocol, Port: ports[ro.pod]}.String())
	}
	b.WriteString(clientsOf(clientsNamespace))
	b.WriteString(costlyRoutes(r.gateway, ports[floodedPod]))
	for i := range routesBeside {
		name := fmt.Sprint("beside-", i)
		b.WriteString(site.Route{Namespace: "beside", Name: name, Host: name + ".test", Service: "none", Annotations: "haproxy.router.openshift.io/timeout: 30s"}.String())
	}
	return b.String()
}

// clientsSecret is the Secret with the authority of clients, in clientsNamespace.
const clientsSecret, clientsNamespace = "authorities", "clients"

// clientsOf is that Secret as a document.
func clientsOf(namespace string) string {
	authority := site.NewKeyPair("authority.test", false).Certificate
	return fmt.Sprintf("---\n{kind: Secret, apiVersion: v1, metadata: {name: %s, namespace: %s}, stringData: {ca.crt: %q}}\n", clientsSecret, namespace, authority)
}

// startFloodedPod starts the pod of floods and returns its port.
func (r *rig) startFloodedPod() int {
	l := site.Must(net.ListenTCP("tcp", net.TCPAddrFromAddrPort(site.Loopback)))
	defer func() { _ = l.Close() }()
	file := site.Must(l.File())
	defer file.Close()
	cmd := site.LowPriority(site.Self(r.Context, floodedPod))
	cmd.ExtraFiles = []*os.File{file}
	r.Cleanup(site.StartProcess("the flooded pod", cmd, site.AnyCore, nil).Kill)
	return l.Addr().(*net.TCPAddr).Port
}

// freeAddr returns an address of loopback with a port that is free at the moment.
func freeAddr() string {
	l := site.Must(net.ListenTCP("tcp", net.TCPAddrFromAddrPort(site.Loopback)))
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// longChain is the TLS of a route with a certificate chain of 48 KiB as text, within what a route may have.
func longChain(host string) string {
	authority := site.NewKeyPair("authority.test", true).Certificate
	own := site.NewKeyPair(host, false)
	return fmt.Sprintf("termination: edge, certificate: %q, key: %q, caCertificate: %q", own.Certificate, own.Key, strings.Repeat(authority, 48<<10/len(authority)))
}

// pages are a pod's: a short one, a large one, events without an end, and a tunnel.
func pages() http.Handler {
	const largeSize = 8 << 20
	var mu sync.Mutex
	var tunnels []net.Conn
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		_, _ = io.WriteString(w, "a page\n")
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(largeSize))
		site.WriteZeros(w, largeSize)
	})
	mux.HandleFunc("/events", func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", strings.Repeat("e", 500))
			if http.NewResponseController(w).Flush() != nil || site.Pause(q.Context(), 5*time.Millisecond) != nil {
				return
			}
		}
	})
	mux.HandleFunc("/tunnel", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "x")
		w.WriteHeader(http.StatusSwitchingProtocols)
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		// It never ends the connection by itself: that is up to the router. Unreachable, it would be closed.
		mu.Lock()
		tunnels = append(tunnels, c)
		mu.Unlock()
		_, _ = io.Copy(io.Discard, c)
	})
	return mux
}

// freezer is a pod of HTTP/2 that can stop passing anything on, on the connections there are, as if its node were gone.
type freezer struct {
	mu    sync.Mutex
	conns []*frozenConn
}

type frozenConn struct {
	net.Conn

	ice atomic.Bool
}

func (f *freezer) serve(c net.Conn) {
	fc := &frozenConn{Conn: c}
	f.mu.Lock()
	f.conns = append(f.conns, fc)
	f.mu.Unlock()
	new(http2.Server).ServeConn(fc, &http2.ServeConnOpts{Handler: pages()})
}

// freeze stops all connections there are. New ones work.
func (f *freezer) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.ice.Store(true)
	}
}

// thaw ends all connections.
func (f *freezer) thaw() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.Close()
	}
	f.conns = nil
}

// Read hands out nothing any more once the connection is frozen.
func (c *frozenConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.ice.Load() {
			return n, err
		}
	}
}

// Write loses what is written once the connection is frozen.
func (c *frozenConn) Write(p []byte) (int, error) {
	if c.ice.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// dropEach is how often a pod of HTTP/2 ends its connection with a request in its hands.
const dropEach = 10

func serveDropping(c net.Conn, n *atomic.Int64) {
	page := pages()
	new(http2.Server).ServeConn(c, &http2.ServeConnOpts{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if n.Add(1)%dropEach == 0 {
			c.Close()
			return
		}
		page.ServeHTTP(w, q)
	})})
}

// lead sends what comes back to the router: a pod that forwards, and lost its way. It says nothing of where a request came from.
func (r *rig) lead(c net.Conn) {
	self := r.self.Load()
	if self == nil {
		return
	}
	back, err := net.Dial("tcp", *self)
	if err != nil {
		return
	}
	defer back.Close()
	go func() {
		_, _ = io.Copy(c, back)
		c.Close()
	}()
	_, _ = io.Copy(back, c)
}

// dialed is a connection to an address; without one the attacker begins anew.
func dialed(addr string) *net.TCPConn { return site.Must(net.Dial("tcp", addr)).(*net.TCPConn) }
