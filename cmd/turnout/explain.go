package main

import (
	"context"
	"io"

	"go.uber.org/zap"

	"turnout/internal/explain"
	"turnout/internal/follow"
	"turnout/internal/offline"
	"turnout/internal/option"
)

// explainOptions are those of the explain subcommand besides the router's.
type explainOptions struct {
	question explain.Question
	client   clientOptions
}

// runExplain is the explain subcommand.
func runExplain(ctx context.Context, args []string, env option.Environment, stdin io.Reader, stdout io.Writer) error {
	e := &explainOptions{}
	own := append(clientSettings(&e.client), e.question.Table()...)
	flags, urls := option.SplitPaths(append(settings(&options{}), own...), args)
	mine, others := option.Split(own, flags)
	if _, _, err := option.Parse(own, nil, mine, env); err != nil {
		return err
	}
	parse := reading(others, env, func(o *options) { o.useCluster(env) })
	o, _, err := parse(nil)
	if err != nil {
		return err
	}
	if err := e.question.Complete(urls, stdin); err != nil {
		return err
	}
	if o.manifests == "" && !o.reach.Asked() {
		return e.ask(ctx, o, stdout)
	}
	return e.explain(ctx, o, parse, stdout)
}

// ask asks a running router.
func (e *explainOptions) ask(ctx context.Context, o *options, stdout io.Writer) error {
	client, err := e.client.client(&o.adminPort)
	if err != nil {
		return err
	}
	return client.Ask(ctx, "/explain", e.question.Values(), e.question.Manifest, stdout)
}

// explain makes a table of a folder or of a cluster's objects and asks that.
func (e *explainOptions) explain(ctx context.Context, o *options, parse parser, stdout io.Writer) error {
	o, cfg, _, ignored, err := o.once(ctx, offline.Config{Manifests: []string{o.manifests}}, parse)
	if err != nil {
		return err
	}
	e.question.Ignored = ignored
	certificate := o.certificate
	certificate.Domain = o.control.Domain
	rotation, err := follow.NewCertificate(certificate, zap.NewNop(), nil)
	if err != nil {
		return err
	}
	cfg.Routing.DefaultCertificate = rotation.Current()
	return e.question.Offline(ctx, cfg, o.server.Deciding, stdout)
}

// explanations answers /explain.
func (r *router) explanations() (*explain.Handler, error) {
	x, err := explain.New(explain.Config{Deciding: r.data.Deciding, Claimants: explain.Claims(r.control, r.ofHost), Settings: explain.Settings(r.control), Gateways: r.control, Recent: r.recent.Failed})
	if err != nil {
		return nil, err
	}
	return explain.NewHandler(explain.HandlerConfig{Explainer: x, Table: r.store.Load, Stories: r.recent, Change: explain.Changes(r.control, r.ofHost)}), nil
}
