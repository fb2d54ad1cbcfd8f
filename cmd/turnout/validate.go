package main

import (
	"context"
	"io"

	"turnout/internal/offline"
	"turnout/internal/option"
)

// validateOptions are those of the validate subcommand besides the router's.
type validateOptions struct {
	offline.ValidateOptions

	output string // text or json
}

func validateSettings(v *validateOptions) []option.Option {
	return []option.Option{
		{Flag: "output", Short: "o", Def: "text", Value: "FORMAT", Set: option.Words(&v.output, "text", "json"), Help: "text or json"},
		{Flag: "strict", IsBool: true, Set: option.Into(&v.Strict, option.ParseBool), Help: "warnings and notes fail, too"},
		{Flag: "quiet", Short: "q", IsBool: true, Set: option.Into(&v.Quiet, option.ParseBool), Help: "say only what is wrong"},
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
	o.cluster = o.reach.Asked()
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
	v.JSON, v.Warnings = v.output == "json", warnings
	return offline.Validate(ctx, cfg, v.ValidateOptions, stdout)
}
