package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"turnout/deploy/examples"
	"turnout/internal/demo"
	"turnout/internal/logging"
	"turnout/internal/option"
	"turnout/internal/signals"
)

// runDemo is the demo subcommand: examples and pods in a temporary folder, and a
// router that serves them on loopback addresses.
func runDemo(ctx context.Context, args []string, env option.Environment, stdout, stderr io.Writer) (err error) {
	caught := signals.Catch(readingOptions)
	defer caught.Release()
	o, warnings, err := parseOptions(args, env,
		"http-addr", "127.0.0.1:8080", "https-addr", "127.0.0.1:8443", "admin-addr", "127.0.0.1:1936",
		"allow-wildcard-routes", "true", "router-domain", "apps.example.com",
		"hostname-template", "${name}-${namespace}.router.default.svc.cluster.local",
		"max-shutdown-timeout", "2",
	)
	if err != nil {
		return err
	}
	if o.manifests != "" || o.reach.Asked() {
		return option.Usagef("demo serves its own manifests; use turnout run --manifests DIR for others")
	}
	log, level := logging.NewLevel(stderr, o.logLevel, o.logLevelFile, logging.FormatOf(o.logFormat, stderr))
	for _, w := range warnings {
		log.Warn(w)
	}
	dir, err := os.MkdirTemp("", "turnout-demo-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the examples: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	go caught.HangUps(level.Reread)
	ctx = caught.Context(ctx, log, func() { _ = os.RemoveAll(dir); os.Exit(1) }) // the process ends without another word
	d, err := demo.Start(demo.Config{Manifests: examples.Files(), Dir: dir, Gateway: examples.Gateway(), GatewayAPI: o.gateways.On(), AnyPort: strings.HasSuffix(o.server.HTTPAddr, ":0")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	o.manifests = dir
	r, err := start(ctx, caught, o, nil, log, level, stdout)
	if err != nil || r == nil {
		return err
	}
	return r.run(ctx, func() error {
		return d.Print(stdout, demo.Addresses{HTTP: r.data.HTTP(), HTTPS: r.data.HTTPS(), Admin: r.admin.Addr()})
	})
}
