package offline

import (
	"context"
	"errors"
	"fmt"
	"io"

	"turnout/controller"
	"turnout/internal/option"
)

// ErrInvalid is the outcome of Validate when something was found; the report says
// what.
var ErrInvalid = errors.New("the manifests have errors")

// ErrNotes is the same of ValidateOptions.Strict when all of it is warnings and notes.
var ErrNotes = errors.New("the manifests have warnings or notes")

// ValidateOptions say what Validate writes and what counts. The zero value writes text.
type ValidateOptions struct {
	Output   string   // text or json; "" = text
	Strict   bool     // warnings and notes fail, too
	Quiet    bool     // write only what is wrong
	Warnings []string // about flags, variables and the IngressController
}

// Table are the flags of the command.
func (v *ValidateOptions) Table() []option.Option {
	return []option.Option{
		{Flag: "output", Short: "o", Def: "text", Value: "FORMAT", Set: option.Words(&v.Output, "text", "json"), Help: "text or json"},
		{Flag: "strict", IsBool: true, Set: option.Into(&v.Strict, option.ParseBool), Help: "warnings and notes fail, too"},
		{Flag: "quiet", Short: "q", IsBool: true, Set: option.Into(&v.Quiet, option.ParseBool), Help: "say only what is wrong"},
	}
}

// Validate reads the objects and writes what a router would make of them. The error is ErrInvalid, ErrNotes, or about what cannot be read.
func Validate(ctx context.Context, cfg Config, v ValidateOptions, out io.Writer) error {
	content, _, err := read(ctx, &cfg)
	if err != nil {
		return err
	}
	report, err := controller.Validate(cfg.Options, content)
	if err != nil {
		return err
	}
	write := report.Print
	if v.Output == "json" {
		write = report.PrintJSON
	}
	if err := write(out, v.Warnings, v.Quiet); err != nil {
		return fmt.Errorf("cannot print the report: %w", err)
	}
	switch {
	case report.Failed():
		return ErrInvalid
	case v.Strict && len(report.Findings(v.Warnings)) > 0:
		return ErrNotes
	}
	return nil
}
