package tlsmux

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"turnout/internal/bound"
	"turnout/internal/list"
	"turnout/internal/reactor"
	"turnout/internal/wire/protocol"
	"turnout/routing"
	"turnout/tlsmux/clientcert"
)

// Config configures a Mux. Store, Terminated and Passthrough are required.
type Config struct {
	// Store holds the table that server names are looked up in, once per connection.
	Store *routing.Store
	// Workers bound the handshakes; nil = workers of its own.
	Workers *Workers
	// Policy is what TLS towards clients looks like; nil = the default one. Muxes between which sessions shall be resumed
	// have to share it.
	Policy *Policy
	// InspectDelay is the time from the accept until the ClientHello has to be complete. Default 5 s.
	InspectDelay time.Duration
	// HandshakeTimeout is the time from the ClientHello to the end of the handshake. Default 10 s.
	HandshakeTimeout time.Duration
	// MaxPending bounds the connections whose handshake is not complete; beyond it the oldest of the same loop is closed.
	// Default 10,000.
	MaxPending int
	// HandshakeMemory bounds the bytes that are held for handshakes that are not complete; beyond it the oldest of the same
	// loop are closed. Default 64 MiB.
	HandshakeMemory int
	// StrictSNI refuses server names for which there is no certificate, neither of a route nor the default one.
	StrictSNI bool
	// Terminated returns the handler of a connection whose handshake is complete and whose layer is set; nil closes it.
	// Required.
	Terminated func(c *reactor.Conn, info Info) reactor.Handler
	// Passthrough returns the handler of a connection that belongs to the route r; nil closes it. Nothing was consumed: the
	// handler is presented all bytes from the first one on, hello being what has come so far, valid for the call. Required.
	Passthrough func(c *reactor.Conn, r *routing.Route, info Info, hello []byte) reactor.Handler
	// Bounds counts the bounds that connections reach; nil = nobody does.
	Bounds *bound.Counts
	// Failed is called with the reason why a connection did not get to Terminated or Passthrough: a *HelloError, ErrInspectTimeout,
	// ErrHandshakeTimeout, ErrShed, ErrStrictSNI, ErrNoHello, ErrPanicked, an error of crypto/tls or of the connection. The
	// connection is closed or closing. nil = nobody is notified.
	Failed func(c *reactor.Conn, info Info, err error)
}

// Info is what is known of a connection to the TLS port. All of it comes from one look at one table. With Passthrough only
// the first group is set, with Failed what was known by then.
type Info struct {
	ServerName    string // of the ClientHello, lower case; "" = none
	HasServerName bool
	Generation    uint64 // of the table

	Certificate *tls.Certificate  // that was decided for the name; read-only
	Own         bool              // Certificate is that of a route or listener, not the default one
	Arrival     *routing.Arrival  // for requests, see routing.View
	Stream      *routing.Route    // that the connection belongs to; nil = there are requests on it
	Protocol    protocol.Protocol // agreed on by ALPN; HTTP1 without
	Negotiated  bool              // it was agreed on
	Version     uint16            // of TLS
	CipherSuite uint16
	Resumed     bool // the session was resumed; no certificate was sent

	Client      *x509.Certificate // of the client, verified; nil = it showed none, or was not asked
	AuthVersion uint32            // of the PolicyConfig that the handshake went by
}

// asked is what the client is asked for to show, nil = what Policy says for all hosts.
func (i *Info) asked() *routing.ClientAuth {
	if i.Arrival == nil {
		return nil
	}
	return i.Arrival.Auth
}

// Stats counts connections to the TLS port. Every connection is counted once, when its outcome is known.
type Stats struct {
	Terminated        atomic.Uint64 // handshakes complete
	Resumed           atomic.Uint64 // of those, with a resumed session
	Passthrough       atomic.Uint64
	BadHello          atomic.Uint64 // no TLS, or no acceptable ClientHello
	Strict            atomic.Uint64 // refused by StrictSNI
	InspectTimeouts   atomic.Uint64
	HandshakeTimeouts atomic.Uint64
	Shed              atomic.Uint64 // ErrShed and ErrQueued
	Failed            atomic.Uint64 // everything else

	ClientRefused [clientcert.Reasons]atomic.Uint64 // of Failed, because of the client's certificate
}

// Reasons for the end of a connection before its handshake.
var (
	// ErrInspectTimeout: the ClientHello was not complete in time.
	ErrInspectTimeout = errors.New("no complete ClientHello in time")
	// ErrStrictSNI: there is no certificate for the server name.
	ErrStrictSNI = errors.New("no certificate for the server name")
	// ErrNoHello: the client ended the connection before its ClientHello was complete.
	ErrNoHello = errors.New("closed by the client before its ClientHello")
)

// Mux takes over the connections accepted on the TLS port and hands them on when it is known what they are. It may be
// shared by all loops.
type Mux struct {
	cfg     Config
	inspect atomic.Int64 // Config.InspectDelay as it is now, in nanoseconds
	pending atomic.Int64
	stats   Stats

	mu    sync.Mutex // of those who change loops
	loops atomic.Pointer[[]*perLoop]
}

// perLoop is what belongs to one loop, with the list of its pending connections, the oldest first.
type perLoop struct {
	loop    *reactor.Loop
	steps   *loopSteps
	entries list.List[entry] // the oldest first
	held    int              // bytes, for handshakes
}

// NewMux checks the configuration.
func NewMux(cfg Config) (*Mux, error) {
	var err error
	switch {
	case cfg.Store == nil:
		err = errors.New("config has no Store")
	case cfg.Terminated == nil || cfg.Passthrough == nil:
		err = errors.New("config has no Terminated or no Passthrough")
	case cfg.InspectDelay < 0 || cfg.HandshakeTimeout < 0 || cfg.MaxPending < 0 || cfg.HandshakeMemory < 0:
		err = errors.New("config has a negative InspectDelay, HandshakeTimeout, MaxPending or HandshakeMemory")
	}
	if err == nil && cfg.Workers == nil {
		cfg.Workers, err = NewWorkers(WorkersConfig{})
	}
	if err == nil && cfg.Policy == nil {
		cfg.Policy, err = NewPolicy(PolicyConfig{})
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make TLS mux: %w", err)
	}
	if cfg.HandshakeTimeout == 0 {
		cfg.HandshakeTimeout = defaultHandshakeTimeout
	}
	if cfg.MaxPending == 0 {
		cfg.MaxPending = 10_000
	}
	if cfg.HandshakeMemory == 0 {
		cfg.HandshakeMemory = 64 << 20
	}
	m := &Mux{cfg: cfg}
	m.SetInspectDelay(cfg.InspectDelay)
	m.loops.Store(&[]*perLoop{})
	return m, nil
}

// SetInspectDelay replaces Config.InspectDelay for connections that are accepted from now on; 0 is the default.
func (m *Mux) SetInspectDelay(d time.Duration) { m.inspect.Store(int64(cmp.Or(d, 5*time.Second))) }

// Stats returns the counters, which go on changing.
func (m *Mux) Stats() *Stats { return &m.stats }

// Pending returns the number of connections whose handshake is not complete.
func (m *Mux) Pending() int { return int(m.pending.Load()) }

// Accept is the accept function of the listeners of the TLS port of OpenShift Routes.
func (m *Mux) Accept(c *reactor.Conn) reactor.Handler { return m.accept(c, "") }

// AcceptOn returns the accept function of a port of other listeners, see routing.ListenerSpec.
func (m *Mux) AcceptOn(port string) func(c *reactor.Conn) reactor.Handler {
	return func(c *reactor.Conn) reactor.Handler { return m.accept(c, port) }
}

func (m *Mux) accept(c *reactor.Conn, port string) reactor.Handler {
	ln := m.perLoop(c.Loop())
	if m.pending.Load() >= int64(m.cfg.MaxPending) {
		if ln.entries.Len() == 0 {
			m.stats.Shed.Add(1)
			if m.cfg.Failed != nil {
				m.cfg.Failed(c, Info{}, ErrShed)
			}
			return nil
		}
		ln.entries.First().shed()
	}
	e := &entry{mux: m, perLoop: ln, conn: c, port: port}
	e.timer = c.NewTimer(e.inspectTimeout)
	e.timer.Reset(time.Duration(m.inspect.Load()))
	e.enlist()
	return e
}

// perLoop finds the list of a loop. There are few, and they are never taken away.
func (m *Mux) perLoop(loop *reactor.Loop) *perLoop {
	for _, ln := range *m.loops.Load() {
		if ln.loop == loop {
			return ln
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	ln := &perLoop{loop: loop, steps: m.cfg.Workers.stepsOf(loop)}
	loop.CountHeld(reactor.HeldHandshakes, func() int { return ln.held })
	old := *m.loops.Load()
	loops := append(old[:len(old):len(old)], ln)
	m.loops.Store(&loops)
	return ln
}

// entry is a connection of which it is not known yet what it is. It is its handler until that is known: until the ClientHello is
// complete, and to the end of the handshake where TLS ends here.
type entry struct {
	mux     *Mux
	perLoop *perLoop
	node    list.Node[entry]
	conn    *reactor.Conn
	port    string // see AcceptOn
	timer   *reactor.Timer
	parser  HelloParser
	hs      *handshake // once TLS ends here
	info    Info
	judged  bool   // a client certificate is verified
	tenant  string // the namespace that requires client certificates; "" = the router
	over    bool
}

func (e *entry) enlist() {
	e.mux.pending.Add(1)
	e.perLoop.entries.Push(&e.node, e)
}

// leave takes the connection off the list, once.
func (e *entry) leave() {
	if e.over {
		return
	}
	e.over = true
	e.timer.Stop()
	e.mux.pending.Add(-1)
	e.node.Remove()
}

// fail leaves, counts and tells.
func (e *entry) fail(err error) {
	if e.over {
		return
	}
	e.leave()
	s := &e.mux.stats
	var bad *HelloError
	switch {
	case errors.As(err, &bad):
		s.BadHello.Add(1)
	case errors.Is(err, ErrInspectTimeout):
		s.InspectTimeouts.Add(1)
	case errors.Is(err, ErrHandshakeTimeout):
		s.HandshakeTimeouts.Add(1)
	case errors.Is(err, ErrShed), errors.Is(err, ErrQueued):
		s.Shed.Add(1)
	case errors.Is(err, ErrStrictSNI):
		s.Strict.Add(1)
	default:
		s.Failed.Add(1)
		if reason, ok := clientcert.ReasonOf(err); ok {
			s.ClientRefused[reason].Add(1)
		}
	}
	if e.mux.cfg.Failed != nil {
		e.mux.cfg.Failed(e.conn, e.info, err)
	}
}

// holds counts what is held for the handshake, and ends others where that is too much.
func (e *entry) holds(delta int) {
	ln, m := e.perLoop, e.mux
	most := m.cfg.HandshakeMemory / len(*m.loops.Load())
	if ln.held += delta; delta <= 0 || ln.held <= most {
		return
	}
	for old := ln.entries.First(); old != nil && ln.held > most-most/8; {
		next := old.node.Next()
		if old.hs != nil {
			m.cfg.Bounds.Reached(bound.HandshakeMemory)
			old.shed()
		}
		old = next
	}
}

func (e *entry) shed() {
	if e.hs != nil {
		e.hs.fail(ErrShed)
		return
	}
	e.conn.CloseNow(true)
	e.fail(ErrShed)
}

func (e *entry) inspectTimeout() {
	e.conn.CloseNow(false)
	e.fail(ErrInspectTimeout)
}

// refuse closes with an alert; without one not a byte is sent.
func (e *entry) refuse(alert Alert, err error) {
	if alert == 0 {
		e.conn.CloseNow(false)
	} else {
		e.conn.Write(alert.record())
		e.conn.Close()
	}
	e.fail(err)
}

// Connected implements reactor.Handler.
func (e *entry) Connected(*reactor.Conn) {}

// Data implements reactor.Handler.
func (e *entry) Data(c *reactor.Conn, p []byte) int {
	if e.hs != nil {
		return e.hs.Data(c, p)
	}
	if e.over {
		return len(p)
	}
	d, done, err := e.read(p)
	var bad *HelloError
	switch {
	case errors.As(err, &bad):
		e.refuse(bad.Alert, err)
		return len(p)
	case err != nil:
		e.conn.CloseNow(true)
		e.fail(err)
		return len(p)
	case !done:
		return 0
	}
	return e.act(&d, p)
}

// read reads what has come so far, and decides once the ClientHello is complete.
func (e *entry) read(p []byte) (d decision, done bool, err error) {
	defer e.mux.cfg.Workers.recovered(&err)
	var hello Hello
	if done, err = e.parser.Parse(p, &hello); done {
		d = e.decide(&hello)
	}
	return d, done, err
}

// act does what was decided. It returns what Data returns.
func (e *entry) act(d *decision, p []byte) int {
	e.timer.Stop()
	cfg := &e.mux.cfg
	if r := d.passthrough; r != nil {
		e.leave()
		e.mux.stats.Passthrough.Add(1)
		h := cfg.Passthrough(e.conn, r, e.info, p)
		if h == nil {
			e.conn.CloseNow(false)
			return len(p)
		}
		e.conn.SetHandler(h)
		return 0
	}
	if d.strict {
		alert := AlertUnrecognizedName
		if d.silent {
			alert = 0
		}
		e.refuse(alert, ErrStrictSNI)
		return len(p)
	}
	e.parser = HelloParser{}
	layer := newLayer(e.conn, cfg.Workers)
	layer.wire.serverName = e.info.ServerName
	layer.wire.certificate = e.info.Certificate
	h := handshakeConfig{
		workers: cfg.Workers, work: workOf(e.info.Certificate), conn: e.conn, layer: layer,
		timeout: cfg.HandshakeTimeout, first: p, most: maxClientFlight, entry: e, tenant: e.tenant,
	}
	if d.resumes {
		h.work = WorkResumed
	}
	asks := d.from.mode != clientcert.None
	if (d.resumes || light(e.info.Certificate)) && !asks && e.perLoop.steps.hasCapacity(h.work) {
		h.steps = e.perLoop.steps
	}
	config := d.config
	if asks {
		trust := d.from.trust
		config = config.Clone()
		config.VerifyConnection = func(cs tls.ConnectionState) error { return layer.wire.hs.judgeClient(&cs, trust) }
	}
	layer.tls = tls.Server(&layer.wire, config)
	e.hs = startHandshake(h)
	return len(p)
}

// established gets the result of the handshake.
func (e *entry) established(err error) {
	if err != nil {
		e.fail(fmt.Errorf("cannot complete TLS handshake: %w", err))
		return
	}
	e.leave()
	cs := e.hs.layer.tls.ConnectionState()
	i := &e.info
	i.Negotiated = cs.NegotiatedProtocol != ""
	i.Protocol, i.Version, i.CipherSuite, i.Resumed = protocol.Agreed(cs.NegotiatedProtocol), cs.Version, cs.CipherSuite, cs.DidResume
	if e.judged && len(cs.PeerCertificates) > 0 {
		i.Client = cs.PeerCertificates[0]
	}
	e.hs.layer.buffers.forgetPeer(e.hs.layer.tls)
	e.mux.stats.Terminated.Add(1)
	if i.Resumed {
		e.mux.stats.Resumed.Add(1)
	}
	h := e.mux.cfg.Terminated(e.conn, *i)
	if h == nil {
		e.conn.Close()
		return
	}
	e.conn.SetHandler(h)
}

// names tells whether a certificate is valid for a name, by its SANs or, with none of them, its common name.
func names(cert *tls.Certificate, name string) bool {
	leaf := cert.Leaf
	if leaf == nil {
		var err error
		if leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
			return false
		}
	}
	return leaf.VerifyHostname(name) == nil || len(leaf.DNSNames) == 0 && strings.EqualFold(leaf.Subject.CommonName, name)
}

// EOF implements reactor.Handler: without a complete ClientHello there is nobody to answer.
func (e *entry) EOF(c *reactor.Conn) {
	if e.hs != nil {
		e.hs.EOF(c)
		return
	}
	c.CloseNow(false)
	e.fail(ErrNoHello)
}

// Drained implements reactor.Handler.
func (e *entry) Drained(*reactor.Conn) {}

// Closed implements reactor.Handler.
func (e *entry) Closed(c *reactor.Conn, err error) {
	if e.hs != nil {
		e.hs.Closed(c, err)
		return
	}
	if err == nil {
		err = reactor.ErrClosed
	}
	e.fail(err)
}
