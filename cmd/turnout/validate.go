package main

import (
	"context"
	"io"

	"turnout/internal/offline"
	"turnout/internal/option"
)

// runValidate is the validate subcommand: flags, folders and files in any order.
func runValidate(ctx context.Context, args []string, env option.Environment, stdin io.Reader, stdout io.Writer) error {
	v := &offline.ValidateOptions{}
	own := v.Table()
	flags, paths := option.SplitPaths(append(settings(&options{}), own...), args)
	mine, others := option.Split(own, flags)
	if _, _, err := option.Parse(own, nil, mine, env); err != nil {
		return err
	}
	parse := reading(others, env, func(o *options) { o.cluster = o.reach.Asked() })
	o, _, err := parse(nil)
	switch {
	case err != nil:
		return err
	case o.cluster && len(paths) > 0:
		return option.Usagef("validate reads either manifests or the cluster of --kubeconfig, and both are given")
	case !o.cluster && len(paths) == 0:
		return option.Usagef("validate needs a folder or file, or --kubeconfig; usage: turnout validate DIR|FILE...")
	}
	_, cfg, warnings, ignored, err := o.once(ctx, offline.Config{Manifests: paths, Stdin: stdin}, parse)
	if err != nil {
		return err
	}
	v.Warnings = append(warnings, ignored...)
	return offline.Validate(ctx, cfg, *v, stdout)
}
