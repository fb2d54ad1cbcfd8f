package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"turnout/controller"
	"turnout/internal/option"
)

// errInvalid is the outcome of validate when something was found; the report says
// what.
var errInvalid = errors.New("the manifests have errors")

// runValidate is the validate subcommand: flags first, then folders and files.
func runValidate(args []string, env option.Environment, stdout io.Writer) error {
	flags, paths := option.SplitPaths(settings(&options{}), args)
	o, warnings, err := parseOptions(flags, env)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return option.Usagef("validate needs a folder or file; usage: turnout validate DIR|FILE...")
	}
	config := o.controllerOptions()
	if o.destinationCAPath != "" {
		if config.DefaultDestinationCA, err = os.ReadFile(o.destinationCAPath); err != nil {
			return fmt.Errorf("cannot load default destination CA: %w", err)
		}
	}
	report, err := controller.Validate(config, paths...)
	if err != nil {
		return err
	}
	if err := report.Print(stdout, warnings); err != nil {
		return fmt.Errorf("cannot print the report: %w", err)
	}
	if report.Failed() {
		return errInvalid
	}
	return nil
}
