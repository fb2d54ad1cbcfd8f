package main

import (
	"context"
	"io"

	"turnout/internal/offline"
	"turnout/internal/option"
	"turnout/internal/togateway"
)

// runOnce is the subcommands validate and convert: flags, folders and files in any order.
func runOnce(ctx context.Context, sub string, args []string, env option.Environment, stdin io.Reader, stdout, stderr io.Writer) error {
	v, c := &offline.ValidateOptions{}, &togateway.Options{}
	own := v.Table()
	if sub == "convert" {
		own = c.Table()
	}
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
		return option.Usagef("%s reads either manifests or the cluster of --kubeconfig, and both are given", sub)
	case !o.cluster && len(paths) == 0:
		return option.Usagef("%[1]s needs a folder or file, or --kubeconfig; usage: turnout %[1]s DIR|FILE...", sub)
	}
	_, cfg, warnings, ignored, err := o.once(ctx, offline.Config{Manifests: paths, Stdin: stdin}, parse)
	if err != nil {
		return err
	}
	v.Warnings = append(warnings, ignored...)
	if c.Warnings = v.Warnings; sub == "convert" {
		return togateway.Run(ctx, cfg, c, stdout, stderr)
	}
	return offline.Validate(ctx, cfg, *v, stdout)
}
