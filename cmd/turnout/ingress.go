package main

import (
	"context"

	"go.uber.org/zap"

	"turnout/controller/source"
	"turnout/internal/live"
	"turnout/internal/option"
)

// follows are the settings that follow the IngressController of o, and the options to begin with in the place of o; both are o's where it names no IngressController. Without
// an error there are no options when ctx ends before the object has been looked for.
func (o *options) follows(ctx context.Context, log *zap.Logger, parse func(said []option.Said) (*options, []string, error)) (s *live.Settings, first *options, warnings []string, err error) {
	if o.ingressController == (source.Key{}) {
		first, warnings, err = parse(nil)
		return nil, first, warnings, err
	}
	cfg := live.SettingsConfig{Object: o.ingressController, Manifests: o.manifests, Log: log, Parse: func(said []option.Said) (*live.Parsed, error) {
		o, warnings, err := parse(said)
		if err != nil {
			return nil, err
		}
		return o.parsed(warnings), nil
	}}
	if o.cluster {
		c := o.clusterConfig(log, nil, nil)
		cfg.Cluster = &c
	}
	if s, err = live.NewSettings(cfg); err != nil {
		return nil, nil, nil, err
	}
	if said, ok := s.Begin(ctx); ok {
		first, warnings, err = parse(said)
	}
	return s, first, warnings, err
}

// parsed is what may change of o.
func (o *options) parsed(warnings []string) *live.Parsed {
	return &live.Parsed{Plan: o.plan(), AdminAddr: o.adminAddr, Warnings: warnings, Doubts: o.doubts, Origins: o.origins}
}
