package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"turnout/controller"
	"turnout/internal/offline"
	"turnout/internal/option"
)

// errInvalid is the outcome of validate when something was found; the report says
// what.
var errInvalid = errors.New("the manifests have errors")

// errNotes is the same of validate --strict when all of it is warnings and notes.
var errNotes = errors.New("the manifests have warnings or notes")

// validateOptions are those of the validate subcommand besides the router's.
type validateOptions struct {
	output        string // text or json
	strict, quiet bool
}

func validateSettings(v *validateOptions) []option.Option {
	return []option.Option{
		{Flag: "output", Short: "o", Def: "text", Value: "FORMAT", Set: option.Words(&v.output, "text", "json"), Help: "text or json"},
		{Flag: "strict", IsBool: true, Set: option.Into(&v.strict, option.ParseBool), Help: "warnings and notes fail, too"},
		{Flag: "quiet", Short: "q", IsBool: true, Set: option.Into(&v.quiet, option.ParseBool), Help: "say only what is wrong"},
	}
}

// runValidate is the validate subcommand: flags, folders and files in any order.
func runValidate(ctx context.Context, args []string, env option.Environment, stdin io.Reader, stdout io.Writer) error {
	v := &validateOptions{}
	own := validateSettings(v)
	flags, paths := option.SplitPaths(append(settings(&options{}), own...), args)
	mine, others := option.Split(own, flags)
	if _, _, err := option.Parse(own, nil, mine, env); err != nil {
		return err
	}
	o, warnings, err := parseOptions(others, env)
	if err != nil {
		return err
	}
	o.cluster = o.kubeconfig != ""
	cfg, err := o.offlineConfig()
	if err != nil {
		return err
	}
	switch {
	case o.cluster && len(paths) > 0:
		return option.Usagef("validate reads either manifests or the cluster of --kubeconfig, and both are given")
	case !o.cluster && len(paths) == 0:
		return option.Usagef("validate needs a folder or file, or --kubeconfig; usage: turnout validate DIR|FILE...")
	}
	cfg.Manifests, cfg.Stdin = paths, stdin
	content, err := offline.Objects(ctx, cfg)
	if err != nil {
		return err
	}
	report, err := controller.Validate(cfg.Options, content)
	if err != nil {
		return err
	}
	printed := report.Print
	if v.output == "json" {
		printed = report.PrintJSON
	}
	if err := printed(stdout, warnings, v.quiet); err != nil {
		return fmt.Errorf("cannot print the report: %w", err)
	}
	switch {
	case report.Failed():
		return errInvalid
	case v.strict && len(report.Findings(warnings)) > 0:
		return errNotes
	}
	return nil
}
