package main

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"turnout/balancer"
	"turnout/controller"
	"turnout/controller/endpoints"
	"turnout/controller/shard/member"
	"turnout/controller/status"
	"turnout/internal/access"
	"turnout/internal/admin"
	"turnout/internal/bound"
	"turnout/internal/crew"
	"turnout/internal/explain"
	"turnout/internal/follow"
	"turnout/internal/gateways"
	"turnout/internal/handover"
	"turnout/internal/live"
	"turnout/internal/logging"
	"turnout/internal/memory"
	"turnout/internal/metrics"
	"turnout/internal/offline"
	"turnout/internal/problem"
	"turnout/internal/ratelimit"
	"turnout/internal/server"
	"turnout/internal/signals"
	"turnout/internal/target"
	"turnout/internal/tracing"
	"turnout/internal/wire/protocol"
	"turnout/routing"
	"turnout/tlsmux/clientcert"
)

// router is all packages of one process, wired.
type router struct {
	o        *options
	log      *zap.Logger
	level    *logging.Level // of log
	store    *routing.Store
	control  *controller.Controller
	feeder   feeder
	status   *status.Writer        // nil = status is only shown
	ingress  *status.IngressWriter // nil = that of Ingresses is
	gateways *gateways.Gateways    // nil: no --gateway-api
	complete chan struct{}         // closed when the first complete table is served
	member   *member.Member        // nil: no --router
	data     *server.Server
	admin    *admin.Server
	live     *live.Keeper
	settings *live.Settings    // nil = there is no --ingress-controller
	traces   *tracing.Exporter // nil when off
	bounds   bound.Counts
	problems *problem.List
	podCA    *follow.File // the default authorities of pods; nil = there are none
	clients  *follow.Clients
	access   access.Access // to the admin port
	// review judges visitors of the admin port; nil = nobody does.
	review  func(ctx context.Context, source, token, method, path string) (status int, text string)
	ofHost  offline.OfHost // routes of a host that are not served here; nil = none
	recent  *explain.Ring  // of past requests
	targets target.Guard   // admits addresses that tenants name; the controller sets its policy

	enter       func(signals.Stage)   // says what the router does from now on
	late        bool                  // ports are opened when the first complete table is there
	predecessor *handover.Predecessor // nil = none, or it has let go
	handover    *handover.Server      // nil = nobody can take over
}

// newRouter makes the packages from o and listens on the ports that are not opened late. enter is called with what is done now.
func newRouter(o *options, s *live.Settings, log *zap.Logger, level *logging.Level, stdout io.Writer, enter func(signals.Stage)) (*router, error) {
	r := &router{o: o, settings: s, log: log, level: level, store: routing.NewStore(), complete: make(chan struct{}), enter: enter, problems: problem.NewList()}
	r.recent = explain.NewRing(func() uint64 { return r.store.Load().Generation() }, &r.bounds)
	level.Report(r.problems)
	enter(meetingOther)
	if err := r.meetPredecessor(); err != nil {
		return nil, err
	}
	if err := r.assemble(stdout); err != nil {
		if r.predecessor != nil {
			r.predecessor.Close()
		}
		return nil, err
	}
	return r, nil
}

// assemble makes the packages.
func (r *router) assemble(stdout io.Writer) error {
	o, log := r.o, r.log
	r.late = o.bindAfterSync || r.predecessor != nil
	r.enter(readingFiles)
	r.live = live.New(live.Config{Log: log, Problems: r.problems, Stdout: stdout, Connected: r.connections, Targets: &r.targets})
	if r.settings != nil {
		r.settings.Use(r.live, o.parsed(nil), r.problems)
	}
	data, err := r.live.First(o.plan())
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			stopTracing(r.traces, log)
			r.live.Close()
		}
	}()
	if r.clients, err = o.mutual.tickets.Follow(o.cluster, o.clusterConfig(log, nil, r.problems)); err != nil {
		return err
	}
	if o.destinationCAPath != "" {
		if r.podCA, err = follow.NewFile(o.destinationCAPath, "default destination CA", log, r.problems); err != nil {
			return err
		}
	}
	registry := balancer.NewRegistry()
	registry.SetClock(server.SystemClock{})
	registry.SetBounds(&r.bounds)
	rates := ratelimit.NewMemory(0)
	if err = r.makeControl(r.controlConfig(registry, rates)); err != nil {
		return err
	}
	data.Store, data.Registry, data.Rates, data.Log, data.Bounds = r.store, registry, rates, logging.Server(log), &r.bounds
	data.Problems, data.OwnsProcess, data.MemoryLimit, data.Inherit, data.Proxy.Recent = r.problems, true, memory.SetLimit(), r.inherit(), r.recent.Recent()
	if r.access, err = o.adminPort.Read(r.review, r.failed, r.problems); err != nil {
		return err
	}
	if r.traces, data.Proxy.Tracing, err = startTracing(&o.tracing, log); err != nil {
		return err
	}
	r.enter(openingPorts)
	if r.data, err = server.New(data); err == nil {
		r.live.Attach(r.data, r.control)
		err = r.clients.Attach(r.data.Policy())
	}
	if err == nil && !r.late {
		err = r.data.Listen()
	}
	if err == nil && r.predecessor == nil {
		err = r.startAdmin()
	}
	if err == nil && !r.late {
		r.logListening()
	}
	return err
}

// plan is what of the options may change while the router runs.
func (o *options) plan() live.Plan {
	p := live.Plan{
		Server: o.server, Control: o.controllerOptions(), Logs: o.logs, Pages: o.answers.pages, UniqueFormat: o.headers.uniqueFormat, UniqueHeader: o.headers.uniqueHeader,
		Trust: o.mutual.trust, Certificate: o.certificate,
	}
	p.Certificate.Domain, p.Pages.OwnNotFound = o.control.Domain, o.control.Ingress
	return p
}

// controlConfig is that of the controller, but for what feeds it.
func (r *router) controlConfig(registry *balancer.Registry, rates *ratelimit.Memory) controller.Config {
	config := r.o.controllerOptions()
	if r.podCA != nil {
		config.DefaultDestinationCA = r.podCA.Current()
	}
	return controller.Config{
		Store:    r.store,
		Routing:  routing.Options{Registry: registry, DefaultCertificate: r.live.Certificate(), Rates: rates},
		Options:  config,
		Log:      r.log,
		Bounds:   &r.bounds,
		Problems: r.problems,
		Targets:  &r.targets,
	}
}

// connections tells how many clients are connected to each port. Nobody asks before the request path runs.
func (r *router) connections() (plain, secure int64) { return r.data.Connected() }

// failed logs what goes wrong with the admin port.
func (r *router) failed(err error) { r.log.Error(err.Error()) }

func (r *router) logListening() { logging.Listening(r.log, r.data, r.admin.Addr()) }

func (r *router) startAdmin() error {
	cfg := metrics.Config{
		Version: version(), Table: r.store.Load, Totals: r.data.Stats, TLS: r.data.Handshakes, Source: r.sourceCounts, Health: r.data.Health, Load: r.data.Load,
		Bounds: &r.bounds, Problems: r.problems, Tunnels: r.data.Tunnels, Datagrams: r.data.Datagrams, Ports: r.data.Sessions(), MaxConnections: r.data.MaxConnections, Now: r.data.Now,
		Latencies: r.data.Latencies, Options: r.o.metrics,
	}
	if r.data.Applied().Proxy.AccessLog != nil || r.settings != nil {
		cfg.Log = r.live.LogStats
	}
	if r.traces != nil {
		cfg.Traces = r.traces.Stats
	}
	if r.status != nil {
		cfg.Status = func() metrics.Status { return metrics.Status(r.status.Stats().And(r.ingress)) }
	}
	handler, err := metrics.New(cfg)
	if err != nil {
		return err
	}
	explanations, err := r.explanations()
	if err != nil {
		return err
	}
	people, err := r.page(handler)
	if err != nil {
		return err
	}
	listener, err := r.adminListener()
	if err != nil {
		return err
	}
	r.admin, err = admin.New(admin.Config{
		Login:        r.access.Login,
		Problems:     admin.ListingOf(r.problems.All),
		Hosts:        r.o.adminPort.Hosts,
		Namespace:    access.Namespace(),
		LogLevel:     r.level,
		TLS:          r.access.TLS,
		Addr:         r.o.adminAddr,
		Listener:     listener,
		Ready:        r.control.Ready(),
		Serving:      r.data.Serving,
		Alive:        r.data.Alive,
		ReadyURL:     r.o.adminPort.ReadyURL,
		Proxied:      r.o.server.ProxyProtocol,
		Routes:       r.control.ListObjects,
		Notes:        admin.ListingOf(r.control.Explanations),
		Explain:      r.control.ExplainObject,
		Explanations: explanations,
		Page:         people,
		Metrics:      handler,
		Bounds:       &r.bounds,
		Log:          r.failed,
	})
	return err
}

func (r *router) sourceCounts() metrics.Source {
	_, rejected := r.control.Counts()
	objects, problems := r.feeder.counts()
	timing := r.control.Timing()
	return metrics.Source{
		Objects: objects, Problems: problems, Rejected: rejected, Changed: r.control.Changed(),
		Waiting: r.control.Waiting(), Tables: timing.Tables, Compile: timing.Compile, Publish: timing.Publish, Propagation: &timing.Propagation,
	}
}

// run serves until ctx is done, a successor has taken over or a package fails, then stops
// in order: not ready, serving on for the shutdown delay, running requests to their end,
// the rest. started, unless nil, is called once the first complete table is served.
func (r *router) run(ctx context.Context, started func() error) error {
	failed := make(chan error, 1)
	control, data, writer := crew.New(failed), crew.New(failed), crew.New(failed)
	r.enter(readingObjects)
	r.startControl(control)
	data.Start("event loops", r.data.Run)
	if r.status != nil {
		writer.Start("status", r.status.Run)
	}
	if r.ingress != nil {
		writer.Start("status of Ingresses", r.ingress.Run)
	}

	var err error
	ready := r.control.Ready()
	for serve := true; serve; {
		select {
		case <-ready:
			ready = nil
			<-r.data.Started() // they are being started; a client that reads "ready" is not to wait for them
			close(r.complete)
			go debug.FreeOSMemory() // the first reading needs about twice what stays
			r.enter(takingOver)
			if err = r.succeed(ctx); err != nil {
				serve = false
				continue
			}
			r.enter(serving)
			r.log.Info("ready", zap.Int("routes", r.store.Load().Len()), zap.Uint64("generation", r.store.Load().Generation()))
			if started != nil {
				err = started()
				serve = err == nil
			}
		case err = <-failed:
			serve = false
		case <-r.released():
			r.log.Info("another process serves; finishing what is running")
			serve = false
		case <-ctx.Done():
			if r.admin != nil {
				r.admin.Stopping()
			}
			r.enter(stopping)
			r.member.Leave()
			r.log.Info("stopping")
			if ready == nil { // else no client was ever sent here
				err = crew.Linger(r.o.shutdownDelay, r.released(), failed) // serves on, or until a successor does
			}
			serve = false
		}
	}
	r.enter(stopping)
	// Running requests see changes of endpoints to their end; status is the business of those that serve on.
	err = errors.Join(err, r.stop(writer, stopPatience), r.stop(data, r.data.Applied().Proxy.Timeouts.Drain+stopPatience), r.stop(control, stopPatience))
	r.closeHandover()
	stopTracing(r.traces, r.log)
	r.live.Close()
	if r.admin != nil {
		err = errors.Join(err, r.admin.Close())
	}
	r.log.Info("stopped")
	return err
}

// stopPatience is how long the router waits for a package that has nothing to finish any more.
const stopPatience = 3 * time.Second

// stop ends a crew.
func (r *router) stop(c *crew.Crew, patience time.Duration) error {
	left, err := c.Stop(patience)
	if len(left) > 0 {
		r.log.Warn("the process ends without waiting any longer", zap.Strings("for", left))
	}
	return err
}

// startControl starts what follows objects and files.
func (r *router) startControl(control *crew.Crew) {
	control.Start("files of options", r.live.Run)
	if r.settings != nil {
		control.Start("IngressController", r.settings.Run)
	}
	if r.podCA != nil {
		control.Start("default destination CA", func(ctx context.Context) error {
			r.podCA.Run(ctx, r.control.SetDefaultDestinationCA, r.control.Wait)
			return nil
		})
	}
	here := &endpoints.OwnWatch{Listening: r.listening, Log: r.log}
	here.Look(r.control.SetOwn) // before the first table
	control.Start("addresses of this machine", func(ctx context.Context) error {
		here.Run(ctx, r.control.SetOwn)
		return nil
	})
	r.gateways.Start(control, r.data)
	control.Start("controller", r.control.Run)
	control.Start("source of objects", r.feeder.run)
	if r.member != nil {
		control.Start("replica of a Router", r.member.Run)
	}
	control.Start("secrets of session tickets", r.clients.Run)
}

// controllerOptions are those of admission and translation.
func (o *options) controllerOptions() controller.Options {
	c := o.control
	c.Namespace = access.Namespace()
	c.Router = o.replica.Router
	c.Gateways = o.gateways.Controller(o.server.HTTPAddr, o.server.HTTPSAddr, o.adminAddr)
	c.ConnectTimeout = o.server.Proxy.Timeouts.Connect
	c.AsksClients = o.server.TLS.ClientAuth != clientcert.None
	c.AllowLoopback = !o.cluster // a laptop has no pods
	c.SelectNamespaces = o.cluster && o.namespaces() != "" || o.control.NamespaceLabels != ""
	if !o.server.TLS.DisableHTTP2 {
		c.UpstreamALPN = []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}
	}
	return c
}
