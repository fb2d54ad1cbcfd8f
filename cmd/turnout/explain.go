package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"

	"turnout/internal/explain"
	"turnout/internal/option"
)

// explainOptions are those of the explain subcommand besides the router's.
type explainOptions struct {
	query   explain.Query
	client  clientOptions
	output  string // text or json
	with    string // file of manifests; "" = none
	head    string // file of a request head; "" = none
	diff    bool
	request *string // nil = not asked for
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
		{Flag: "output", Short: "o", Def: "text", Value: "FORMAT", Set: option.Words(&e.output, "text", "json"), Help: "text or json"},
		{Flag: "method", Value: "METHOD", Set: option.Into(&e.query.Method, option.ParseText), Help: "method of the request; the default is GET"},
		{Flag: "header", Value: "FIELD", Repeats: true, Set: add(&e.query.Header), Help: "'Name: value', a field of the request; may be given several times"},
		{Flag: "cookie", Value: "PAIR", Repeats: true, Set: add(&e.query.Cookies), Help: "NAME=VALUE, a cookie of the request; may be given several times"},
		{Flag: "client", Value: "ADDRESS", Set: option.Into(&e.query.Client, parseAddress), Help: "address of the client; the default is 127.0.0.1"},
		{Flag: "server-name", Value: "NAME", Set: option.Into(&e.query.ServerName, option.ParseText), Help: "server name in the client's TLS, if it is not the host of the URL"},
		{Flag: "http2", IsBool: true, Set: option.Into(&e.query.HTTP2, option.ParseBool), Help: "the client speaks HTTP/2"},
		{Flag: "head", Value: "FILE", Set: func(s string) error {
			e.head = s
			return nil
		}, Help: "a request head as it is sent, - for standard input, instead of a URL; with --http2 a line 'name: value' for each field"},
		{Flag: "secure", IsBool: true, Set: option.Into(&e.query.Secure, option.ParseBool), Help: "the head of --head comes over TLS"},
		{Flag: "with", Value: "FILE", Set: option.Into(&e.with, option.ParseText), Help: "manifests that are not there yet, - for standard input: what would they change?"},
		{Flag: "diff", IsBool: true, Set: option.Into(&e.diff, option.ParseBool), Help: "with --with: what would they change for all hosts and paths?"},
		{Flag: "request", Value: "ID", Set: func(s string) error {
			e.request = &s
			return nil
		}, Help: "a past request, by its number, unique id or trace id; empty lists those that are remembered"},
	}...)
}

func parseAddress(s string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		err = errors.New("allowed: an address of IPv4 or IPv6")
	}
	return addr, err
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
	if err := e.check(urls); err != nil {
		return err
	}
	var manifest []byte
	if e.with != "" {
		if manifest, err = readInput("change", e.with, stdin); err != nil {
			return err
		}
	}
	if e.head != "" {
		if e.query.Head, err = readInput("request head", e.head, stdin); err != nil {
			return err
		}
	}
	if o.manifests == "" && o.kubeconfig == "" {
		return e.ask(ctx, o, manifest, stdout)
	}
	if e.request != nil {
		return option.Usagef("--request asks a running router; --manifests and --kubeconfig have no past requests")
	}
	return e.explain(ctx, o, env, manifest, stdout)
}

// check completes what is asked.
func (e *explainOptions) check(urls []string) error {
	switch {
	case e.request != nil || e.diff:
		if len(urls) > 0 {
			return option.Usagef("--request and --diff take no URL, and %q is given", urls[0])
		}
	case e.head != "":
		if len(urls) > 0 {
			return option.Usagef("--head takes the place of a URL, and %q is given", urls[0])
		}
	case len(urls) != 1:
		return option.Usagef("explain needs one URL, and %d are given; usage: turnout explain URL", len(urls))
	default:
		e.query.URL = urls[0]
	}
	if e.diff && e.with == "" {
		return option.Usagef("--diff needs --with FILE")
	}
	return nil
}

// readInput reads a file, "-" = standard input.
func readInput(what, name string, stdin io.Reader) (text []byte, err error) {
	if name == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the %s: %w", what, err)
	}
	return text, nil
}

// ask asks a running router.
func (e *explainOptions) ask(ctx context.Context, o *options, manifest []byte, stdout io.Writer) error {
	values := e.query.Values()
	if e.diff {
		values.Set("diff", "true")
	}
	if e.request != nil {
		values.Set("request", *e.request)
	}
	values.Set("o", e.output)
	client, err := e.client.client(&o.adminPort)
	if err != nil {
		return err
	}
	return client.Ask(ctx, "/explain", values, manifest, stdout)
}

// answer is what explain prints.
type answer interface{ Text(w io.Writer) error }

// explain makes a table of a folder or of a cluster's objects and asks that.
func (e *explainOptions) explain(ctx context.Context, o *options, env option.Environment, manifest []byte, stdout io.Writer) error {
	o.useCluster(env)
	w, err := loadWorld(ctx, o)
	if err != nil {
		return err
	}
	x, err := explain.New(explain.Config{Deciding: o.server.Deciding, Claimants: w.ofHost.claimants(w.control)})
	if err != nil {
		return err
	}
	var a answer
	if manifest == nil {
		a, err = x.Explain(w.table, e.query)
	} else {
		var after *world
		if after, err = w.changed(manifest); err != nil {
			return err
		}
		to := &explain.World{Table: after.table, Claimants: after.ofHost.claimants(after.control)}
		if e.diff {
			a, err = x.Differences(w.table, to)
		} else {
			a, err = x.With(w.table, to, e.query)
		}
	}
	if err != nil {
		return err
	}
	if e.output == "json" {
		out := json.NewEncoder(stdout)
		out.SetIndent("", " ")
		out.SetEscapeHTML(false)
		err = out.Encode(a)
	} else {
		err = a.Text(stdout)
	}
	if err != nil {
		return fmt.Errorf("cannot print the answer: %w", err)
	}
	return nil
}

// explanations answers /explain.
func (r *router) explanations() (*explain.Handler, error) {
	x, err := explain.New(explain.Config{Deciding: r.data.Deciding, Claimants: r.ofHost.claimants(r.control), Recent: r.recent.Failed})
	if err != nil {
		return nil, err
	}
	return explain.NewHandler(explain.HandlerConfig{
		Explainer: x, Table: r.store.Load, Stories: r.recent,
		Change: func(ctx context.Context, manifest []byte) (*explain.World, error) {
			control, table, err := r.control.Preview(ctx, manifest)
			if err != nil {
				return nil, err
			}
			return &explain.World{Table: table, Claimants: r.ofHost.claimants(control)}, nil
		},
	}), nil
}
