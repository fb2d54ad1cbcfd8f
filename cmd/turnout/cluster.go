package main

import (
	"context"
	"strings"

	"go.uber.org/zap"

	"turnout/controller"
	"turnout/controller/shard/member"
	"turnout/controller/source"
	"turnout/controller/source/cluster"
	"turnout/controller/status"
	"turnout/internal/bound"
	"turnout/internal/problem"
)

// makeCluster makes the controller, what feeds it from a cluster, and what brings
// status back.
func (r *router) makeCluster(cfg controller.Config) error {
	o := r.o
	f, err := cluster.New(o.clusterConfig(r.log, &r.bounds, r.problems))
	if err != nil {
		return err
	}
	cfg.Secrets = f.Secrets()
	r.review = f.Visitors(o.control.RouterName).Review
	if o.updateStatus && o.gateways.Routes() {
		writer := status.WriterConfig{
			API: status.NewClient(f.Routes(), o.namespace), RouterName: o.control.RouterName, Log: r.log, Bounds: &r.bounds, Resync: o.resync,
			KeepStale: !o.clearStale, KeepUnservable: o.control.SkipUpgradeValidation,
		}
		if o.routeLabels != "" || o.routeFields != "" || o.namespaces() != "" || o.replica.Router != "" {
			writer.Sweep = r.complete // else no route is left out
		}
		if r.status, err = status.NewWriter(writer); err != nil {
			return err
		}
		cfg.Status = r.status
		if o.control.Ingress {
			writer := status.IngressWriterConfig{
				API: status.NewIngressClient(f.Ingresses()), Addresses: o.ingresses.Addresses(o.control.CanonicalHostname), RouterName: o.control.RouterName, Log: r.log, Bounds: &r.bounds,
			}
			if service := o.ingresses.Service; service != (source.Key{}) {
				_, core := f.Ingresses()
				writer.Read = status.ServiceAddresses(core, service)
			}
			if r.ingress, err = status.NewIngressWriter(writer); err != nil {
				return err
			}
			cfg.Ingresses = r.ingress
		}
	}
	if err = r.gateways.Cluster(o.clusterConfig(r.log, &r.bounds, nil), f, o.updateStatus && o.gateways.Routes(), &cfg); err != nil {
		return err
	}
	if r.control, err = controller.New(cfg); err != nil {
		return err
	}
	if o.selects() {
		r.ofHost = f.OfHost
	}
	sink, err := r.makeMember()
	if err != nil {
		return err
	}
	r.gateways.Deliver(sink, r.control)
	r.feeder = feeder{
		run:    func(ctx context.Context) error { return f.Run(ctx, sink) },
		counts: func() (int, int) { return f.Objects(), f.Problems() },
	}
	return nil
}

// makeMember returns where objects of the cluster go: with --router, through what reports to the Router.
func (r *router) makeMember() (source.Sink, error) {
	cfg := r.o.replica
	if cfg.Router == "" {
		return r.control.Sink("cluster"), nil
	}
	cfg.Cluster, cfg.Controller, cfg.Problems = r.o.clusterConfig(r.log, nil, nil), r.control, r.problems
	cfg.Idle = r.o.server.Proxy.Timeouts.KeepAlive
	cfg.Complete, cfg.Serving, cfg.Requests = r.complete, func() error { return r.data.Serving() }, func() uint64 { return r.data.Stats().Requests }
	m, err := member.New(cfg)
	r.member = m
	return m.Sink(), err
}

// clusterConfig is how a cluster is read.
func (o *options) clusterConfig(log *zap.Logger, bounds *bound.Counts, problems *problem.List) cluster.Config {
	return cluster.Config{
		Reach: o.reach, UserAgent: userAgent(), Labels: o.ingressController != source.Key{}, Ingresses: o.control.Ingress, GatewayAPI: o.gateways.On(), Gateway: o.gateways.Only(), Router: o.replica.Router,
		Namespace: o.namespace, RouteLabels: member.Labels(o.routeLabels, o.replica.Router), RouteFields: o.routeFields, NamespaceLabels: o.namespaces(),
		ServiceAccount: o.serviceAccount, Resync: o.resync, Log: log, Bounds: bounds, Problems: problems,
	}
}

// selects reports whether routes of the cluster are left out.
func (o *options) selects() bool {
	return o.namespace != "" || o.routeLabels != "" || o.replica.Router != "" || o.routeFields != "" || o.namespaces() != ""
}

// userAgent is how the router calls itself when it asks an API server.
func userAgent() string {
	number, _, _ := strings.Cut(version(), " ")
	return "turnout/" + number
}
