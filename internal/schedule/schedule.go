// Package schedule is the command turnout scheduler: its options and its metrics, around a scheduler.
package schedule

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"turnout/controller/shard"
	"turnout/controller/shard/api"
	"turnout/controller/shard/fleet"
	"turnout/controller/shard/scheduler"
	"turnout/internal/admin"
	"turnout/internal/elected"
	"turnout/internal/metrics"
	"turnout/internal/option"
	"turnout/internal/page"
)

// Options are those of the command.
type Options struct {
	elected.Options

	allowWildcard bool
	keepPods      bool
	podTemplate   *api.PodTemplateReference
}

// Table are the options, bound to o.
func (o *Options) Table() []option.Option {
	return o.Options.Table("Scheduling", scheduler.LeaseName, "schedulers", []option.Option{
		{Flag: "allow-wildcard-routes", Env: "ROUTER_ALLOW_WILDCARD_ROUTES", Def: "false", IsBool: true, Set: option.Into(&o.allowWildcard, option.ParseBool),
			Help: "routes with wildcardPolicy Subdomain are bound; as the routers have it"},
		{Flag: "keep-pods", Def: "true", IsBool: true, Set: option.Into(&o.keepPods, option.ParseBool), Help: "Routers with replicas or a podTemplate get a Deployment or DaemonSet"},
		{Flag: "pod-template", Value: "NAMESPACE/NAME", Set: option.Into(&o.podTemplate, fleet.ParseTemplate), Help: "the PodTemplate of Routers that have replicas and name none"},
	})
}

// Run schedules until a signal.
func Run(ctx context.Context, call elected.Call) error {
	o := new(Options)
	_, version, _ := strings.Cut(call.Agent, "/")
	return o.Options.Run(ctx, call, o.Table(), func() (elected.Work, error) { return o.work(version) })
}

func (o *Options) work(version string) (elected.Work, error) {
	s, err := scheduler.New(scheduler.Config{
		Cluster: o.Cluster, Identity: o.Identity, Namespace: o.Namespace, AllowWildcard: o.allowWildcard, KeepPods: o.keepPods, PodTemplate: o.podTemplate,
	})
	if err != nil {
		return elected.Work{}, err
	}
	return elected.Work{Name: "scheduler", Run: s.Run, Show: func(cfg *admin.Config) (err error) {
		if cfg.Metrics, err = metrics.NewScheduler(func() metrics.Scheduler { return counted(s.Stats()) }); err != nil {
			return err
		}
		cfg.Page, err = page.NewScheduler(page.SchedulerConfig{Version: version, Board: s.Board, Bindings: s.Bindings, Clock: time.Now})
		return err
	}}, nil
}

// counted is what metrics show of a scheduler.
func counted(s *scheduler.Stats) metrics.Scheduler {
	m := metrics.Scheduler{
		Leading: s.Leading, Held: s.Summary.Held, Bound: s.Summary.Bound, Waiting: s.Summary.Waiting, Moving: s.Summary.Moving,
		Troubles: make(map[string]int), Routers: make(map[string]int), Actions: make(map[string]uint64), Results: make(map[string]uint64),
		Placed: s.Counts.Placed, Moved: s.Counts.Moved, Dropped: s.Counts.Dropped,
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Troubles)) {
		m.Troubles[string(reason)] = s.Troubles[reason]
	}
	for phase, n := range s.Routers {
		if phase == "" {
			phase = shard.RouterPending
		}
		m.Routers[string(phase)] = n
	}
	for kind, n := range s.Counts.Actions {
		m.Actions[shard.Kind(kind).String()] = n
	}
	for outcome, n := range s.Counts.Results {
		m.Results[shard.Outcome(outcome).String()] = n
	}
	return m
}
