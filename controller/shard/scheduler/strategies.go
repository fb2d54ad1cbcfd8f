package scheduler

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"turnout/controller/shard"
	"turnout/controller/shard/api"
	"turnout/controller/shard/strategy"
	"turnout/controller/shard/strategy/expression"
	"turnout/controller/shard/strategy/webhook"
)

// Make makes a strategy as the spec of the RouteScheduler says. The error says what to change in it.
type Make func(spec *api.RouteSchedulerSpec) (shard.Strategy, error)

// Strategies returns how each kind of strategy is made. The map is the caller's.
func Strategies() map[api.StrategyKind]Make {
	plain := func(of func() shard.Strategy) Make {
		return func(*api.RouteSchedulerSpec) (shard.Strategy, error) { return of(), nil }
	}
	return map[api.StrategyKind]Make{
		api.StrategyRoundRobin:     plain(strategy.RoundRobin),
		api.StrategyLabel:          plain(strategy.Label),
		api.StrategyLeastRoutes:    plain(strategy.LeastRoutes),
		api.StrategyLeastRequests:  plain(strategy.LeastRequests),
		api.StrategyConsistentHash: plain(strategy.ConsistentHash),
		api.StrategySpread: func(spec *api.RouteSchedulerSpec) (shard.Strategy, error) {
			return strategy.Spread(int(max(spec.Routers, 1)), ""), nil
		},
		api.StrategyCEL: func(spec *api.RouteSchedulerSpec) (shard.Strategy, error) {
			if spec.CEL == nil {
				return nil, errors.New("spec.cel is missing: strategy CEL needs an expression")
			}
			s, err := expression.New(spec.CEL.Expression)
			if err != nil {
				return nil, fmt.Errorf("spec.cel.expression: %w", err)
			}
			return s, nil
		},
		api.StrategyWebhook: func(spec *api.RouteSchedulerSpec) (shard.Strategy, error) {
			if spec.Webhook == nil {
				return nil, errors.New("spec.webhook is missing: strategy Webhook needs a URL")
			}
			s, err := webhook.New(webhook.Config{
				URL: spec.Webhook.URL, CA: []byte(spec.Webhook.CABundle), Timeout: time.Duration(spec.Webhook.TimeoutSeconds) * time.Second,
			})
			if err != nil {
				return nil, fmt.Errorf("spec.webhook: %w", err)
			}
			return s, nil
		},
	}
}

// strategyOf makes the strategy of a spec.
func (s *Scheduler) strategyOf(spec *api.RouteSchedulerSpec) (shard.Strategy, error) {
	kind := spec.Strategy
	if kind == "" {
		kind = api.StrategyRoundRobin
	}
	of := s.cfg.Strategies[kind]
	if of == nil {
		var known []string
		for k := range maps.Keys(s.cfg.Strategies) {
			known = append(known, string(k))
		}
		slices.Sort(known)
		return nil, fmt.Errorf("spec.strategy %s is not one of this scheduler; allowed: %s", kind, strings.Join(known, ", "))
	}
	return of(spec)
}
