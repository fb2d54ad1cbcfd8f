package main

import (
	"context"
	"fmt"
	"os"

	"go.uber.org/zap"

	"turnout/internal/live"
	"turnout/internal/offline"
)

// once reads objects and, with --ingress-controller, the options that follow from them: next is o with these. ignored is what of the IngressController has no effect.
func (o *options) once(ctx context.Context, from offline.Config, parse parser) (next *options, cfg offline.Config, warnings, ignored []string, err error) {
	fail := func(err error) (*options, offline.Config, []string, []string, error) { return nil, cfg, nil, nil, err }
	if !o.cluster {
		if from.Content, err = from.Load(); err != nil {
			return fail(err)
		}
	}
	settings := o.settingsConfig(zap.NewNop(), parse)
	settings.Content = from.Content
	used, ignored, err := live.Once(ctx, settings)
	if err != nil {
		return fail(err)
	}
	if o, warnings, err = parse(used); err != nil {
		return fail(err)
	}
	cfg = from
	cfg.Options, cfg.Selects = o.controllerOptions(), o.selects()
	if o.cluster {
		c := o.clusterConfig(zap.NewNop(), nil, nil)
		cfg.Cluster = &c
	}
	if o.destinationCAPath != "" {
		if cfg.Options.DefaultDestinationCA, err = os.ReadFile(o.destinationCAPath); err != nil {
			return fail(fmt.Errorf("cannot load default destination CA: %w", err))
		}
	}
	return o, cfg, warnings, ignored, nil
}
