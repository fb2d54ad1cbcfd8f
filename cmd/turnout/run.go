package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"
)

// errNoSource is all that a router without objects can say.
var errNoSource = errors.New("nothing to serve: give --manifests DIR or --kubeconfig FILE, or run in a pod (KUBERNETES_SERVICE_HOST is not set)")

// runRouter is the run subcommand.
func runRouter(ctx context.Context, args []string, env environment, stdout, stderr io.Writer) error {
	o, warnings, err := parseOptions(args, env)
	if err != nil {
		return err
	}
	if o.useCluster(env); o.manifests == "" && !o.cluster {
		return errNoSource
	}
	signal.Ignore(syscall.SIGPIPE) // whoever read the log has gone; that is no reason to go too
	queue := newLogQueue(stderr, logRoom)
	defer queue.close(logPatience)
	log := newLogger(queue, o.logLevel)
	for _, w := range warnings {
		log.Warn(w)
	}
	logTLS(log, o)
	r, err := newRouter(o, log, stdout)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx, log)
	defer stop()
	return r.run(ctx, nil)
}

// untilSignal ends the returned context at the first SIGTERM or SIGINT. A second
// one ends the process with status 1.
func untilSignal(ctx context.Context, log *zap.Logger) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	ended := make(chan struct{})
	go func() {
		asked := false
		for {
			select {
			case s := <-signals:
				if asked {
					os.Exit(1)
				}
				asked = true
				log.Info("signal", zap.String("name", s.String()))
				cancel()
			case <-ended:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(ended)
		cancel()
	}
}
