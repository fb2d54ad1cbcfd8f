// Package live puts options to use that may change while the router runs: at the start, and again whenever they are others. There is one
// path: what the start does is the first change.
//
//	options ─► Plan ─► Keeper.First, Keeper.Apply ─► server.Server.Apply, controller.Controller.Configure
//
// What options name besides, such as the file of the access log or what client certificates are judged by, is opened when it is named first
// and closed when nothing that runs uses it any more.
package live

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"sync"

	"go.uber.org/zap"

	"turnout/controller"
	"turnout/internal/accesslog"
	"turnout/internal/follow"
	"turnout/internal/logging"
	"turnout/internal/problem"
	"turnout/internal/server"
	"turnout/internal/target"
	"turnout/tlsmux"
	"turnout/tlsmux/clientcert"
)

// Plan is what options say about what may change.
type Plan struct {
	// Server is what the request path goes by. What follows from the other fields is filled in: AccessLog, Unavailable, NotFound and UniqueID
	// of its Proxy, and Trust of its TLS.
	Server                     server.Config
	Control                    controller.Options
	Logs                       logging.RequestsConfig // without Stdout, Log and Connected
	Pages                      server.Pages
	UniqueFormat, UniqueHeader string
	Trust                      follow.TrustConfig // for clients that are asked for certificates; without Log and Problems
	Certificate                tlsmux.DefaultCertificate
}

// Config is what a Keeper needs. Log and Stdout are required.
type Config struct {
	Log       *zap.Logger
	Problems  *problem.List // nil = nobody asks
	Targets   *target.Guard // judges the sources of revocation lists; nil = no check
	Stdout    io.Writer     // for lines of the access log
	Connected func() (plain, secure int64)
}

// Keeper has the router go by a Plan. Its methods may be called by any goroutine, those that change something by one at a time.
type Keeper struct {
	cfg     Config
	server  *server.Server         // nil until Attach
	control *controller.Controller // nil until Attach

	mu          sync.Mutex
	ctx         context.Context // of Run; nil = it has not been called
	plan        Plan
	trust       *follow.Trust // nil = clients are not asked
	certificate *follow.Certificate
	stop        [2]func() // what ends following trust and certificate; nil = they are not followed
	requests    *accesslog.Log
	closeLog    func()
	past        accesslog.Stats // of logs that are closed
	running     sync.WaitGroup
}

// Things that a Keeper follows.
const (
	ofTrust = iota
	ofCertificate
)

// New returns a Keeper without a Plan.
func New(cfg Config) *Keeper { return &Keeper{cfg: cfg, closeLog: func() {}} }

// First returns what the request path is made from. An error says which option cannot be used; then there is nothing to close.
func (k *Keeper) First(plan Plan) (server.Config, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var err error
	if k.certificate, err = follow.NewCertificate(plan.Certificate, k.cfg.Log, k.cfg.Problems); err != nil {
		return server.Config{}, err
	}
	if k.trust, err = k.newTrust(&plan); err != nil {
		return server.Config{}, err
	}
	if k.trust != nil {
		plan.Server.TLS.Trust = k.trust.First()
	}
	if k.requests, k.closeLog, err = k.openLog(&plan); err != nil {
		k.closeLog = func() {}
		return server.Config{}, err
	}
	k.attachLog(&plan)
	plan.Pages.Load(&plan.Server.Proxy, logging.Server(k.cfg.Log), k.cfg.Problems)
	if plan.Server.Proxy.UniqueID, err = server.UniqueID(plan.UniqueFormat, plan.UniqueHeader, logging.Server(k.cfg.Log)); err != nil {
		k.closeLog()
		return server.Config{}, err
	}
	k.plan = plan
	return plan.Server, nil
}

// Certificate is the default certificate as it was loaded last.
func (k *Keeper) Certificate() *tls.Certificate {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.certificate.Current()
}

// Attach says what goes by the plan, and follows changes of it.
func (k *Keeper) Attach(s *server.Server, c *controller.Controller) {
	k.server, k.control = s, c
	if k.trust != nil {
		k.trust.Use(s.Policy().SetTrust)
	}
}

// Run follows the files that the plan names until ctx is done. It returns nil then.
func (k *Keeper) Run(ctx context.Context) error {
	k.mu.Lock()
	k.ctx = ctx
	k.followTrust()
	k.followCertificate()
	k.mu.Unlock()
	<-ctx.Done()
	k.running.Wait()
	return nil
}

// start follows one thing until it is replaced or the router ends. The caller holds mu.
func (k *Keeper) start(what int, run func(context.Context)) {
	if k.ctx == nil {
		return
	}
	ctx, cancel := context.WithCancel(k.ctx)
	ended := make(chan struct{})
	k.running.Go(func() { defer close(ended); run(ctx) })
	k.stop[what] = func() { cancel(); <-ended }
}

// end ends what start began.
func (k *Keeper) end(what int) {
	if k.stop[what] != nil {
		k.stop[what]()
		k.stop[what] = nil
	}
}

func (k *Keeper) followTrust() {
	if k.trust != nil {
		k.start(ofTrust, k.trust.Run)
	}
}

func (k *Keeper) followCertificate() {
	k.start(ofCertificate, func(ctx context.Context) {
		k.certificate.Run(ctx, func(next *tls.Certificate) {
			k.control.SetDefaultCertificate(next)
			_ = k.control.Wait(ctx) // an error means that the router ends
		})
	})
}

// Apply has the router go by next. What of it cannot be used stays as it was, costs nothing else, and is among the errors.
func (k *Keeper) Apply(next Plan) (failed []error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.plan
	fail := func(what string, err error) bool {
		if err != nil {
			failed = append(failed, fmt.Errorf("%s stays as it was: %w", what, err))
		}
		return err != nil
	}
	fail("the unique id", k.sameFields(&before, &next))
	if fail("what client certificates are judged by", k.replaceTrust(&before, &next)) {
		next.Server.TLS.Trust, next.Server.TLS.ClientAuth, next.Trust = k.server.Policy().Trust(), before.Server.TLS.ClientAuth, before.Trust
	}
	log, closeLog := k.requests, k.closeLog
	replaced := !next.Logs.Same(&before.Logs) || next.Server.Proxy.Captures != before.Server.Proxy.Captures
	if replaced {
		var err error
		if log, closeLog, err = k.openLog(&next); fail("the access log", err) {
			log, closeLog, replaced = k.requests, k.closeLog, false
			next.Logs, next.Server.Proxy.Captures = before.Logs, before.Server.Proxy.Captures
		}
	}
	old, closeOld := k.requests, k.closeLog
	k.requests, k.closeLog = log, closeLog
	k.attachLog(&next)
	if err := k.server.Apply(next.Server); err != nil {
		failed = append(failed, err)
	}
	if replaced { // no event loop has the old one any more
		closeOld()
		if old != nil {
			k.past = sum(k.past, old.Stats())
		}
	}
	fail("the default certificate", k.replaceCertificate(&before, &next))
	fail("how routes are treated", k.control.Configure(next.Control))
	k.plan = next
	return failed
}

// sameFields has next go on with what was made of the same texts: an id that counts, captures that the log knows.
func (k *Keeper) sameFields(before, next *Plan) error {
	if c := next.Server.Proxy.Captures; c != nil && before.Server.Proxy.Captures.Same(c) {
		next.Server.Proxy.Captures = before.Server.Proxy.Captures
	}
	next.Pages.Load(&next.Server.Proxy, logging.Server(k.cfg.Log), k.cfg.Problems)
	next.Server.Proxy.UniqueID = before.Server.Proxy.UniqueID
	if next.UniqueFormat == before.UniqueFormat && next.UniqueHeader == before.UniqueHeader {
		return nil
	}
	id, err := server.UniqueID(next.UniqueFormat, next.UniqueHeader, logging.Server(k.cfg.Log))
	if err != nil {
		next.UniqueFormat, next.UniqueHeader = before.UniqueFormat, before.UniqueHeader
		return err
	}
	next.Server.Proxy.UniqueID = id
	return nil
}

// replaceTrust has the handshakes of next judge clients by what it says.
func (k *Keeper) replaceTrust(before, next *Plan) error {
	same := next.Server.TLS.ClientAuth == before.Server.TLS.ClientAuth && next.Trust.Same(&before.Trust)
	if same || next.Server.TLS.ClientAuth == clientcert.None && k.trust == nil {
		next.Server.TLS.Trust = k.server.Policy().Trust()
		return nil
	}
	trust, err := k.newTrust(next)
	if err != nil {
		return err
	}
	k.end(ofTrust) // it sets nothing any more
	k.trust = trust
	if trust != nil {
		next.Server.TLS.Trust = trust.First()
		trust.Use(k.server.Policy().SetTrust)
		k.followTrust()
	}
	return nil
}

func (k *Keeper) newTrust(plan *Plan) (*follow.Trust, error) {
	if plan.Server.TLS.ClientAuth == clientcert.None {
		return nil, nil
	}
	cfg := plan.Trust
	cfg.Log, cfg.Problems, cfg.Targets = k.cfg.Log, k.cfg.Problems, k.cfg.Targets
	return follow.NewTrust(cfg)
}

// replaceCertificate has next's default certificate served.
func (k *Keeper) replaceCertificate(before, next *Plan) error {
	if next.Certificate == before.Certificate {
		return nil
	}
	certificate, err := follow.NewCertificate(next.Certificate, k.cfg.Log, k.cfg.Problems)
	if err != nil {
		next.Certificate = before.Certificate
		return err
	}
	k.end(ofCertificate)
	k.certificate = certificate
	k.control.SetDefaultCertificate(certificate.Current())
	k.followCertificate()
	return nil
}

// openLog opens the access log of a plan, nil when lines go nowhere.
func (k *Keeper) openLog(plan *Plan) (*accesslog.Log, func(), error) {
	lines := plan.Logs
	lines.Stdout, lines.Log, lines.Captures, lines.Connected = k.cfg.Stdout, k.cfg.Log, plan.Server.Proxy.Captures, k.cfg.Connected
	return logging.OpenRequests(lines)
}

// attachLog has exchanges write to the log that there is.
func (k *Keeper) attachLog(plan *Plan) {
	plan.Server.Proxy.AccessLog = nil
	if k.requests != nil { // a nil *Log in the interface would not be nil
		plan.Server.Proxy.AccessLog = k.requests
	}
}

// LogStats are the counters of the access log, of those that were replaced too.
func (k *Keeper) LogStats() accesslog.Stats {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.requests == nil {
		return k.past
	}
	return sum(k.past, k.requests.Stats())
}

func sum(a, b accesslog.Stats) accesslog.Stats {
	return accesslog.Stats{Written: a.Written + b.Written, Dropped: a.Dropped + b.Dropped, Failed: a.Failed + b.Failed, Skipped: a.Skipped + b.Skipped}
}

// Close ends the access log.
func (k *Keeper) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closeLog()
}
