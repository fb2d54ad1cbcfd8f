package main

import (
	"context"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/health"
	"turnout/internal/metrics"
	"turnout/internal/overload"
	"turnout/internal/pulse"
	"turnout/internal/ratelimit"
	"turnout/internal/reactor"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/proxy/h1"
	"turnout/proxy/h2"
	"turnout/proxy/identity"
	"turnout/proxy/tunnel"
	"turnout/proxy/upstream"
	"turnout/routing"
	"turnout/tlsmux"
)

// dataplaneConfig is what the request path is built from.
type dataplaneConfig struct {
	HTTPAddr, HTTPSAddr string // host:port, port 0 allowed
	Loops               int    // 0: one per processor
	Store               *routing.Store
	Registry            *balancer.Registry // whose endpoints are checked
	StrictSNI           bool
	ProxyProtocol       bool                // every connection begins with a PROXY header
	ProxyTrusted        []netip.Prefix      // whose header is believed; nil: everybody's
	TLS                 tlsmux.PolicyConfig // towards clients
	AccessLog           proxy.AccessLog     // nil: no access log
	Log                 *zap.Logger
	Timeouts            proxy.Timeouts
	Headers             headerOptions
	Limits              limitOptions
	UniqueID            *proxy.UniqueID // nil: requests get no id
	Answers             answers
	Identities          identity.Rules          // of clients that are asked for certificates
	Late                bool                    // Open is called later, by whoever asked for it
	Inherit             func(name string) []int // sockets of the process before this one, by socketName; nil: none
	Rates               *ratelimit.Memory       // that of the store's tables; nil: it is not swept
	Bounds              *bound.Counts           // counts bounds that are reached; nil: nobody does
	MemoryLimit         uint64                  // of the process, in bytes; 0: none
}

// dataplane is the request path: one set of packages per event loop.
type dataplane struct {
	cfg         dataplaneConfig
	group       *reactor.Group
	budget      *reactor.Budget
	guard       overload.Guard
	mux         *tlsmux.Mux
	policy      *tlsmux.Policy
	anonymous   *identity.Identity // of clients without a certificate
	front       *tlsmux.FrontProxy // nil without the PROXY protocol
	health      *health.Monitor
	pulse       *pulse.Pulse
	lanes       map[*reactor.Loop]*lane
	http, https netip.AddrPort
	handedOver  atomic.Bool // another process accepts the connections now
	panics      atomic.Uint64
	panicTold   atomic.Int64 // when the log told of one last, in ns since 1970
	refused     refusals
}

// lane is everything of one loop.
type lane struct {
	pools       *h1.Pools
	pools2      *h2.Pools
	worker      *proxy.Worker
	server      *h1.Server
	server2     *h2.Server
	passthrough *tunnel.Passthrough
	accepted    [2]atomic.Uint64 // on the plain and on the TLS port
}

// newDataplane builds the packages and, unless cfg.Late is set, listens on both ports.
func newDataplane(cfg dataplaneConfig) (*dataplane, error) {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	files := descriptorLimit()
	if err := reactor.ReserveDescriptors(min(files, reservedDescriptors)); err != nil {
		cfg.Log.Warn("many new connections will hold up others now and then", zap.Error(err))
	}
	d := &dataplane{cfg: cfg, budget: cfg.Limits.budget(files), lanes: map[*reactor.Loop]*lane{}}
	if cfg.Loops <= 0 {
		cfg.Loops = runtime.GOMAXPROCS(0)
	}
	loops := cfg.Limits.loops(d.budget, d.connectionPanicked)
	loops.HeldBytes = cfg.Limits.heldBytes(cfg.MemoryLimit, cfg.Loops)
	loops.Shed = func() { cfg.Bounds.Reached(bound.HeldMemory) }
	group, err := reactor.NewGroup(cfg.Loops, loops)
	if err != nil {
		return nil, err
	}
	d.group = group
	workers, err := tlsmux.NewWorkers(tlsmux.WorkersConfig{Handshakes: handshakes(len(group.Loops())), Panicked: d.handshakePanicked})
	if err != nil {
		return nil, err
	}
	client, err := tlsmux.NewClient(tlsmux.ClientConfig{Workers: workers, Timeout: cfg.Timeouts.Connect})
	if err != nil {
		return nil, err
	}
	if d.mux, err = d.newMux(workers); err != nil {
		return nil, err
	}
	for _, loop := range group.Loops() {
		if d.lanes[loop], err = d.newLane(loop, client); err != nil {
			return nil, err
		}
	}
	d.health, err = health.NewMonitor(health.MonitorConfig{
		Registry: cfg.Registry, Loops: group.Loops(), Secure: client.Secure, Negotiate: client.Negotiate, ConnectTimeout: cfg.Timeouts.Connect,
		Answer: cfg.Limits.heads(cfg.Headers.maxRewrite), Changed: d.checked, Panicked: d.checkPanicked, Bounds: d.cfg.Bounds,
	})
	if err != nil {
		return d, err
	}
	own := &proxy.Client{Own: true}
	d.pulse, err = pulse.New(pulse.Config{Group: group, Bounds: cfg.Bounds, Accept: func(c *reactor.Conn) reactor.Handler {
		return d.lanes[c.Loop()].server.AcceptFrom(c, own)
	}})
	if err != nil || cfg.Late {
		return d, err
	}
	return d, d.Open()
}

// Open listens on both ports.
func (d *dataplane) Open() error {
	plain, secure := d.acceptPlain, d.acceptTLS
	if d.cfg.ProxyProtocol {
		var err error
		if d.front, err = tlsmux.NewFrontProxy(tlsmux.FrontProxyConfig{Timeout: d.cfg.Timeouts.ClientHello, Trusted: d.cfg.ProxyTrusted}); err != nil {
			return err
		}
		plain, secure = d.front.Accept(plain), d.front.Accept(secure)
	}
	var err error
	if d.http, err = d.listen(plainSocket, d.cfg.HTTPAddr, plain); err != nil {
		return err
	}
	d.https, err = d.listen(tlsSocket, d.cfg.HTTPSAddr, secure)
	return err
}

// listen opens one port, or goes on with the sockets of the process before this one.
func (d *dataplane) listen(role, addr string, accept func(c *reactor.Conn) reactor.Handler) (netip.AddrPort, error) {
	if d.cfg.Inherit != nil {
		if sockets := d.cfg.Inherit(socketName(role, addr)); sockets != nil {
			return d.group.Inherit(sockets, accept)
		}
	}
	return d.group.Listen(addr, accept)
}

// newLane builds the packages of one loop.
func (d *dataplane) newLane(loop *reactor.Loop, client *tlsmux.Client) (*lane, error) {
	ln := &lane{}
	var err error
	if ln.pools, err = h1.NewPools(h1.PoolsConfig{Loop: loop, Secure: client.Secure, ConnectTimeout: d.cfg.Timeouts.Connect, Adjust: d.cfg.Headers.adjust, Limits: d.cfg.Limits.heads(d.cfg.Headers.maxRewrite)}); err != nil {
		return nil, err
	}
	ln.pools2, err = h2.NewPools(h2.PoolsConfig{
		Loop: loop, Adopt: ln.pools.Adopt, Secure: client.Negotiate, ConnectTimeout: d.cfg.Timeouts.Connect, Bounds: d.cfg.Bounds,
	})
	if err != nil {
		return nil, err
	}
	config := proxy.Config{
		Store: d.cfg.Store, Clock: h1.Clock{Loop: loop}, Upstreams: upstream.New(ln.pools, ln.pools2), AccessLog: d.cfg.AccessLog, Timeouts: d.cfg.Timeouts, Bounds: d.cfg.Bounds,
	}
	config.Panicked, config.Overloaded = d.messagePanicked, d.guard.Refusing()
	d.cfg.Headers.configure(&config, d.cfg.UniqueID)
	d.cfg.Answers.configure(&config)
	config.CloseTunnels = d.cfg.Limits.closeTunnels
	config.RouteConnections, config.Crowded = d.cfg.Limits.routeConnections(descriptorLimit()), d.budget.Crowded
	if ln.worker, err = proxy.NewWorker(config); err != nil {
		return nil, err
	}
	loop.OnTrim(ln.worker.Trim)
	loop.CountHeld(reactor.HeldBodies, ln.worker.Kept)
	if ln.server2, err = h2.NewServer(h2.ServerConfig{Loop: loop, Worker: ln.worker}); err != nil {
		return nil, err
	}
	ln.server, err = h1.NewServer(h1.ServerConfig{
		Loop: loop, Worker: ln.worker, Adjust: d.cfg.Headers.adjust, Limits: d.cfg.Limits.heads(d.cfg.Headers.maxRewrite),
		IgnoreProbes: d.cfg.Answers.ignoreProbes, DontLogNull: d.cfg.Answers.dontLogNull,
		HTTP2: func(c *reactor.Conn, client proxy.Client) reactor.Handler { return ln.server2.AcceptFrom(c, client) },
	})
	if err != nil {
		return nil, err
	}
	ln.passthrough = &tunnel.Passthrough{Loop: loop, Worker: ln.worker}
	return ln, nil
}

func (d *dataplane) acceptPlain(c *reactor.Conn) reactor.Handler {
	ln := d.lanes[c.Loop()]
	ln.accepted[0].Add(1)
	return ln.server.Accept(c, false)
}

func (d *dataplane) acceptTLS(c *reactor.Conn) reactor.Handler {
	d.lanes[c.Loop()].accepted[1].Add(1)
	return d.mux.Accept(c)
}

// newMux builds the entrance of the TLS port, shared by all loops.
func (d *dataplane) newMux(workers *tlsmux.Workers) (*tlsmux.Mux, error) {
	clients := d.cfg.TLS
	clients.Protocols = []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}
	var err error
	if d.policy, err = tlsmux.NewPolicy(clients); err != nil {
		return nil, err
	}
	d.anonymous = d.cfg.Identities.Of(nil)
	return tlsmux.NewMux(tlsmux.Config{
		Store: d.cfg.Store, Workers: workers, Policy: d.policy, InspectDelay: d.cfg.Timeouts.ClientHello, StrictSNI: d.cfg.StrictSNI, Bounds: d.cfg.Bounds,
		HandshakeMemory: d.cfg.Limits.heldBytes(d.cfg.MemoryLimit, 1) / 2,
		Terminated: func(c *reactor.Conn, info tlsmux.Info) reactor.Handler {
			ln, client := d.lanes[c.Loop()], &proxy.Client{Secure: true, Agreed: info.Protocol, TLSVersion: info.Version, CipherSuite: info.CipherSuite, Identity: d.identity(info.Client)}
			if client.ServerName = info.ServerName; info.Certificate != nil && info.Certificate.Leaf != nil {
				client.Covered = (*tlsmux.Names)(info.Certificate.Leaf)
			}
			if client.Agreed == protocol.HTTP2 {
				return ln.server2.AcceptFrom(c, *client)
			}
			return ln.server.AcceptFrom(c, client)
		},
		Failed: d.handshakeFailed,
		Passthrough: func(c *reactor.Conn, r *routing.Route, info tlsmux.Info, _ []byte) reactor.Handler {
			return d.lanes[c.Loop()].passthrough.Accept(c, r, info.ServerName)
		},
	})
}

// HTTP is the address plain HTTP is served on.
func (d *dataplane) HTTP() netip.AddrPort { return d.http }

// HTTPS is the address TLS is served on.
func (d *dataplane) HTTPS() netip.AddrPort { return d.https }

// handshakes is how many TLS handshakes compute at the same time beside so many loops. More
// than half of the cores would leave none free for a loop that wakes up.
func handshakes(loops int) int { return (loops + 1) / 2 }

// schedulerSlots is GOMAXPROCS for so many loops: one for each, and one for everything else, so that logs, the controller
// and handshakes on threads need not wait for a busy loop, which keeps its own for 10 ms at a time. The collector of garbage has no
// more workers than that.
func schedulerSlots(loops int) int { return loops + 1 }

// Run serves until ctx is done. Then nobody can connect any more, idle connections are closed,
// running requests and tunnels get until Timeouts.Drain, and what is left is cut. After HandOver idle
// connections get one more answer first: their clients may connect again at once.
func (d *dataplane) Run(ctx context.Context) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	runtime.GOMAXPROCS(schedulerSlots(len(d.lanes)))
	loops, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- d.group.Run(loops) }()
	go func() { _ = d.health.Run(loops) }() // ends with the loops
	go d.watchLoad(loops)                   // so does this
	if d.cfg.Limits.closeTunnels > 0 {
		go d.watchRoutes(loops) // and this
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	d.pulse.Stop()
	d.group.StopListening()
	d.drain()
	stop()
	return <-ended
}

func (d *dataplane) drain() {
	deadline := time.NewTimer(d.cfg.Timeouts.Drain)
	defer deadline.Stop()
	var left sync.WaitGroup
	for loop, ln := range d.lanes {
		left.Add(2)
		if !loop.Post(func() {
			ln.worker.Drain()
			ln.server.Drain(d.cfg.Answers.keepIdle || d.handedOver.Load(), left.Done)
			ln.server2.Drain(left.Done)
		}) {
			left.Add(-2)
		}
	}
	drained := make(chan struct{})
	go func() { left.Wait(); close(drained) }()
	look := time.NewTicker(drainLook)
	defer look.Stop()
	connections := true
	for quiet := 0; quiet < 2; { // a connection that passes from a handshake to a server is in neither count for a moment
		select {
		case <-drained:
			connections, drained = false, nil
		case <-look.C: // nobody tells when the last handshake or tunnel ends
			if quiet++; connections || d.busy() {
				quiet = 0
			}
		case <-deadline.C:
			d.cfg.Log.Warn("requests were still running when the drain time was over", zap.Duration("drain", d.cfg.Timeouts.Drain))
			return
		}
	}
}

// busy says that connections remain of which Drain does not tell: tunnels, and those that
// were accepted before it began and had not finished their handshake.
func (d *dataplane) busy() bool {
	t := d.Stats()
	return t.Active > 0 || d.mux.Pending() > 0 || t.Open[0]+t.Open[1] > 0
}

// drainLook is how often a router that stops looks whether anything is left.
const drainLook = 20 * time.Millisecond

// checked logs what health checks found. With a request it names that: other routes may see the endpoint otherwise.
func (d *dataplane) checked(c *balancer.Check, up bool, why health.Result) {
	fields := []zap.Field{zap.Stringer("address", c.Endpoint().Addr()), zap.Stringer("result", why.Outcome)}
	if c.HTTP().Asks() {
		h := c.HTTP().Request()
		fields = append(fields, zap.String("path", h.Path), zap.String("host", h.Host))
	}
	if why.Status != 0 {
		fields = append(fields, zap.Int("status", why.Status))
	}
	if up {
		d.cfg.Log.Info("endpoint is up", fields...)
		return
	}
	d.cfg.Log.Warn("endpoint is down: its health checks fail", fields...)
}

// Health are the counters about endpoints that fail. Any goroutine may call it.
func (d *dataplane) Health() metrics.Health {
	s := d.health.Stats()
	failed := s.Failed.Load() // first: no more than the checks
	return metrics.Health{Checks: s.Checks.Load(), Failed: failed, Downs: s.Downs.Load(), Ejections: d.cfg.Registry.Ejections()}
}

// Connected returns how many clients are connected to the plain and to the TLS port now, those whose TLS is passed through
// not among them. Any goroutine may call it.
func (d *dataplane) Connected() (plain, secure int64) {
	for _, ln := range d.lanes {
		plain += ln.server.Open(false) + ln.server2.Open(false)
		secure += ln.server.Open(true) + ln.server2.Open(true)
	}
	return plain, secure
}

// Stats sums the counters of all loops. Any goroutine may call it.
func (d *dataplane) Stats() proxy.Totals {
	var t proxy.Totals
	for _, ln := range d.lanes {
		ln.worker.Totals(&t)
		for i := range ln.accepted {
			t.Connections[i] += ln.accepted[i].Load()
		}
	}
	t.Open[0], t.Open[1] = d.Connected()
	if d.front != nil {
		t.HeaderErrors = d.front.Rejected()
	}
	s := d.mux.Stats()
	t.Panics = d.panics.Load()
	t.Handshakes = s.Terminated.Load()
	t.HandshakeErrors = s.BadHello.Load() + s.Strict.Load() + s.InspectTimeouts.Load() + s.HandshakeTimeouts.Load() + s.Shed.Load() + s.Failed.Load()
	return t
}
