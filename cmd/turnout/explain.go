package main

import (
	"context"
	"io"

	"go.uber.org/zap"

	"turnout/internal/explain"
	"turnout/internal/follow"
	"turnout/internal/option"
)

// explainOptions are those of the explain subcommand besides the router's.
type explainOptions struct {
	question explain.Question
	client   clientOptions
}

// explainSettings lists the flags of the explain subcommand.
func explainSettings(e *explainOptions) []option.Option {
	add := func(to *[]string) func(string) error {
		return func(s string) error {
			*to = append(*to, s)
			return nil
		}
	}
	return append(clientSettings(&e.client), []option.Option{
		{Flag: "output", Short: "o", Def: "text", Value: "FORMAT", Set: option.Words(&e.question.Output, "text", "json"), Help: "text or json"},
		{Flag: "method", Value: "METHOD", Set: option.Into(&e.question.Query.Method, option.ParseText), Help: "method of the request; the default is GET"},
		{Flag: "header", Value: "FIELD", Repeats: true, Set: add(&e.question.Query.Header), Help: "'Name: value', a field of the request; may be given several times"},
		{Flag: "cookie", Value: "PAIR", Repeats: true, Set: add(&e.question.Query.Cookies), Help: "NAME=VALUE, a cookie of the request; may be given several times"},
		{Flag: "client", Value: "ADDRESS", Set: option.Into(&e.question.Query.Client, option.ParseAddr), Help: "address of the client; the default is 127.0.0.1"},
		{Flag: "server-name", Value: "NAME", Set: option.Into(&e.question.Query.ServerName, option.ParseText), Help: "server name in the client's TLS, if it is not the host of the URL"},
		{Flag: "http2", IsBool: true, Set: option.Into(&e.question.Query.HTTP2, option.ParseBool), Help: "the client speaks HTTP/2"},
		{Flag: "head", Value: "FILE", Set: option.Into(&e.question.Head, option.ParseText), Help: "a request head as it is sent, - for standard input, instead of a URL; with --http2 a line 'name: value' for each field"},
		{Flag: "secure", IsBool: true, Set: option.Into(&e.question.Query.Secure, option.ParseBool), Help: "the head of --head comes over TLS"},
		{Flag: "with", Value: "FILE", Set: option.Into(&e.question.With, option.ParseText), Help: "manifests that are not there yet, - for standard input: what would they change?"},
		{Flag: "diff", IsBool: true, Set: option.Into(&e.question.Diff, option.ParseBool), Help: "with --with: what would they change for all hosts and paths?"},
		{Flag: "request", Value: "ID", Set: func(s string) error {
			e.question.Request = &s
			return nil
		}, Help: "a past request, by its number, unique id or trace id; empty lists those that are remembered"},
	}...)
}

// runExplain is the explain subcommand.
func runExplain(ctx context.Context, args []string, env option.Environment, stdin io.Reader, stdout io.Writer) error {
	e := &explainOptions{}
	own := explainSettings(e)
	flags, urls := option.SplitPaths(append(settings(&options{}), own...), args)
	mine, others := option.Split(own, flags)
	if _, _, err := option.Parse(own, nil, mine, env); err != nil {
		return err
	}
	o, _, err := parseOptions(others, env)
	if err != nil {
		return err
	}
	if err := e.question.Complete(urls, stdin); err != nil {
		return err
	}
	if o.manifests == "" && !o.reach.Asked() {
		return e.ask(ctx, o, stdout)
	}
	return e.explain(ctx, o, env, stdout)
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
func (e *explainOptions) explain(ctx context.Context, o *options, env option.Environment, stdout io.Writer) error {
	o.useCluster(env)
	cfg, err := o.offlineConfig()
	if err != nil {
		return err
	}
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
	x, err := explain.New(explain.Config{Deciding: r.data.Deciding, Claimants: explain.Claims(r.control, r.ofHost), Recent: r.recent.Failed})
	if err != nil {
		return nil, err
	}
	return explain.NewHandler(explain.HandlerConfig{Explainer: x, Table: r.store.Load, Stories: r.recent, Change: explain.Changes(r.control, r.ofHost)}), nil
}
