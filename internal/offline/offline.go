// Package offline reads the objects of a folder or a cluster once, and makes the table that a router would serve with them. Nothing is served,
// and nothing is written.
package offline

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"turnout/balancer"
	"turnout/controller"
	"turnout/controller/source"
	"turnout/controller/source/cluster"
	"turnout/controller/source/folder"
	"turnout/internal/crew"
	"turnout/routing"
)

// Config says where objects are and what becomes of them.
type Config struct {
	Options controller.Options
	Routing routing.Options // defaults of routes; Registry and Rates are not looked at

	Cluster *cluster.Config // nil = manifests
	Selects bool            // Cluster leaves routes out
	// Manifests are folders and files. "-" is the text of Stdin, and a file of that name when Stdin is nil.
	Manifests []string
	Stdin     io.Reader
	Content   *folder.Content // what Load returned; nil = it is called
}

// World is what would be served.
type World struct {
	Control *controller.Controller // its Run is not to be called
	Table   *routing.Table
	OfHost  OfHost // nil = no route is left out

	cfg    Config
	events []source.Event
}

// OfHost reads the routes of a host, selected or not.
type OfHost func(ctx context.Context, host string) ([]source.Event, error)

const (
	clusterPatience = time.Minute     // how long the objects of a cluster are waited for
	stopPatience    = 3 * time.Second // how long what has read them may take to end
)

// Read reads the objects and makes the table. The error is about what cannot be read; a bad object is an entry of the controller.
func Read(ctx context.Context, cfg Config) (*World, error) {
	content, ofHost, err := read(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	w := &World{OfHost: ofHost, cfg: cfg, events: content.Events}
	return w, w.make()
}

// Changed is the world with the objects of a manifest. w stays as it is.
func (w *World) Changed(manifest []byte) (*World, error) {
	next := *w
	var err error
	if next.events, err = controller.Changed(append([]source.Event{}, w.events...), manifest, time.Now()); err != nil {
		return nil, err
	}
	return &next, next.make()
}

// make makes the table.
func (w *World) make() (err error) {
	w.Control, w.Table, err = controller.Offline(w.cfg.Options, w.cfg.Routing, w.events)
	return err
}

// Objects reads the objects and nothing else.
func (cfg *Config) Objects(ctx context.Context) (*folder.Content, error) {
	content, _, err := read(ctx, cfg)
	return content, err
}

func read(ctx context.Context, cfg *Config) (*folder.Content, OfHost, error) {
	if cfg.Cluster != nil {
		return readCluster(ctx, cfg)
	}
	if cfg.Content != nil {
		return cfg.Content, nil, nil
	}
	content, err := cfg.Load()
	return content, nil, err
}

// Load reads Manifests, for those who want to know what is there before they know Options. It is called once, as Stdin is read once.
func (cfg *Config) Load() (*folder.Content, error) {
	files := slices.DeleteFunc(slices.Clone(cfg.Manifests), func(path string) bool { return path == "-" && cfg.Stdin != nil })
	if len(files) == len(cfg.Manifests) {
		return folder.Load(files...)
	}
	text, err := io.ReadAll(cfg.Stdin)
	if err != nil {
		return nil, fmt.Errorf("cannot read the standard input: %w", err)
	}
	return folder.LoadWith("stdin", text, files...)
}

// readCluster reads the objects of a cluster as a router reads them.
func readCluster(ctx context.Context, cfg *Config) (*folder.Content, OfHost, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	f, err := cluster.New(*cfg.Cluster)
	if err != nil {
		return nil, nil, err
	}
	of := controller.Config{Store: routing.NewStore(), Options: cfg.Options, Routing: cfg.Routing, Secrets: f.Secrets()}
	of.Routing.Registry = balancer.NewRegistry()
	var more *referred // nil = Gateways are not served
	if cfg.Options.Gateways.Controller != "" {
		if more, err = newReferred(*cfg.Cluster); err != nil {
			return nil, nil, err
		}
		of.ConfigMaps = more
	}
	control, err := controller.New(of)
	if err != nil {
		return nil, nil, err
	}
	sink := control.Sink("cluster")
	failed := make(chan error, 3)
	run := crew.New(failed)
	run.Start("controller", control.Run)
	run.Start("source of objects", func(ctx context.Context) error { return f.Run(ctx, sink) })
	if more != nil {
		run.Start("ConfigMaps of the Gateway API", more.run)
	}
	defer func() { _, _ = run.Stop(stopPatience) }() // what is read is read
	select {
	case <-control.Ready():
	case err := <-failed:
		return nil, nil, err
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("cannot read the objects of the cluster: %w", ctx.Err())
	}
	events, err := control.Objects(ctx)
	if more != nil && err == nil {
		events = append(events, more.events(ctx)...)
	}
	if err != nil || !cfg.Selects {
		return &folder.Content{Events: events}, nil, err
	}
	return &folder.Content{Events: events}, f.OfHost, nil
}
