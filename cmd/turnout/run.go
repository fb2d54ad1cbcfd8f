package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"turnout/internal/logging"
	"turnout/internal/option"
	"turnout/internal/signals"
)

// errNoSource is all that a router without objects can say.
var errNoSource = errors.New("nothing to serve: give --manifests DIR or --kubeconfig FILE, or run in a pod (KUBERNETES_SERVICE_HOST is not set)")

// runRouter is the run subcommand.
func runRouter(ctx context.Context, args []string, env option.Environment, stdout, stderr io.Writer) error {
	caught := signals.Catch(readingOptions)
	defer caught.Release()
	o, _, err := parseOptions(args, env)
	if err != nil {
		return err
	}
	if o.useCluster(env); o.manifests == "" && !o.cluster {
		return errNoSource
	}
	signal.Ignore(syscall.SIGPIPE) // the reader of the log has gone; the router goes on
	queue := logging.NewQueue(stderr, logging.QueueBytes)
	defer queue.Close(logging.Patience)
	log, level := logging.NewLevel(queue, o.logLevel, o.logLevelFile, logging.FormatOf(o.logFormat, stderr))
	go caught.HangUps(level.Reread)
	ctx = caught.Context(ctx, log, func() { queue.Close(hurriedPatience); os.Exit(1) })
	caught.Enter(readingSettings)
	s, first, warnings, err := o.follows(ctx, log, reading(args, env, func(o *options) { o.useCluster(env) }))
	if o = first; err != nil || o == nil {
		return err
	}
	for _, w := range warnings {
		log.Warn(w)
	}
	logging.TLS(log, &o.server, o.suitesLeftOut)
	r, err := start(ctx, caught, o, s, log, level, stdout)
	if err != nil || r == nil {
		return err
	}
	return r.run(ctx, nil)
}
