package main

import (
	"context"

	"go.uber.org/zap"

	"turnout/controller/source"
	"turnout/internal/live"
	"turnout/internal/option"
)

// parser reads flags and environment, with what is said below them.
type parser func(said []option.Said) (o *options, warnings []string, err error)

// reading is the parser of args and env; complete is called with what it has read.
func reading(args []string, env option.Environment, complete func(*options)) parser {
	return func(said []option.Said) (*options, []string, error) {
		o, warnings, err := parseSaid(args, env, said)
		if err == nil {
			complete(o)
		}
		return o, warnings, err
	}
}

// settingsConfig says how the IngressController of o is read.
func (o *options) settingsConfig(log *zap.Logger, parse parser) live.SettingsConfig {
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
	return cfg
}

// follows are the settings that follow the IngressController of o, and the options to begin with in the place of o; both are o's where it names no IngressController. Without
// an error there are no options when ctx ends before the object has been looked for.
func (o *options) follows(ctx context.Context, log *zap.Logger, parse parser) (s *live.Settings, first *options, warnings []string, err error) {
	if o.ingressController == (source.Key{}) {
		first, warnings, err = parse(nil)
		return nil, first, warnings, err
	}
	if s, err = live.NewSettings(o.settingsConfig(log, parse)); err != nil {
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
