package main

import (
	"context"

	"turnout/controller"
	"turnout/controller/source/cluster"
	"turnout/controller/source/folder"
	"turnout/controller/source/local"
	"turnout/internal/gateways"
)

// feeder is what brings objects to the controller.
type feeder struct {
	run    func(context.Context) error    // until the context is done
	counts func() (objects, problems int) // as they are now
}

// makeControl makes the controller and what feeds it.
func (r *router) makeControl(cfg controller.Config) error {
	r.gateways = gateways.New(&r.o.gateways, &cfg)
	if r.o.cluster {
		return r.makeCluster(cfg)
	}
	var err error
	if r.control, err = controller.New(cfg); err != nil {
		return err
	}
	said := folder.Journal{Log: r.log, Problems: r.problems}
	to := r.settings.Tee(r.control.Sink("manifests"))
	sink := local.NewSink(local.Config{Backends: r.o.backends, To: to, Problem: said.Found, Cleared: said.Cleared})
	trim := cluster.Trim(r.o.control.Ingress || r.o.gateways.On() || len(r.o.backends) > 0)
	f, err := folder.New(folder.Config{Paths: []string{r.o.manifests}, Sink: sink, Problem: said.Found, Cleared: said.Cleared, Trim: trim})
	if err != nil {
		return err
	}
	r.feeder = feeder{run: f.Run, counts: func() (int, int) { return f.Objects(), len(f.Problems()) }}
	return nil
}
