// Package cluster feeds the controller from a Kubernetes API: Routes, Services,
// EndpointSlices, the Namespaces that are selected, Ingresses and their classes if they
// are served, the RouteBindings of a Router, and single Secrets on demand. It feeds the
// scheduler, too.
//
//	list and watch ─► trim ─► store (which versions are known) ─► Sink
//
// Each kind has one reflector. What the router does not read is dropped as soon as an
// object is decoded, and what is left is the controller's; the store keeps no objects,
// only which versions it has passed on. An object that is read again unchanged is not delivered again.
//
// While the API server is away, what was delivered stays. Readers ask again with
// growing pauses; the log tells when an outage begins and when it is over.
package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"turnout/controller/source"
	"turnout/internal/bound"
	"turnout/internal/problem"
)

// Config is what a Feeder needs.
type Config struct {
	Reach     Reach
	UserAgent string // how the router calls itself; "" = "turnout"

	Namespace       string // only objects of this namespace; "" = all
	RouteLabels     string // label selector on Routes; "" = all
	RouteFields     string // field selector on Routes; "" = all
	NamespaceLabels string // label selector on Namespaces; "" = none are delivered
	// Labels says that Routes and Namespaces are selected by who gets them: they are delivered with their labels, and Namespaces in any case.
	Labels bool
	// Ingresses says that Ingresses and IngressClasses are delivered, and Services with their ports.
	Ingresses bool
	// GatewayAPI says that the kinds of the Gateway API are delivered, Namespaces with their labels, and Services with their ports.
	GatewayAPI bool
	// Gateway is the one Gateway that is delivered, with GatewayAPI, because this is one of its own pods: that needs no Routes, and no permission to read other
	// Gateways, or to ask who may read Secrets. The zero value is all of them.
	Gateway source.Key
	// Router is the Router whose RouteBindings are delivered; "" = none are.
	Router string
	// Scheduling says that what the scheduler reads is delivered instead, whole but for what it has no use for: Routes, Namespaces, RouteBindings,
	// Routers and RouteSchedulers.
	Scheduling bool
	// Naming says that what turnout dns reads is delivered instead: Routers, and of RouteBindings which names they serve and whether they do.
	Naming bool
	// Conversion says that what the conversion of Ingresses into Routes reads is delivered instead: both with their labels, annotations and owners, IngressClasses, and
	// Services with their ports. With Ingresses the cluster need not know Routes.
	Conversion bool

	// ServiceAccount is the account, NAMESPACE:NAME, that must be allowed to get, watch
	// and list the secrets of routes; "" = the one whose token reaches the cluster, or
	// openshift-ingress:router without such a token.
	ServiceAccount string
	// Resync is how long a permission to read a secret counts before it is asked for
	// again; 0 = 30 min. All else follows the cluster by itself.
	Resync time.Duration

	Log    *zap.Logger   // nil = no logs
	Bounds *bound.Counts // counts bounds that objects and visitors reach; nil = nobody does
	// Problems says what cannot be read; nil = nobody asks.
	Problems *problem.List
}

// ParseLabels returns why a text is no label selector, nil if it is one. "" selects
// all.
func ParseLabels(text string) error {
	_, err := labels.Parse(text)
	return err
}

// ParseFields returns why a text is no field selector, nil if it is one. "" selects
// all.
func ParseFields(text string) error {
	_, err := fields.ParseSelector(text)
	return err
}

// Feeder reads a cluster and delivers events. It is made by New.
type Feeder struct {
	clients *clients

	readers []*reader
	secrets *secrets
	bounds  *bound.Counts
}

// New returns a feeder. It fails when cfg cannot be used; the API server is not asked
// yet.
func New(cfg Config) (*Feeder, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("cannot make cluster feeder: %w", err)
	}
	config, err := cfg.Reach.config()
	if err != nil {
		return nil, err
	}
	return newFeeder(cfg, config, retryAPI())
}

func (cfg *Config) check() error {
	for _, selector := range []struct {
		what, text string
		parse      func(string) error
	}{
		{"service account", cfg.ServiceAccount, orEmpty(ParseAccount)},
		{"labels of routes", cfg.RouteLabels, ParseLabels},
		{"fields of routes", cfg.RouteFields, ParseFields},
		{"labels of namespaces", cfg.NamespaceLabels, ParseLabels},
	} {
		if err := selector.parse(selector.text); err != nil {
			return fmt.Errorf("%s %q: %w", selector.what, selector.text, err)
		}
	}
	return nil
}

// orEmpty is parse for texts that may be empty.
func orEmpty(parse func(string) error) func(string) error {
	return func(text string) error {
		if text == "" {
			return nil
		}
		return parse(text)
	}
}

// newFeeder is New with the address of the API server and the pauses between attempts.
func newFeeder(cfg Config, config *rest.Config, retry backoff) (*Feeder, error) {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Resync <= 0 {
		cfg.Resync = 30 * time.Minute
	}
	if cfg.ServiceAccount == "" {
		cfg.ServiceAccount = accountOf(config)
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "turnout"
	}
	config = complete(config, cfg.UserAgent)
	clients, err := newClients(config)
	if err != nil {
		return nil, err
	}
	resources := clients.resources(&cfg)
	h := newHealth(cfg.Log, config.Host, len(resources))
	h.problems = cfg.Problems
	var access secretAPI = &secretClient{newReviewer(clients.authorization, cfg.ServiceAccount), clients}
	if cfg.Gateway != (source.Key{}) {
		access = granted{access}
	}
	f := &Feeder{clients: clients, secrets: newSecrets(access, h, cfg.Log, retry, cfg.Resync)}
	if cfg.Gateway != (source.Key{}) {
		f.secrets.refuse = f.secrets.retry // permission comes soon after a Secret is referred to
	}
	f.secrets.bounds, f.bounds = cfg.Bounds, cfg.Bounds
	for _, r := range resources {
		store := newStore(r.kind)
		store.keepLabels = cfg.Labels && r.kind == source.Route || (cfg.Labels || cfg.GatewayAPI) && r.kind == source.Namespace
		store.keepPorts = cfg.Ingresses || cfg.Conversion || cfg.GatewayAPI
		switch {
		case cfg.Conversion:
			store.cut = trimConverted
		case cfg.Scheduling:
			store.cut = trimScheduled
		case cfg.Naming:
			store.cut = trimNamed
		case cfg.Router != "":
			store.cut = trimBound
		}
		f.readers = append(f.readers, &reader{resource: r, store: store, health: h, log: cfg.Log, problems: cfg.Problems, retry: retry})
	}
	return f, nil
}

// afterAll returns a function whose nth call calls then.
func afterAll(n int, then func()) func() {
	var mu sync.Mutex
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if n--; n == 0 {
			then()
		}
	}
}

// Run reads and delivers to sink until ctx is done. It returns nil then. Synced is called
// when all kinds have been read and delivered. It must be called once.
func (f *Feeder) Run(ctx context.Context, sink source.Sink) error {
	synced := afterAll(len(f.readers), sink.Synced)
	var running sync.WaitGroup
	for _, r := range f.readers {
		r.store.sink, r.store.synced = sink, sync.OnceFunc(synced)
		running.Go(func() { r.run(ctx) })
	}
	running.Go(func() { f.secrets.run(ctx, sink) })
	running.Wait()
	return nil
}

// Objects returns the number of objects delivered and not deleted. Any goroutine may
// call it.
func (f *Feeder) Objects() int {
	n, _ := f.secrets.counts()
	for _, r := range f.readers {
		n += r.store.len()
	}
	return n
}

// Secrets returns what brings single secrets to the sink.
func (f *Feeder) Secrets() source.Secrets { return f.secrets }

// Problems returns the number of kinds that cannot be read although the API server
// answers, and of secrets that cannot be had. Any goroutine may call it.
func (f *Feeder) Problems() int {
	_, n := f.secrets.counts()
	for _, r := range f.readers {
		if r.troubled() {
			n++
		}
	}
	return n
}

// Routes returns a client of the group route.openshift.io/v1, for who writes status. It
// has no rate limit.
func (f *Feeder) Routes() rest.Interface { return f.clients.route }

// Gateways returns clients of the groups gateway.networking.k8s.io/v1 and v1, for who writes status and other objects of Gateways. They have no rate limit.
func (f *Feeder) Gateways() (gateway, core rest.Interface) {
	return f.clients.gateway, f.clients.core
}

// Ingresses returns clients of the groups networking.k8s.io/v1 and v1, for who writes status of Ingresses and Events. They have no rate limit.
func (f *Feeder) Ingresses() (networking, core rest.Interface) {
	return f.clients.networking, f.clients.core
}
