package reactor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
)

// Group is several loops that share their listening addresses, one per core as a rule.
type Group struct {
	loops []*Loop

	start   sync.Mutex // held by those who use a loop that does not run yet
	running bool

	starting atomic.Int32 // loops that do not run yet
	started  chan struct{}

	mu        sync.Mutex
	listeners []*Listener       // of Listen and Inherit
	datagrams []*DatagramSocket // of ListenDatagrams and InheritDatagrams
}

// NewGroup makes n loops (n <= 0: one per core), each with cfg.
func NewGroup(n int, cfg Config) (*Group, error) {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	g := groupOf()
	for range n {
		l, err := New(cfg)
		if err != nil {
			for _, made := range g.loops {
				made.shutdown()
			}
			return nil, err
		}
		g.loops = append(g.loops, l)
	}
	return g, nil
}

// groupOf makes a group of loops that do not run yet.
func groupOf(loops ...*Loop) *Group {
	return &Group{loops: loops, started: make(chan struct{})}
}

// Loops are the loops, in a fixed order. The slice is the group's.
func (g *Group) Loops() []*Loop { return g.loops }

// Started is closed once Run has started every loop.
func (g *Group) Started() <-chan struct{} { return g.started }

// Run runs every loop on its own goroutine until ctx is done, one of them is stopped or one fails; then all end. It returns the
// errors of those that failed. The goroutines are not locked to threads: one that the Go scheduler has interrupted goes on with
// its slot where it is, and need not be handed back to a thread of its own.
func (g *Group) Run(ctx context.Context) error {
	g.start.Lock()
	g.running = true
	g.start.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(g.loops))
	var wg sync.WaitGroup
	g.starting.Store(int32(len(g.loops)))
	for i, l := range g.loops {
		wg.Go(func() {
			defer cancel()
			if g.starting.Add(-1) == 0 {
				close(g.started)
			}
			errs[i] = l.Run(ctx)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Listen listens on addr ("host:port", host a name or an address or empty for all, IPv4 and IPv6)
// with every loop and returns the address in use: port 0 is chosen once. accept is called on the
// loop that accepted. A port that anybody else listens on already is an error, although the loops
// share it among themselves. Call it before Run or, from a goroutine that is none of the loops', during it.
func (g *Group) Listen(addr string, accept func(c *Conn) Handler) (netip.AddrPort, error) {
	ap, err := resolve(addr)
	if err == nil && ap.Port() != 0 {
		err = probe(ap)
	}
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("cannot listen on %s: %w", addr, bareError(err))
	}
	var listeners []*Listener
	for _, l := range g.loops {
		ln, err := g.listenOn(l, ap, accept)
		if err != nil {
			g.close(listeners)
			return netip.AddrPort{}, fmt.Errorf("cannot listen on %s: %w", addr, bareError(err))
		}
		listeners = append(listeners, ln)
		ap = netip.AddrPortFrom(ap.Addr(), ln.Addr().Port())
	}
	g.keep(listeners)
	return ap, nil
}

func (g *Group) keep(listeners []*Listener) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listeners = append(g.listeners, listeners...)
}

func (g *Group) close(listeners []*Listener) {
	for _, ln := range listeners {
		g.do(ln.loop, ln.Close)
	}
}

func (g *Group) listenOn(l *Loop, ap netip.AddrPort, accept func(c *Conn) Handler) (ln *Listener, err error) {
	err = ErrClosed
	g.do(l, func() { ln, err = l.Listen(ap, accept) })
	return ln, err
}

// ListenOwn has each loop listen as Loop.ListenOwn says. The addresses are in the order of Loops.
func (g *Group) ListenOwn(accept func(c *Conn) Handler) ([]netip.AddrPort, error) {
	var listeners []*Listener
	var addrs []netip.AddrPort
	for _, l := range g.loops {
		var ln *Listener
		err := ErrClosed
		g.do(l, func() { ln, err = l.ListenOwn(accept) })
		if err != nil {
			g.close(listeners)
			return nil, err
		}
		listeners, addrs = append(listeners, ln), append(addrs, ln.Addr())
	}
	g.keep(listeners)
	return addrs, nil
}

// do calls fn on l's goroutine, or here if that does not exist yet, and waits for it. It is dropped
// when the loop has ended.
func (g *Group) do(l *Loop, fn func()) {
	g.start.Lock()
	if !g.running {
		defer g.start.Unlock()
		fn()
		return
	}
	g.start.Unlock()
	done := make(chan struct{})
	if l.Post(func() { defer close(done); fn() }) {
		<-done
	}
}

// On calls fn on l, a loop of the group, and returns when it has been called: here, if l does not run yet. It is dropped when l has ended.
// Call it from a goroutine that is none of the loops'.
func (g *Group) On(l *Loop, fn func()) { g.do(l, fn) }

// resolve makes an address of host:port.
func resolve(addr string) (netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("port %q is not a number up to 65535", service)
	}
	ip, err := resolveHost(host)
	return netip.AddrPortFrom(ip, uint16(port)), err
}

func resolveHost(host string) (netip.Addr, error) {
	if host == "" {
		// The net package knows whether the system has IPv6 and shares it with IPv4.
		ln, err := net.Listen("tcp", ":0")
		if err != nil {
			return netip.Addr{}, err
		}
		defer ln.Close()
		if ln.Addr().(*net.TCPAddr).IP.To4() != nil {
			return netip.IPv4Unspecified(), nil
		}
		return netip.IPv6Unspecified(), nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip, nil
	}
	ip, err := net.ResolveIPAddr("ip", host)
	if err != nil {
		return netip.Addr{}, err
	}
	return addrOf(ip), nil
}

// probe says whether the address is free: a listener without SO_REUSEPORT must succeed.
func probe(ap netip.AddrPort) error {
	network := "tcp"
	if !ap.Addr().IsUnspecified() || ap.Addr().Is4() {
		network = "tcp4"
		if ap.Addr().Is6() {
			network = "tcp6"
		}
	}
	ln, err := net.Listen(network, ap.String())
	if err != nil {
		return err
	}
	return ln.Close()
}

func addrOf(ip *net.IPAddr) netip.Addr {
	a, _ := netip.AddrFromSlice(ip.IP)
	return a.Unmap().WithZone(ip.Zone)
}
