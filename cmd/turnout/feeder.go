package main

import (
	"context"

	"go.uber.org/zap"

	"turnout/controller"
	"turnout/controller/source"
	"turnout/controller/source/folder"
	"turnout/controller/source/local"
	"turnout/internal/problem"
)

// feeder is what brings objects to the controller.
type feeder struct {
	run    func(context.Context) error    // until the context is done
	counts func() (objects, problems int) // as they are now
}

// makeControl makes the controller and what feeds it.
func (r *router) makeControl(cfg controller.Config) error {
	if r.o.cluster {
		return r.makeCluster(cfg)
	}
	var err error
	if r.control, err = controller.New(cfg); err != nil {
		return err
	}
	sink := local.NewSink(r.o.backends, r.control.Sink("manifests"), r.problem)
	f, err := folder.New(folder.Config{Paths: []string{r.o.manifests}, Sink: sink, Problem: r.problem, Cleared: r.cleared})
	if err != nil {
		return err
	}
	r.feeder = feeder{run: f.Run, counts: func() (int, int) { return f.Objects(), len(f.Problems()) }}
	return nil
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
	r.problems.Set("file/"+p.String(), problem.Problem{Kind: problem.File, File: p.File, Object: p.Object, Text: p.Reason})
	if entry := r.log.Check(level, "manifest"); entry != nil {
		entry.Write(zap.String("file", p.File), zap.Int("document", p.Document), zap.String("object", p.Object), zap.String("reason", p.Reason))
	}
}

// cleared logs that a manifest no longer has something wrong.
func (r *router) cleared(p source.Problem) {
	r.problems.Set("file/" + p.String())
	r.log.Info("manifest repaired", zap.String("file", p.File), zap.Int("document", p.Document), zap.String("object", p.Object), zap.String("was", p.Reason))
}
