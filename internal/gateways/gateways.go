package gateways

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"

	"turnout/controller"
	"turnout/controller/expose"
	"turnout/controller/gateway"
	"turnout/controller/lease"
	"turnout/controller/owned"
	"turnout/controller/source"
	"turnout/controller/source/cluster"
	status "turnout/controller/status/gateways"
	"turnout/internal/crew"
	"turnout/internal/server"
)

// leaseName is the Lease by which one of several processes writes.
const leaseName = "turnout-gateways"

// Gateways is what serves the Gateway API besides the controller. It is made by New.
type Gateways struct {
	options  *Options
	sockets  sockets
	election *lease.Election // nil = nothing is written
	writers  writers
	referred *cluster.Referred // nil = ConfigMaps come unasked
	sink     source.Sink       // of referred
	refused  func(map[source.Key]string)
}

// New returns what serves the Gateway API by o, and has cfg use it; nil if it is not served.
func New(o *Options, cfg *controller.Config) *Gateways {
	if !o.on {
		return nil
	}
	g := &Gateways{options: o}
	cfg.Sockets = &g.sockets
	return g
}

// Cluster has g read ConfigMaps of a cluster and, if write is true, write to it: by the clients of f, in the place of other processes that have the Lease. cfg is given
// what it is to use.
func (g *Gateways) Cluster(from cluster.Config, f *cluster.Feeder, write bool, cfg *controller.Config) error {
	if g == nil {
		return nil
	}
	var err error
	if g.referred, err = cluster.NewReferred(from); err != nil {
		return err
	}
	cfg.ConfigMaps = g.referred
	if !write {
		return nil
	}
	gateways, core := f.Gateways()
	reach, err := from.API()
	if err != nil {
		return err
	}
	leases, err := lease.NewClient(reach)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	g.election, err = lease.New(lease.Config{
		Client: leases, Namespace: cmp.Or(g.options.pods.Namespace, "turnout"), Name: leaseName, Identity: fmt.Sprintf("%s_%d", host, os.Getpid()), Log: from.Log,
	})
	if err != nil {
		return err
	}
	g.writers = writers{
		Writer: status.New(status.Config{Client: gateways, Controller: cfg.Options.Gateways.Controller, Log: from.Log, Bounds: from.Bounds}),
		expose: expose.NewWriter(expose.WriterConfig{
			API: owned.Client{API: core}, Controller: cfg.Options.Gateways.Controller, Type: g.options.service, Deployments: g.options.deployments, Image: g.options.image,
			Pod: source.Key{Namespace: g.options.pods.Namespace, Name: host}, Refused: g.refuse, Log: from.Log, Bounds: from.Bounds,
		}),
	}
	cfg.Gateways = &g.writers
	return nil
}

// Deliver has what g reads come to sink, and what keeps Gateways from getting what they need to control. Both are before Start.
func (g *Gateways) Deliver(sink source.Sink, control *controller.Controller) {
	if g != nil {
		g.sink, g.refused = sink, control.SetGatewayRefusals
	}
}

// refuse passes on why Gateways do not get what they need.
func (g *Gateways) refuse(why map[source.Key]string) { g.refused(why) }

// Start starts what g does until it is stopped; the ports of Gateways are ports of s.
func (g *Gateways) Start(c *crew.Crew, s *server.Server) {
	if g == nil {
		return
	}
	g.sockets.server = s
	if g.referred != nil {
		c.Start("ConfigMaps of the Gateway API", func(ctx context.Context) error { return g.referred.Run(ctx, g.sink) })
	}
	if g.election != nil {
		c.Start("status of the Gateway API", func(ctx context.Context) error { return g.election.Run(ctx, g.writers.run) })
	}
}

// writers are what writes to the API server. It implements controller.GatewayReporter.
type writers struct {
	*status.Writer
	expose *expose.Writer
}

// Expose implements controller.GatewayReporter.
func (w *writers) Expose(now expose.Now) { w.expose.Set(now) }

// run writes while this process leads.
func (w *writers) run(ctx context.Context) error {
	var exposing sync.WaitGroup
	exposing.Go(func() { w.expose.Run(ctx) })
	w.Writer.Run(ctx)
	exposing.Wait()
	return nil
}

// sockets implements controller.Sockets.
type sockets struct{ server *server.Server }

var kinds = map[gateway.PortKind]server.PortKind{gateway.PortHTTP: server.PortHTTP, gateway.PortTLS: server.PortTLS, gateway.PortTCP: server.PortTCP, gateway.PortUDP: server.PortUDP}

// Set implements controller.Sockets.
func (s *sockets) Set(list []expose.Socket) map[string]error {
	ports := make([]server.Port, len(list))
	for i, p := range list {
		ports[i] = server.Port{Name: p.Name, Addr: p.Addr, Kind: kinds[p.Kind]}
	}
	failed := make(map[string]error)
	for i, err := range s.server.SetPorts(ports) {
		if err != nil {
			failed[list[i].Name] = err
		}
	}
	return failed
}
