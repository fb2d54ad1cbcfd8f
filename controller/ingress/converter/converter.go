package converter

import (
	"context"
	"errors"
	"sync/atomic"

	"go.uber.org/zap"

	"turnout/controller/ingress/convert"
	"turnout/controller/lease"
	"turnout/controller/source/cluster"
	"turnout/controller/status"
)

// Config is what a Converter needs.
type Config struct {
	Cluster   cluster.Config // Conversion is set by New; the log is that of the Converter, too
	Identity  string         // of this process among several, such as the name of its pod; required
	Namespace string         // of the Lease; required
	// ClassController is what classes of the Ingresses say in spec.controller; "" = convert.Controller.
	ClassController string
}

// LeaseName is the name of the Lease whose holder writes.
const LeaseName = "turnout-ingress-to-route"

// Converter makes Routes of Ingresses. It is made by New.
type Converter struct {
	cfg      Config
	election *lease.Election
	shown    atomic.Pointer[Stats]
}

// Stats is what a Converter does, for metrics. The zero value is a process that does not lead.
type Stats struct {
	Leading   bool
	Ingresses int // that are converted
	Routes    int // of these
	Failing   int // Ingresses whose last conversion failed
	// Classless are Ingresses without a class, and Unmanaged Routes of Ingresses that are not there or not converted; neither is complete before all objects have
	// been read.
	Classless []Object
	Unmanaged []Object

	Created, Updated, Deleted, Failed uint64 // writes of Routes since this process leads, and conversions that failed
}

// Object is one of the objects of Stats. Host is that of a Route.
type Object struct{ Namespace, Name, Host string }

// New returns a Converter. The API server is not asked yet.
func New(cfg Config) (*Converter, error) {
	cfg.Cluster.Conversion = true
	if cfg.Cluster.Log == nil {
		cfg.Cluster.Log = zap.NewNop()
	}
	if cfg.ClassController == "" {
		cfg.ClassController = convert.Controller
	}
	if cfg.Identity == "" || cfg.Namespace == "" {
		return nil, errors.New("cannot make converter: neither its identity nor the namespace of its lease may be empty")
	}
	reach, err := cfg.Cluster.API()
	if err != nil {
		return nil, err
	}
	client, err := lease.NewClient(reach)
	if err != nil {
		return nil, err
	}
	c := &Converter{cfg: cfg}
	c.election, err = lease.New(lease.Config{Client: client, Namespace: cfg.Namespace, Name: LeaseName, Identity: cfg.Identity, Log: cfg.Cluster.Log})
	if err != nil {
		return nil, err
	}
	c.shown.Store(new(Stats))
	return c, nil
}

// Run converts, whenever this process leads, until ctx is done. It returns nil then. It must be called once.
func (c *Converter) Run(ctx context.Context) error {
	return c.election.Run(ctx, func(ctx context.Context) error {
		defer c.shown.Store(new(Stats))
		return c.lead(ctx)
	})
}

// Stats returns what the Converter does. Any goroutine may call it. The caller must not change it.
func (c *Converter) Stats() *Stats { return c.shown.Load() }

// lead converts until ctx is done.
func (c *Converter) lead(ctx context.Context) error {
	feeder, err := cluster.New(c.cfg.Cluster)
	if err != nil {
		return err
	}
	networking, core := feeder.Ingresses()
	w := newConverting(work{
		api: &client{IngressAPI: status.NewIngressClient(networking, core), routes: feeder.Routes()}, secrets: feeder.Secrets(),
		controller: c.cfg.ClassController, identity: c.cfg.Identity, log: c.cfg.Cluster.Log, show: c.shown.Store,
	})
	reading, stop := context.WithCancel(ctx)
	fed := make(chan error, 1)
	go func() { fed <- feeder.Run(reading, w.inbox) }()
	w.run(ctx)
	stop()
	return <-fed
}
