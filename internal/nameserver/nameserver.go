// Package nameserver is the command turnout dns: its options, its log and its admin port, around names and where they go.
//
//	cluster.Feeder ─► naming.Keeper ─► outputs ─┬─► dns/server
//	                                            ├─► dns/zonefile
//	                                            └─► externaldns.Writer
package nameserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"turnout/controller/shard/externaldns"
	"turnout/controller/shard/naming"
	"turnout/controller/source/cluster"
	"turnout/internal/admin"
	"turnout/internal/bound"
	"turnout/internal/crew"
	"turnout/internal/dns/server"
	"turnout/internal/dns/zone"
	"turnout/internal/filewatch"
	"turnout/internal/logging"
	"turnout/internal/metrics"
	"turnout/internal/option"
	"turnout/internal/problem"
	"turnout/internal/signals"
)

// Run answers until a signal. agent is how the program calls itself when it asks an API server; exit ends the process at a second signal.
func Run(ctx context.Context, args []string, env option.Environment, agent string, stderr io.Writer, exit func()) error {
	caught := signals.Catch("reading options")
	defer caught.Release()
	o := new(Options)
	_, warnings, err := option.Parse(o.Table(), nil, args, env)
	if err == nil {
		err = o.check()
	}
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
	caught.Enter("answering")
	return o.run(ctx, agent, log)
}

// program is a running command.
type program struct {
	o        *Options
	version  string
	log      *zap.Logger
	bounds   bound.Counts
	problems *problem.List
	feeder   *cluster.Feeder
	keeper   *naming.Keeper
	out      *outputs
	admin    *admin.Server
	keys     *filewatch.Watcher // nil = there is no file of keys
}

// run answers until ctx is done.
func (o *Options) run(ctx context.Context, agent string, log *zap.Logger) error {
	p := &program{o: o, version: strings.TrimPrefix(agent, "turnout/"), log: log, problems: problem.NewList()}
	if err := p.make(agent); err != nil {
		return errors.Join(err, p.close())
	}
	addresses := []zap.Field{zap.Stringer("admin", p.admin.Addr())}
	if p.out.server != nil {
		addresses = append(addresses, zap.String("dns", p.out.server.Addr()))
	}
	log.Info("listening", addresses...)
	failed := make(chan error, 1)
	working := p.start(failed)
	var err error
	select {
	case <-ctx.Done():
		p.admin.Stopping()
		log.Info("stopping", zap.Duration("after", o.shutdownDelay))
		err = crew.Linger(o.shutdownDelay, nil, failed)
	case err = <-failed:
	}
	if left, ended := working.Stop(stopPatience); len(left) > 0 || ended != nil {
		log.Warn("the process ends without waiting any longer", zap.Strings("for", left), zap.Error(ended))
	}
	return errors.Join(err, p.close())
}

// stopPatience is how long what is under way may take at the end.
const stopPatience = 5 * time.Second

// make makes everything, and listens.
func (p *program) make(agent string) error {
	config := cluster.Config{Reach: p.o.reach, UserAgent: agent, Log: p.log, Problems: p.problems, Bounds: &p.bounds, Naming: true}
	var err error
	if p.feeder, err = cluster.New(config); err != nil {
		return err
	}
	empty, err := zone.NewSet()
	if err != nil {
		return err
	}
	p.out = &outputs{log: p.log, problems: p.problems, ready: make(chan struct{})}
	p.out.current.Store(empty)
	names := p.o.naming()
	names.Publish = p.out.publish
	if p.o.zoneDir != "" {
		if p.out.files, err = newFiles(p.o.zoneDir, p.log, p.problems); err != nil {
			return err
		}
		names.Last = p.out.files.dir.Last
	}
	if p.o.endpoints != "" {
		if err := p.makeWriter(&config); err != nil {
			return err
		}
	}
	if p.keeper, err = naming.New(names); err != nil {
		return err
	}
	if p.o.server.Addr != "" {
		if err := p.makeServer(); err != nil {
			return err
		}
	}
	return p.makeAdmin()
}

func (p *program) makeWriter(config *cluster.Config) error {
	reach, err := config.API()
	if err != nil {
		return err
	}
	p.out.writer, err = externaldns.New(externaldns.Config{Reach: reach, Namespace: p.o.endpoints, Log: p.log, Problems: p.problems})
	return err
}

func (p *program) makeServer() error {
	cfg := p.o.server
	cfg.Bounds, cfg.Tell = &p.bounds, (&events{log: p.log}).tell
	if p.o.keyFile != "" {
		var err error
		if p.keys, err = filewatch.New(filewatch.Config{Dir: filepath.Dir(p.o.keyFile)}); err != nil {
			return err
		}
		if cfg.Keys, err = readKeys(p.o.keyFile); err != nil {
			return err
		}
	}
	var err error
	p.out.server, err = server.New(cfg)
	return err
}

func (p *program) makeAdmin() error {
	failed := func(err error) { p.log.Error(err.Error()) }
	who, err := p.o.admin.Read(p.feeder.Visitors("dns").Review, failed, p.problems)
	if err != nil {
		return err
	}
	handler, err := metrics.NewDNS(p.metrics())
	if err != nil {
		return err
	}
	p.admin, err = admin.New(admin.Config{
		Addr: p.o.adminAddr, Ready: p.out.ready, Login: who.Login, TLS: who.TLS, Hosts: p.o.admin.Hosts, Metrics: handler,
		Problems: admin.ListingOf(p.problems.All), Bounds: &p.bounds, Log: failed,
	})
	return err
}

// metrics says where numbers come from.
func (p *program) metrics() metrics.DNSConfig {
	cfg := metrics.DNSConfig{
		Version: p.version,
		Zones:   p.out.current.Load, Bounds: &p.bounds, Problems: p.problems,
		Source: func() metrics.DNSSource {
			c := p.keeper.Counts()
			s := metrics.DNSSource{Routers: c.Routers, Bindings: c.Bindings, LeftOut: c.LeftOut, Changes: c.Changes}
			if p.out.files != nil {
				s.FileErrors = p.out.files.errors.Load()
			}
			if p.out.writer != nil {
				s.EndpointErrors = p.out.writer.Errors()
			}
			return s
		},
	}
	if p.out.server != nil {
		cfg.Server = p.out.server.Stats
	}
	return cfg
}

// start starts everything.
func (p *program) start(failed chan<- error) *crew.Crew {
	working := crew.New(failed)
	working.Start("reading the cluster", func(ctx context.Context) error { return p.feeder.Run(ctx, p.keeper) })
	working.Start("names", p.keeper.Run)
	if p.out.server != nil {
		working.Start("answers", p.answer)
	}
	if p.out.files != nil {
		working.Start("zone files", p.out.files.run)
	}
	if p.out.writer != nil {
		working.Start("DNSEndpoint objects", p.out.writer.Run)
	}
	if p.keys != nil {
		working.Start("TSIG keys", p.followKeys)
	}
	return working
}

// answer answers as soon as there are names. Before, queries wait: that there is no such name, or nobody who knows, would be kept by resolvers.
func (p *program) answer(ctx context.Context) error {
	select {
	case <-ctx.Done():
		p.out.server.Close()
		return nil
	case <-p.out.ready:
		return p.out.server.Run(ctx)
	}
}

// followKeys reads keys again when their file changes.
func (p *program) followKeys(ctx context.Context) error {
	said := ""
	p.keys.Run(ctx, func() {
		const owner = "file/TSIG keys"
		keys, err := readKeys(p.o.keyFile)
		if err == nil {
			said = ""
			p.problems.Set(owner)
			p.out.server.SetKeys(keys)
			return
		}
		p.problems.Set(owner, problem.Problem{Kind: problem.File, File: p.o.keyFile, Text: err.Error()})
		if text := err.Error(); text != said {
			said = text
			p.log.Error("TSIG keys stay as they were", zap.Error(err))
		}
	})
	return nil
}

// maxKeyFile is how many bytes a file of keys has.
const maxKeyFile = 1 << 20

func readKeys(name string) (server.Keys, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read TSIG keys: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read TSIG keys: %w", err)
	}
	return server.ParseKeys(string(text))
}

// close closes what is not closed by who runs it.
func (p *program) close() error {
	if p.out != nil && p.out.server != nil {
		p.out.server.Close()
	}
	if p.admin != nil {
		return p.admin.Close()
	}
	return nil
}
