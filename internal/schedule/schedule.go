// Package schedule is the command turnout scheduler: its options, its log and its admin port, around a scheduler.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"turnout/controller/shard"
	"turnout/controller/shard/api"
	"turnout/controller/shard/fleet"
	"turnout/controller/shard/scheduler"
	"turnout/controller/source/cluster"
	"turnout/internal/access"
	"turnout/internal/admin"
	"turnout/internal/crew"
	"turnout/internal/logging"
	"turnout/internal/metrics"
	"turnout/internal/option"
	"turnout/internal/option/kubectl"
	"turnout/internal/problem"
	"turnout/internal/signals"
)

// Options are those of the command.
type Options struct {
	reach         cluster.Reach
	namespace     string // of the Lease
	identity      string
	allowWildcard bool
	keepPods      bool
	podTemplate   *api.PodTemplateReference
	adminAddr     string
	admin         access.Options
	logLevel      zapcore.Level
	logFormat     string
}

// Table are the options, bound to o.
func (o *Options) Table() []option.Option {
	all := []option.Option{
		{Flag: "lease-namespace", Env: "POD_NAMESPACE", Def: "turnout", Value: "NAMESPACE", Set: option.Into(&o.namespace, cluster.ParseNamespace),
			Help: "where the lease " + scheduler.LeaseName + " is, by which one of several schedulers writes"},
		{Flag: "identity", Env: "POD_NAME", Value: "NAME", Set: option.Into(&o.identity, option.ParseText), Help: "the name of this process in that lease; the host name if it is not given"},
		{Flag: "allow-wildcard-routes", Env: "ROUTER_ALLOW_WILDCARD_ROUTES", Def: "false", IsBool: true, Set: option.Into(&o.allowWildcard, option.ParseBool),
			Help: "routes with wildcardPolicy Subdomain are bound; as the routers have it"},
		{Flag: "keep-pods", Def: "true", IsBool: true, Set: option.Into(&o.keepPods, option.ParseBool), Help: "Routers with replicas or a podTemplate get a Deployment or DaemonSet"},
		{Flag: "pod-template", Value: "NAMESPACE/NAME", Set: option.Into(&o.podTemplate, fleet.ParseTemplate), Help: "the PodTemplate of Routers that have replicas and name none"},
		{Flag: "admin-addr", Def: "0.0.0.0:1936", Value: "HOST:PORT", Set: option.Into(&o.adminAddr, option.ParseListenAddr), Help: "where /healthz and /metrics are served"},
		{Flag: "log-level", Def: "info", Value: "LEVEL", Set: option.Into(&o.logLevel, logging.ParseLevel), Help: "least important level that is logged: debug, info, warn or error"},
		{Flag: "log-format", Def: "auto", Value: "FORMAT", Set: option.Words(&o.logFormat, "auto", "json", "console"),
			Help: "lines of the log: json, console (for people), or auto: console when the standard error is a terminal, json otherwise"},
	}
	for i := range all {
		all[i].Group = "Scheduling"
	}
	for _, group := range []struct {
		name  string
		table []option.Option
	}{{kubectl.Group, kubectl.Settings(&o.reach)}, {"Admin port", o.admin.Table()}} {
		for _, s := range group.table {
			s.Group = group.name
			all = append(all, s)
		}
	}
	return all
}

// Run schedules until a signal. agent is how the program calls itself when it asks an API server; exit ends the process at a second signal.
func Run(ctx context.Context, args []string, env option.Environment, agent string, stderr io.Writer, exit func()) error {
	caught := signals.Catch("reading options")
	defer caught.Release()
	o := new(Options)
	_, warnings, err := option.Parse(o.Table(), nil, args, env)
	if err != nil {
		return err
	}
	queue := logging.NewQueue(stderr, logging.QueueBytes)
	defer queue.Close(logging.Patience)
	log := logging.New(queue, o.logLevel, logging.FormatOf(o.logFormat, stderr))
	for _, w := range warnings {
		log.Warn(w)
	}
	ctx = caught.Context(ctx, log, exit)
	if o.identity == "" {
		if o.identity, err = os.Hostname(); err != nil {
			return fmt.Errorf("cannot tell the name of this process: %w; give --identity", err)
		}
	}
	caught.Enter("scheduling")
	return o.run(ctx, agent, log)
}

// run schedules until ctx is done.
func (o *Options) run(ctx context.Context, agent string, log *zap.Logger) error {
	config := cluster.Config{Reach: o.reach, UserAgent: agent, Log: log, Problems: problem.NewList()}
	s, err := scheduler.New(scheduler.Config{Cluster: config, Identity: o.identity, Namespace: o.namespace, AllowWildcard: o.allowWildcard, KeepPods: o.keepPods, PodTemplate: o.podTemplate})
	if err != nil {
		return err
	}
	server, err := o.serve(s, &config)
	if err != nil {
		return err
	}
	log.Info("listening", zap.Stringer("admin", server.Addr()), zap.String("identity", o.identity))
	failed := make(chan error, 1)
	working := crew.New(failed)
	working.Start("scheduler", s.Run)
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	log.Info("stopping")
	server.Stopping()
	if left, ended := working.Stop(stopPatience); len(left) > 0 || ended != nil {
		log.Warn("the process ends without waiting any longer", zap.Strings("for", left), zap.Error(ended))
	}
	return errors.Join(err, server.Close())
}

// stopPatience is how long writes that are under way may take at the end.
const stopPatience = 5 * time.Second

// serve opens the admin port.
func (o *Options) serve(s *scheduler.Scheduler, config *cluster.Config) (*admin.Server, error) {
	feeder, err := cluster.New(*config)
	if err != nil {
		return nil, err
	}
	failed := func(err error) { config.Log.Error(err.Error()) }
	who, err := o.admin.Read(feeder.Visitors("scheduler").Review, failed, config.Problems)
	if err != nil {
		return nil, err
	}
	handler, err := metrics.NewScheduler(func() metrics.Scheduler { return counted(s.Stats()) })
	if err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	close(ready) // one that does not lead is ready to
	return admin.New(admin.Config{
		Addr: o.adminAddr, Ready: ready, Login: who.Login, TLS: who.TLS, Hosts: o.admin.Hosts, Metrics: handler,
		Problems: admin.ListingOf(config.Problems.All), Log: failed,
	})
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
