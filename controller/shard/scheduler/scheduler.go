package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"turnout/controller/lease"
	"turnout/controller/shard"
	"turnout/controller/shard/api"
	"turnout/controller/shard/show"
	"turnout/controller/source/cluster"
)

// Config is what a Scheduler needs.
type Config struct {
	Cluster   cluster.Config // Scheduling is set by New; the log is that of the Scheduler, too
	Identity  string         // of this process among several, such as the name of its pod; required
	Namespace string         // of the Lease; required
	// Strategies are how each kind of strategy is made; nil: Strategies(). Who builds a scheduler adds strategies of its own here.
	Strategies map[api.StrategyKind]Make
	// KeepPods says that Routers that ask for pods get them; PodTemplate is for those that name none, nil: there is none.
	KeepPods    bool
	PodTemplate *api.PodTemplateReference
	// AllowWildcard is as for routers: wildcardPolicy Subdomain is admitted.
	AllowWildcard bool
}

// LeaseName is the name of the Lease whose holder writes.
const LeaseName = "turnout-scheduler"

// Scheduler binds Routes to Routers. It is made by New.
type Scheduler struct {
	cfg     Config
	clients *clients
	log     *zap.Logger
	shown   atomic.Pointer[Stats]
	asked   chan question                              // of people, to the leader
	others  func(context.Context) (*show.Board, error) // what the API server says, for one that does not lead
}

// Stats is what a Scheduler does, for metrics. The zero value is a process that does not lead.
type Stats struct {
	Leading  bool
	Synced   bool // the objects have been read
	Summary  shard.Summary
	Counts   shard.Stats // since this process leads
	Troubles map[shard.Reason]int
	Routers  map[shard.RouterPhase]int
}

// New returns a Scheduler. The API server is not asked yet.
func New(cfg Config) (*Scheduler, error) {
	cfg.Cluster.Scheduling = true
	if cfg.Cluster.Log == nil {
		cfg.Cluster.Log = zap.NewNop()
	}
	if cfg.Strategies == nil {
		cfg.Strategies = Strategies()
	}
	if cfg.Identity == "" || cfg.Namespace == "" {
		return nil, errors.New("cannot make scheduler: neither its identity nor the namespace of its lease may be empty")
	}
	reach, err := cfg.Cluster.API()
	if err != nil {
		return nil, err
	}
	c, err := newClients(reach)
	if err != nil {
		return nil, err
	}
	s := &Scheduler{cfg: cfg, clients: c, log: cfg.Cluster.Log, asked: make(chan question)}
	reader, err := show.New(&cfg.Cluster)
	if err != nil {
		return nil, err
	}
	s.others = reader.Lately(cfg.Identity, time.Now)
	s.shown.Store(new(Stats))
	return s, nil
}

// Run schedules, whenever this process leads, until ctx is done. It returns nil then.
func (s *Scheduler) Run(ctx context.Context) error {
	e, err := lease.New(lease.Config{Client: s.clients.leases, Namespace: s.cfg.Namespace, Name: LeaseName, Identity: s.cfg.Identity, Log: s.log})
	if err != nil {
		return err
	}
	return e.Run(ctx, func(ctx context.Context) error {
		defer s.shown.Store(new(Stats))
		return s.lead(ctx)
	})
}

// Stats returns what the Scheduler does. Any goroutine may call it. The caller must not change it.
func (s *Scheduler) Stats() *Stats { return s.shown.Load() }

// clients are what the API server is asked with.
type clients struct {
	shards               *api.Client
	core, leases, routes rest.Interface
}

func newClients(reach *rest.Config) (*clients, error) {
	c := new(clients)
	var err error
	if c.shards, err = api.NewClient(reach); err != nil {
		return nil, err
	}
	if c.leases, err = lease.NewClient(reach); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, routev1.Install} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("BUG: cannot register API types: %w", err)
		}
	}
	for _, group := range []struct {
		client  *rest.Interface
		version schema.GroupVersion
		path    string
	}{
		{&c.core, corev1.SchemeGroupVersion, "/api"}, {&c.routes, routev1.GroupVersion, "/apis"},
	} {
		own := rest.CopyConfig(reach)
		own.GroupVersion, own.APIPath = &group.version, group.path
		own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
		own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
		client, err := rest.RESTClientFor(own)
		if err != nil {
			return nil, fmt.Errorf("cannot make a client of %s: %w", group.version, err)
		}
		*group.client = client
	}
	return c, nil
}
