package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"

	"turnout/internal/offline"
	"turnout/internal/option"
)

// Question is what the command explain asks.
type Question struct {
	Query   Query
	Head    string  // file of the request head, "-" = standard input; "" = Query has a URL
	With    string  // file of objects that are not there yet: what would they change? As Head; "" = not asked
	Diff    bool    // ask that of all hosts and paths; Query is not looked at
	Request *string // ask for a past request, "" = for a list of them; nil = not asked
	Output  string  // text or json

	Manifest []byte   // the text of With, set by Complete; nil = none
	Ignored  []string // for Offline: what of the options' sources has no effect
}

// Table are the flags of the command.
func (q *Question) Table() []option.Option {
	add := func(to *[]string) func(string) error {
		return func(s string) error {
			*to = append(*to, s)
			return nil
		}
	}
	return []option.Option{
		{Flag: "output", Short: "o", Def: "text", Value: "FORMAT", Set: option.Words(&q.Output, "text", "json"), Help: "text or json"},
		{Flag: "method", Value: "METHOD", Set: option.Into(&q.Query.Method, option.ParseText), Help: "method of the request; the default is GET"},
		{Flag: "header", Value: "FIELD", Repeats: true, Set: add(&q.Query.Header), Help: "'Name: value', a field of the request; may be given several times"},
		{Flag: "cookie", Value: "PAIR", Repeats: true, Set: add(&q.Query.Cookies), Help: "NAME=VALUE, a cookie of the request; may be given several times"},
		{Flag: "client", Value: "ADDRESS", Set: option.Into(&q.Query.Client, option.ParseAddr), Help: "address of the client; the default is 127.0.0.1"},
		{Flag: "server-name", Value: "NAME", Set: option.Into(&q.Query.ServerName, option.ParseText), Help: "server name in the client's TLS, if it is not the host of the URL"},
		{Flag: "gateway", Value: "NAMESPACE/NAME[:PORT]", Set: option.Into(&q.Query.Gateway, option.ParseText), Help: "Gateway whose port the client connects to; the default is one with the port of the URL where the host is served"},
		{Flag: "http2", IsBool: true, Set: option.Into(&q.Query.HTTP2, option.ParseBool), Help: "the client speaks HTTP/2"},
		{Flag: "head", Value: "FILE", Set: option.Into(&q.Head, option.ParseText), Help: "a request head as it is sent, - for standard input, instead of a URL; with --http2 a line 'name: value' for each field"},
		{Flag: "secure", IsBool: true, Set: option.Into(&q.Query.Secure, option.ParseBool), Help: "the head of --head comes over TLS"},
		{Flag: "with", Value: "FILE", Set: option.Into(&q.With, option.ParseText), Help: "manifests that are not there yet, - for standard input: what would they change?"},
		{Flag: "diff", IsBool: true, Set: option.Into(&q.Diff, option.ParseBool), Help: "with --with: what would they change for all hosts and paths?"},
		{Flag: "request", Value: "ID", Set: func(s string) error {
			q.Request = &s
			return nil
		}, Help: "a past request, by its number, unique id or trace id; empty lists those that are remembered"},
	}
}

// Complete checks what is asked, gives Query the one URL of the command line and reads the files.
func (q *Question) Complete(urls []string, stdin io.Reader) (err error) {
	switch {
	case q.Request != nil || q.Diff:
		if len(urls) > 0 {
			return option.Usagef("--request and --diff take no URL, and %q is given", urls[0])
		}
	case q.Head != "":
		if len(urls) > 0 {
			return option.Usagef("--head takes the place of a URL, and %q is given", urls[0])
		}
	case len(urls) != 1:
		return option.Usagef("explain needs one URL, and %d are given; usage: turnout explain URL", len(urls))
	default:
		q.Query.URL = urls[0]
	}
	if q.Diff && q.With == "" {
		return option.Usagef("--diff needs --with FILE")
	}
	if q.With != "" {
		if q.Manifest, err = readInput("change", q.With, stdin); err != nil {
			return err
		}
	}
	if q.Head != "" {
		q.Query.Head, err = readInput("request head", q.Head, stdin)
	}
	return err
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

// Values are the parameters of /explain.
func (q *Question) Values() url.Values {
	values := q.Query.Values()
	if q.Diff {
		values.Set("diff", "true")
	}
	if q.Request != nil {
		values.Set("request", *q.Request)
	}
	values.Set("o", q.Output)
	return values
}

// Offline writes the answer that a router of the objects of cfg would give. deciding is Config.Deciding.
func (q *Question) Offline(ctx context.Context, cfg offline.Config, deciding func() Deciding, out io.Writer) error {
	if q.Request != nil {
		return option.Usagef("--request asks a running router; --manifests and --kubeconfig have no past requests")
	}
	before, err := offline.Read(ctx, cfg)
	if err != nil {
		return err
	}
	x, err := New(Config{Ignored: q.Ignored, Deciding: deciding, Claimants: Claims(before.Control, before.OfHost), Settings: Settings(before.Control), Gateways: before.Control})
	if err != nil {
		return err
	}
	a, err := q.answer(x, before)
	if err != nil {
		return err
	}
	if q.Output == "json" {
		err = encode(out, a)
	} else {
		err = a.Text(out)
	}
	if err != nil {
		return fmt.Errorf("cannot print the answer: %w", err)
	}
	return nil
}

func (q *Question) answer(x *Explainer, before *offline.World) (texter, error) {
	if q.Manifest == nil {
		return x.Explain(before.Table, q.Query)
	}
	changed, err := before.Changed(q.Manifest)
	if err != nil {
		return nil, err
	}
	after := &World{Table: changed.Table, Claimants: Claims(changed.Control, changed.OfHost), Settings: Settings(changed.Control), Gateways: changed.Control}
	if q.Diff {
		return x.Differences(before.Table, after)
	}
	return x.With(before.Table, after, q.Query)
}

// encode writes an answer as JSON.
func encode(w io.Writer, a texter) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(a)
}
