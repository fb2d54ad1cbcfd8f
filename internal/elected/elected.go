// Package elected is a command of which one of several processes works, the one that holds a Lease: its options, its log and its admin port. What it works at is
// up to others.
package elected

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"turnout/controller/source/cluster"
	"turnout/internal/access"
	"turnout/internal/admin"
	"turnout/internal/crew"
	"turnout/internal/logging"
	"turnout/internal/option"
	"turnout/internal/option/kubectl"
	"turnout/internal/problem"
	"turnout/internal/signals"
)

// Options are those that all such commands have.
type Options struct {
	Cluster   cluster.Config // how the API server is reached; the rest of it is filled in before Work is made
	Namespace string         // of the Lease
	Identity  string         // of this process among the others

	adminAddr string
	admin     access.Options
	logLevel  zapcore.Level
	logFormat string
}

// Work is what the process does.
type Work struct {
	Name string // in log lines, and as visitors of the admin port are asked about
	Run  func(context.Context) error
	Show func(*admin.Config) error // has the admin port show the work's metrics
}

// Table are the options, bound to o, with those of the command itself. doers is what several processes of the command are called.
func (o *Options) Table(group, lease, doers string, own []option.Option) []option.Option {
	all := []option.Option{
		{Flag: "lease-namespace", Env: "POD_NAMESPACE", Def: "turnout", Value: "NAMESPACE", Set: option.Into(&o.Namespace, cluster.ParseNamespace),
			Help: "where the lease " + lease + " is, by which one of several " + doers + " writes"},
		{Flag: "identity", Env: "POD_NAME", Value: "NAME", Set: option.Into(&o.Identity, option.ParseText), Help: "the name of this process in that lease; the host name if it is not given"},
	}
	all = append(append(all, own...), []option.Option{
		{Flag: "admin-addr", Def: "0.0.0.0:1936", Value: "HOST:PORT", Set: option.Into(&o.adminAddr, option.ParseListenAddr), Help: "where /healthz, /metrics and, of the scheduler, the page are served"},
		{Flag: "log-level", Def: "info", Value: "LEVEL", Set: option.Into(&o.logLevel, logging.ParseLevel), Help: "least important level that is logged: debug, info, warn or error"},
		{Flag: "log-format", Def: "auto", Value: "FORMAT", Set: option.Words(&o.logFormat, "auto", "json", "console"),
			Help: "lines of the log: json, console (for people), or auto: console when the standard error is a terminal, json otherwise"},
	}...)
	for i := range all {
		all[i].Group = group
	}
	for _, group := range []struct {
		name  string
		table []option.Option
	}{{kubectl.Group, kubectl.Settings(&o.Cluster.Reach)}, {"Admin port", o.admin.Table()}} {
		for _, s := range group.table {
			s.Group = group.name
			all = append(all, s)
		}
	}
	return all
}

// Call is how the command was called.
type Call struct {
	Args   []string
	Env    option.Environment
	Agent  string // how the program calls itself when it asks an API server
	Stderr io.Writer
	Exit   func() // ends the process at a second signal
}

// Run works until a signal. table is that of o; work is called when the options are there.
func (o *Options) Run(ctx context.Context, call Call, table []option.Option, work func() (Work, error)) error {
	caught := signals.Catch("reading options")
	defer caught.Release()
	_, warnings, err := option.Parse(table, nil, call.Args, call.Env)
	if err != nil {
		return err
	}
	queue := logging.NewQueue(call.Stderr, logging.QueueBytes)
	defer queue.Close(logging.Patience)
	log := logging.New(queue, o.logLevel, logging.FormatOf(o.logFormat, call.Stderr))
	for _, w := range warnings {
		log.Warn(w)
	}
	ctx = caught.Context(ctx, log, call.Exit)
	if o.Identity == "" {
		if o.Identity, err = os.Hostname(); err != nil {
			return fmt.Errorf("cannot tell the name of this process: %w; give --identity", err)
		}
	}
	caught.Enter("working")
	return o.run(ctx, call.Agent, log, work)
}

// run works until ctx is done.
func (o *Options) run(ctx context.Context, agent string, log *zap.Logger, work func() (Work, error)) error {
	o.Cluster.UserAgent, o.Cluster.Log, o.Cluster.Problems = agent, log, problem.NewList()
	w, err := work()
	if err != nil {
		return err
	}
	server, err := o.serve(&w)
	if err != nil {
		return err
	}
	log.Info("listening", zap.Stringer("admin", server.Addr()), zap.String("identity", o.Identity))
	failed := make(chan error, 1)
	working := crew.New(failed)
	working.Start(w.Name, w.Run)
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
func (o *Options) serve(w *Work) (*admin.Server, error) {
	feeder, err := cluster.New(o.Cluster)
	if err != nil {
		return nil, err
	}
	failed := func(err error) { o.Cluster.Log.Error(err.Error()) }
	who, err := o.admin.Read(feeder.Visitors(w.Name).Review, failed, o.Cluster.Problems)
	if err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	close(ready) // one that does not lead is ready to
	cfg := admin.Config{
		Addr: o.adminAddr, Ready: ready, Login: who.Login, TLS: who.TLS, Hosts: o.admin.Hosts, Namespace: access.Namespace(),
		Problems: admin.ListingOf(o.Cluster.Problems.All), Log: failed,
	}
	if err := w.Show(&cfg); err != nil {
		return nil, err
	}
	return admin.New(cfg)
}
