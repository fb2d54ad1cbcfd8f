// Package cluster feeds the controller from a Kubernetes API: Routes, Services,
// EndpointSlices, the Namespaces that are selected, and single Secrets on demand.
//
//	list and watch ─► trim ─► store (which versions are known) ─► Sink
//
// Each kind has one reflector. What the router does not read is dropped as soon as an
// object is decoded, and the store shares what is left with the controller, so that
// nothing is kept twice. An object that is read again unchanged is not delivered again.
//
// While the API server is away, what was delivered stays. Readers ask again with
// growing pauses; the log tells when an outage begins and when it is over.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"turnout/controller/source"
)

// Config is what a Feeder needs.
type Config struct {
	Kubeconfig string // file that says how to reach the cluster; "" = the cluster of this pod
	UserAgent  string // how the router calls itself; "" = "turnout"

	Namespace       string // only objects of this namespace; "" = all
	RouteLabels     string // label selector on Routes; "" = all
	RouteFields     string // field selector on Routes; "" = all
	NamespaceLabels string // label selector on Namespaces; "" = none are delivered

	Sink source.Sink // takes the events; required
	Log  *zap.Logger // nil = no logs
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
	config  *rest.Config
	readers []*reader
	health  *health
}

// New returns a feeder. It fails when cfg cannot be used; the API server is not asked
// yet.
func New(cfg Config) (*Feeder, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("cannot make cluster feeder: %w", err)
	}
	config, err := loadConfig(cfg.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return newFeeder(cfg, config, retryAPI())
}

func (cfg *Config) check() error {
	if cfg.Sink == nil {
		return errors.New("no sink given")
	}
	for _, selector := range []struct {
		what, text string
		parse      func(string) error
	}{
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

// newFeeder is New with the address of the API server and the pauses between attempts.
func newFeeder(cfg Config, config *rest.Config, retry backoff) (*Feeder, error) {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "turnout"
	}
	config = complete(config, cfg.UserAgent)
	clients, err := newClients(config)
	if err != nil {
		return nil, err
	}
	f := &Feeder{config: config, health: newHealth(cfg.Log, config.Host)}
	resources := clients.resources(&cfg)
	synced := afterAll(len(resources), cfg.Sink.Synced)
	for _, r := range resources {
		f.readers = append(f.readers, &reader{
			resource: r, store: newStore(r.kind, cfg.Sink, sync.OnceFunc(synced)), health: f.health, log: cfg.Log, retry: retry,
		})
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

// Run reads until ctx is done. It returns nil then. Synced is told when all kinds have
// been read and delivered. It must be called once.
func (f *Feeder) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, r := range f.readers {
		running.Go(func() { r.run(ctx) })
	}
	running.Wait()
	return nil
}

// Objects returns the number of objects delivered and not deleted. Any goroutine may
// call it.
func (f *Feeder) Objects() int {
	n := 0
	for _, r := range f.readers {
		n += r.store.len()
	}
	return n
}

// Problems returns the number of kinds that cannot be read although the API server
// answers. Any goroutine may call it.
func (f *Feeder) Problems() int {
	n := 0
	for _, r := range f.readers {
		if r.troubled() {
			n++
		}
	}
	return n
}

// RESTConfig returns how the API server is reached, for others that ask it something.
// It belongs to the caller.
func (f *Feeder) RESTConfig() *rest.Config { return rest.CopyConfig(f.config) }
