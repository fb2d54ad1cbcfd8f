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

	Manifest []byte // the text of With, set by Complete; nil = none
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
	x, err := New(Config{Deciding: deciding, Claimants: Claims(before.Control, before.OfHost)})
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
	after := &World{Table: changed.Table, Claimants: Claims(changed.Control, changed.OfHost)}
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
