package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"go.uber.org/zap"

	"turnout/balancer"
	"turnout/controller"
	"turnout/controller/source"
	"turnout/controller/source/cluster"
	"turnout/controller/source/folder"
	"turnout/internal/crew"
	"turnout/internal/explain"
	"turnout/internal/follow"
	"turnout/routing"
)

// world is what would be served of a folder or a cluster, without anybody who serves it.
type world struct {
	config   controller.Options
	defaults routing.Options
	events   []source.Event
	ofHost   ofHost // nil = no route is left out
	control  *controller.Controller
	table    *routing.Table
}

// clusterPatience is how long the objects of a cluster are waited for.
const clusterPatience = time.Minute

// loadWorld reads the objects that o names, once.
func loadWorld(ctx context.Context, o *options) (*world, error) {
	w := &world{config: o.controllerOptions()}
	certificate := o.certificate
	certificate.Domain = o.domain
	rotation, err := follow.NewCertificate(certificate, zap.NewNop(), nil)
	if err != nil {
		return nil, err
	}
	w.defaults.DefaultCertificate = rotation.Current()
	if o.destinationCAPath != "" {
		if w.config.DefaultDestinationCA, err = os.ReadFile(o.destinationCAPath); err != nil {
			return nil, fmt.Errorf("cannot load default destination CA: %w", err)
		}
	}
	if o.cluster {
		if err := w.readCluster(ctx, o); err != nil {
			return nil, err
		}
	} else {
		content, err := folder.Load(o.manifests)
		if err != nil {
			return nil, err
		}
		w.events = content.Events
	}
	return w, w.make()
}

// make makes the table.
func (w *world) make() (err error) {
	w.control, w.table, err = controller.Offline(w.config, w.defaults, w.events)
	return err
}

// changed is the world with the objects of a manifest.
func (w *world) changed(manifest []byte) (*world, error) {
	next := *w
	var err error
	if next.events, err = controller.Changed(append([]source.Event{}, w.events...), manifest, time.Now()); err != nil {
		return nil, err
	}
	return &next, next.make()
}

// ofHost reads the routes of a host, selected or not.
type ofHost func(ctx context.Context, host string) ([]source.Event, error)

// elsewherePatience is how long routes of other routers are waited for.
const elsewherePatience = 2 * time.Second

// claimants are explain.Config.Claimants: those of a controller, and those that it never sees.
func (of ofHost) claimants(control *controller.Controller) func(host string) []explain.Claimant {
	return func(host string) []explain.Claimant {
		list := control.Claimants(host)
		if of == nil {
			return claimants(list)
		}
		ctx, cancel := context.WithTimeout(context.Background(), elsewherePatience)
		defer cancel()
		events, err := of(ctx, host)
		if err != nil {
			return claimants(list) // what else there may be is not known
		}
		for _, e := range events {
			if !slices.ContainsFunc(list, func(c controller.Claimant) bool { return c.Namespace == e.Key.Namespace && c.Name == e.Key.Name }) {
				list = append(list, controller.ClaimantOf(e, controller.ClaimOtherShard, "it is not one that this router selects: see --labels, --fields, --namespace and --namespace-labels"))
			}
		}
		return claimants(list)
	}
}

// readCluster reads the objects of a cluster as a router reads them.
func (w *world) readCluster(ctx context.Context, o *options) error {
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	f, err := cluster.New(o.clusterConfig(zap.NewNop(), nil, nil))
	if err != nil {
		return err
	}
	cfg := controller.Config{Store: routing.NewStore(), Options: w.config, Routing: w.defaults, Secrets: f.Secrets()}
	cfg.Routing.Registry = balancer.NewRegistry()
	control, err := controller.New(cfg)
	if err != nil {
		return err
	}
	sink := control.Sink("cluster")
	failed := make(chan error, 2)
	run := crew.New(failed)
	run.Start("controller", control.Run)
	run.Start("source of objects", func(ctx context.Context) error { return f.Run(ctx, sink) })
	defer func() { _, _ = run.Stop(stopPatience) }() // what is read is read
	select {
	case <-control.Ready():
	case err := <-failed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("cannot read the objects of the cluster: %w", ctx.Err())
	}
	if o.selects() {
		w.ofHost = f.OfHost
	}
	w.events, err = control.Objects(ctx)
	return err
}

// claimants are those of the controller as explanations have them.
func claimants(list []controller.Claimant) []explain.Claimant {
	reasons := map[controller.ClaimState]string{
		controller.ClaimOlder: explain.ReasonOlderClaim, controller.ClaimRejected: explain.ReasonRejected, controller.ClaimWaiting: explain.ReasonWaiting,
		controller.ClaimNotSelected: explain.ReasonNotSelected, controller.ClaimOtherShard: explain.ReasonOtherShard,
	}
	all := make([]explain.Claimant, len(list))
	for i, c := range list {
		all[i] = explain.Claimant{Notes: c.Notes, Candidate: explain.Candidate{
			Namespace: c.Namespace, Name: c.Name, Host: c.Host, Path: c.Path, Wildcard: c.Wildcard, Termination: c.Termination, Origin: c.Origin,
			Reason: reasons[c.State], Text: c.Message,
		}}
		if !c.Created.IsZero() {
			all[i].Created = &c.Created
		}
	}
	return all
}
