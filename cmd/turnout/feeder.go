package main

import (
	"context"
	"strings"

	"go.uber.org/zap"

	"turnout/controller/source"
	"turnout/controller/source/cluster"
	"turnout/controller/source/folder"
)

// feeder is what brings objects to the controller.
type feeder struct {
	run    func(context.Context) error    // until the context is done
	counts func() (objects, problems int) // as they are now
}

// newFeeder makes the feeder that the options ask for.
func (r *router) newFeeder() (feeder, error) {
	if r.o.cluster {
		return r.newCluster()
	}
	f, err := folder.New(folder.Config{Paths: []string{r.o.manifests}, Sink: r.control.Sink("manifests"), Problem: r.problem, Cleared: r.cleared})
	if err != nil {
		return feeder{}, err
	}
	return feeder{run: f.Run, counts: func() (int, int) { return f.Objects(), len(f.Problems()) }}, nil
}

// problem logs what a manifest has wrong.
func (r *router) problem(p source.Problem) {
	level := zap.ErrorLevel
	switch p.Severity {
	case source.Warning:
		level = zap.WarnLevel
	case source.Notice:
		level = zap.InfoLevel
	}
	if entry := r.log.Check(level, "manifest"); entry != nil {
		entry.Write(zap.String("file", p.File), zap.Int("document", p.Document), zap.String("object", p.Object), zap.String("reason", p.Reason))
	}
}

// cleared logs that a manifest no longer has something wrong.
func (r *router) cleared(p source.Problem) {
	r.log.Info("manifest repaired", zap.String("file", p.File), zap.Int("document", p.Document), zap.String("object", p.Object), zap.String("was", p.Reason))
}

func (r *router) newCluster() (feeder, error) {
	f, err := cluster.New(cluster.Config{
		Kubeconfig: r.o.kubeconfig, UserAgent: userAgent(),
		Namespace: r.o.namespace, RouteLabels: r.o.routeLabels, RouteFields: r.o.routeFields, NamespaceLabels: r.o.namespaces(),
		Sink: r.control.Sink("cluster"), Log: r.log,
	})
	if err != nil {
		return feeder{}, err
	}
	return feeder{run: f.Run, counts: func() (int, int) { return f.Objects(), f.Problems() }}, nil
}

// userAgent is how the router calls itself when it asks an API server.
func userAgent() string {
	number, _, _ := strings.Cut(version(), " ")
	return "turnout/" + number
}
