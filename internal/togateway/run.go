package togateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"turnout/controller"
	"turnout/controller/gateway/convert"
	"turnout/internal/offline"
)

// ErrLeftOut is the outcome of Run when not all is converted; the report says what.
var ErrLeftOut = errors.New("not everything is converted")

// ErrNoEqual is the same with --strict when something of what is converted is lost.
var ErrNoEqual = errors.New("something has no equal in the Gateway API")

// Run reads the objects of cfg, writes to out what they become, and the report to diagnostics or to the file of the options. The error is ErrLeftOut, ErrNoEqual, or about
// what cannot be read or written.
func Run(ctx context.Context, cfg offline.Config, o *Options, out, diagnostics io.Writer) error {
	if cfg.Cluster != nil {
		reader := *cfg.Cluster
		reader.Ingresses = true
		reader.Conversion = !cfg.Options.SelectNamespaces // objects whole, but no namespaces
		cfg.Cluster, cfg.Options.Ingress = &reader, true
	}
	content, err := cfg.Objects(ctx)
	if err != nil {
		return err
	}
	validated, in, err := controller.Convertible(cfg.Options, content, o.class)
	if err != nil {
		return err
	}
	options := o.convert
	options.DestinationCA = cfg.Options.DefaultDestinationCA
	made := convert.Convert(*in, options)
	write := made.PrintYAML
	if o.output == "json" {
		write = made.PrintJSON
	}
	if err := write(out); err != nil {
		return fmt.Errorf("cannot print the objects: %w", err)
	}
	r := reportOf(validated, made, o)
	if err := r.write(o, diagnostics); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	has := func(severity convert.Severity) bool {
		return slices.ContainsFunc(made.Notes, func(n convert.Note) bool { return n.Severity == severity })
	}
	switch {
	case validated.Failed() || has(convert.LeftOut):
		return ErrLeftOut
	case o.strict && has(convert.NoEqual):
		return ErrNoEqual
	}
	return nil
}

// report is what is said of a conversion.
type report struct {
	Made     []becomes `json:"made"`
	Findings []finding `json:"findings"`
}

// becomes says what an object became.
type becomes struct {
	Object string   `json:"object"`
	Into   []string `json:"into"`
}

// finding is one thing that is to be known.
type finding struct {
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Severity string `json:"severity"`         // "error", "warning", "rejected", or that of a note
	Object   string `json:"object,omitempty"` // "" = all objects
	Field    string `json:"field,omitempty"`
	Text     string `json:"text"`
	line     string // for people
}

func reportOf(validated *controller.Report, made *convert.Result, o *Options) *report {
	r := &report{Made: []becomes{}, Findings: []finding{}}
	for _, f := range validated.Findings(o.Warnings) {
		if f.Severity == "note" {
			continue // of what is served: the notes of the conversion say what becomes of it
		}
		object := f.Object
		if f.Route != "" {
			object = "Route " + f.Namespace + "/" + f.Route
		}
		r.Findings = append(r.Findings, finding{File: f.File, Line: f.Line, Severity: f.Severity, Object: object, Field: f.Reason, Text: f.Text, line: f.String()})
	}
	for i := range made.Notes {
		n := &made.Notes[i]
		f := finding{Severity: n.Severity.String(), Field: n.Field, Text: n.Text, line: n.String()}
		if n.Of != nil {
			f.Object = n.Of.String()
			if f.File, f.Line = validated.Place(n.Of.Origin, f.Object, n.Field); f.File != "" {
				f.line = fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.line)
			}
		}
		r.Findings = append(r.Findings, f)
	}
	for i := range made.Made {
		m := &made.Made[i]
		r.Made = append(r.Made, becomes{m.Of.String(), m.Into})
	}
	return r
}

// write writes the report where the options want it.
func (r *report) write(o *Options, diagnostics io.Writer) error {
	if o.report == "" {
		_, err := io.WriteString(diagnostics, r.text(o.quiet))
		return err //nolint:wrapcheck // of the writer that the caller gave
	}
	text := []byte(r.text(o.quiet))
	if strings.HasSuffix(o.report, ".json") {
		var err error
		if text, err = json.MarshalIndent(r, "", " "); err != nil {
			return err //nolint:wrapcheck // plain data
		}
		text = append(text, '\n')
	}
	return os.WriteFile(o.report, text, 0o644) //nolint:wrapcheck // names the file
}

// text is the report for people.
func (r *report) text(quiet bool) string {
	var b strings.Builder
	counts := make(map[string]int)
	for i := range r.Findings {
		b.WriteString(r.Findings[i].line + "\n")
		counts[r.Findings[i].Severity]++
	}
	if quiet {
		return b.String()
	}
	for _, m := range r.Made {
		fmt.Fprintf(&b, "ok: %s: %s\n", m.Object, strings.Join(m.Into, ", "))
	}
	fmt.Fprintf(&b, "%d objects converted; %d have no equal in some respect, %d differ, %d are left out or rejected\n",
		len(r.Made), counts[convert.NoEqual.String()], counts[convert.Differs.String()], counts[convert.LeftOut.String()]+counts["rejected"]+counts["error"])
	return b.String()
}
