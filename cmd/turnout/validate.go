package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"turnout/controller"
	"turnout/controller/source/folder"
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
	config := o.controllerOptions()
	if o.destinationCAPath != "" {
		if config.DefaultDestinationCA, err = os.ReadFile(o.destinationCAPath); err != nil {
			return fmt.Errorf("cannot load default destination CA: %w", err)
		}
	}
	content, err := contentOf(ctx, o, paths, stdin)
	if err != nil {
		return err
	}
	report, err := controller.Validate(config, content)
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

// contentOf is what is to be validated: a cluster's objects, or manifests, "-" for those on the standard input.
func contentOf(ctx context.Context, o *options, paths []string, stdin io.Reader) (*folder.Content, error) {
	switch {
	case o.cluster && len(paths) > 0:
		return nil, option.Usagef("validate reads either manifests or the cluster of --kubeconfig, and both are given")
	case o.cluster:
		w := &world{config: o.controllerOptions()}
		if err := w.readCluster(ctx, o); err != nil {
			return nil, err
		}
		return &folder.Content{Events: w.events}, nil
	case len(paths) == 0:
		return nil, option.Usagef("validate needs a folder or file, or --kubeconfig; usage: turnout validate DIR|FILE...")
	}
	files := slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return path == "-" })
	if len(files) == len(paths) {
		return folder.Load(files...)
	}
	text, err := io.ReadAll(stdin)
	if err != nil {
		return nil, fmt.Errorf("cannot read the standard input: %w", err)
	}
	return folder.LoadWith("stdin", text, files...)
}
