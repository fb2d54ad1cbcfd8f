package offline

import (
	"context"
	"errors"
	"fmt"
	"io"

	"turnout/controller"
)

// ErrInvalid is the outcome of Validate when something was found; the report says
// what.
var ErrInvalid = errors.New("the manifests have errors")

// ErrNotes is the same of ValidateOptions.Strict when all of it is warnings and notes.
var ErrNotes = errors.New("the manifests have warnings or notes")

// ValidateOptions say what Validate writes and what counts. The zero value writes text.
type ValidateOptions struct {
	JSON     bool
	Strict   bool     // warnings and notes fail, too
	Quiet    bool     // write only what is wrong
	Warnings []string // about flags and variables
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
	if v.JSON {
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
