package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"turnout/balancer"
	"turnout/controller"
	"turnout/controller/status"
	"turnout/internal/accesslog"
	"turnout/internal/admin"
	"turnout/internal/metrics"
	"turnout/proxy"
	"turnout/routing"
)

// router is all rooms of one process, wired.
type router struct {
	o        *options
	log      *zap.Logger
	store    *routing.Store
	control  *controller.Controller
	feeder   feeder
	status   *status.Writer // nil = status is only shown
	complete chan struct{}  // closed when the first complete table is served
	data     *dataplane
	admin    *admin.Server
	access   *accesslog.Log // nil when off
	closeLog func()
	rotation *rotation // of the default certificate
}

// newRouter makes the rooms from o and listens on all ports.
func newRouter(o *options, log *zap.Logger, stdout io.Writer) (*router, error) {
	r := &router{o: o, log: log, store: routing.NewStore(), complete: make(chan struct{})}
	source := o.certificate
	source.Domain = o.domain
	var err error
	if r.rotation, err = newRotation(source, log); err != nil {
		return nil, err
	}
	config, err := o.controllerOptions()
	if err != nil {
		return nil, err
	}
	control := controller.Config{
		Store:   r.store,
		Routing: routing.Options{Registry: balancer.NewRegistry(), DefaultCertificate: r.rotation.current},
		Options: config,
		Log:     log,
	}
	if err := r.makeControl(control); err != nil {
		return nil, err
	}
	if r.access, r.closeLog, err = openAccessLog(o.accessLog, stdout, log); err != nil {
		return nil, err
	}
	data := dataplaneConfig{
		HTTPAddr: o.httpAddr, HTTPSAddr: o.httpsAddr, Loops: o.threads, Store: r.store,
		Limits: o.limits, StrictSNI: o.strictSNI, ProxyProtocol: o.proxyProtocol, TLS: o.tls, Log: log, Timeouts: o.timeouts(), Headers: o.headers, Answers: o.answers.load(log),
	}
	if data.UniqueID, err = o.headers.uniqueID(log); err != nil {
		r.closeLog()
		return nil, err
	}
	if r.access != nil { // a nil *Log in the interface would not be nil
		data.AccessLog = r.access
	}
	if r.data, err = newDataplane(data); err != nil {
		r.closeLog()
		return nil, err
	}
	if err := r.startAdmin(); err != nil {
		r.closeLog()
		return nil, err
	}
	log.Info("listening", zap.Stringer("http", r.data.HTTP()), zap.Stringer("https", r.data.HTTPS()), zap.Stringer("admin", r.admin.Addr()))
	return r, nil
}

func (r *router) startAdmin() error {
	cfg := metrics.Config{Version: version(), Table: r.store.Load, Totals: r.data.Stats, Source: r.sourceCounts}
	if r.access != nil {
		cfg.Log = r.access.Stats
	}
	if r.status != nil {
		cfg.Status = func() metrics.Status { return metrics.Status(r.status.Stats()) }
	}
	handler, err := metrics.Handler(cfg)
	if err != nil {
		return err
	}
	r.admin, err = admin.New(admin.Config{
		Addr:    r.o.adminAddr,
		Ready:   r.control.Ready(),
		Routes:  func() any { return r.control.Routes() },
		Metrics: handler,
		Log:     func(err error) { r.log.Error(err.Error()) },
	})
	return err
}

func (r *router) sourceCounts() metrics.Source {
	_, rejected := r.control.Counts()
	objects, problems := r.feeder.counts()
	return metrics.Source{Objects: objects, Problems: problems, Rejected: rejected}
}

// run serves until ctx is done or a room fails, then stops in order: not ready,
// serving on for the shutdown delay, running requests to their end, the rest.
// started, unless nil, is called once the first complete table is served.
func (r *router) run(ctx context.Context, started func() error) error {
	inner, stopAll := context.WithCancel(context.Background())
	defer stopAll()
	serving, stopServing := context.WithCancel(context.Background())
	defer stopServing()

	rooms := 4
	failed := make(chan error, rooms+1)
	go func() {
		r.rotation.run(inner, func(next *tls.Certificate) {
			r.control.SetDefaultCertificate(next)
			_ = r.control.Wait(inner) // an error means that the router ends
		})
		<-inner.Done()
		failed <- nil
	}()
	go func() { failed <- r.control.Run(inner) }()
	go func() { failed <- r.feeder.run(inner) }()
	go func() { failed <- r.data.Run(serving) }()
	go returnMemory(inner)
	if r.status != nil {
		rooms++
		go func() { failed <- r.status.Run(inner) }()
	}

	var err error
	ready := r.control.Ready()
	for serve := true; serve; {
		select {
		case <-ready:
			ready = nil
			close(r.complete)
			go debug.FreeOSMemory() // the first reading needs about twice what stays
			r.log.Info("ready", zap.Int("routes", r.store.Load().Len()), zap.Uint64("generation", r.store.Load().Generation()))
			if started != nil {
				err = started()
				serve = err == nil
			}
		case err = <-failed:
			rooms--
			err, serve = unexpected(err), false
		case <-ctx.Done():
			r.admin.Stopping()
			r.log.Info("stopping")
			rooms, err = r.linger(failed, rooms)
			serve = false
		}
	}
	stopServing()
	stopAll()
	for ; rooms > 0; rooms-- {
		err = errors.Join(err, <-failed)
	}
	r.closeLog()
	return errors.Join(err, r.admin.Close())
}

// linger serves on for the shutdown delay.
func (r *router) linger(failed <-chan error, rooms int) (int, error) {
	if r.o.shutdownDelay <= 0 {
		return rooms, nil
	}
	delay := time.NewTimer(r.o.shutdownDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
		return rooms, nil
	case err := <-failed:
		return rooms - 1, unexpected(err)
	}
}

// unexpected is the error of a room that ended although nobody asked it to.
func unexpected(err error) error {
	if err == nil {
		return errors.New("BUG: a room ended by itself")
	}
	return err
}

// timeouts are those of the request path.
func (o *options) timeouts() proxy.Timeouts {
	return proxy.Timeouts{
		RequestHead: o.headTimeout, KeepAlive: o.keepAlive, Client: o.clientTimeout, Connect: o.connectTimeout,
		ClientHello: o.inspectDelay, ClientFin: o.clientFin, ServerFin: o.limits.serverFin, Drain: o.drainTime(),
	}
}

// controllerOptions are those of admission and translation.
func (o *options) controllerOptions() (controller.Options, error) {
	c := controller.Options{
		RouterName: o.name, CanonicalHostname: o.canonicalHostname, Domain: o.domain,
		HostTemplate: o.hostnameTemplate, OverrideHostname: o.overrideHostname, OverrideDomains: o.overrideDomains,
		AllowedDomains: o.allowedDomains, DeniedDomains: o.deniedDomains, AllowWildcard: o.allowWildcardRoutes,
		DisableNamespaceOwnership: o.disableOwnership, SkipExtendedValidation: !o.extendedValidation, SkipExternalCertificate: !o.externalCertificates,
		ServerTimeout: o.serverTimeout, TunnelTimeout: o.tunnelTimeout, ConnectTimeout: o.connectTimeout,
		SetForwardedHeaders: o.forward, LoadBalance: o.balance, TCPBalance: o.tcpBalance, CookieName: o.cookieName,
		SkipUpgradeValidation: !o.upgradeValidation, ForceUnservable: o.forceUnservable,
		AllowLoopback:    !o.cluster, // a laptop has no pods
		SelectNamespaces: o.cluster && o.namespaces() != "",
	}
	if o.destinationCAPath == "" {
		return c, nil
	}
	var err error
	if c.DefaultDestinationCA, err = os.ReadFile(o.destinationCAPath); err != nil {
		return c, fmt.Errorf("cannot load default destination CA: %w", err)
	}
	return c, nil
}
