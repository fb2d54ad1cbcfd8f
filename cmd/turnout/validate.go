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
	if err := printReport(stdout, warnings, report); err != nil {
		return fmt.Errorf("cannot print the report: %w", err)
	}
	if report.Failed() {
		return errInvalid
	}
	return nil
}

// printReport writes what is wrong first, that of flags and variables before that of manifests, then a line per route,
// then the sums.
func printReport(w io.Writer, warnings []string, report *controller.Report) error {
	p := printer{w: w}
	for _, warning := range warnings {
		p.printf("warning: %s\n", warning)
	}
	for _, problem := range report.Problems {
		p.printf("%s: %s\n", problem.Severity, problem)
	}
	rejected := 0
	for _, r := range report.Routes {
		url := r.Host + r.Path
		if !r.Admitted {
			rejected++
			p.printf("rejected: %s/%s (%s): %s: %s\n", r.Namespace, r.Name, url, r.Reason, r.Message)
			continue
		}
		p.printf("ok: %s/%s (%s) %s, %d servers%s\n", r.Namespace, r.Name, url, r.Termination, r.Servers, asked(r.Check))
		for _, note := range r.Notes {
			p.printf("note: %s/%s: %s\n", r.Namespace, r.Name, note)
		}
	}
	p.printf("%d files, %d objects, %d routes, %d rejected, %d problems\n",
		report.Files, report.Objects, len(report.Routes), rejected, len(report.Problems))
	return p.err
}

// asked tells what checks of servers ask for, "" for those without a request.
func asked(c *controller.CheckReport) string {
	if c == nil || c.Kind != "http" {
		return ""
	}
	return fmt.Sprintf(", checked by GET %s, host %s, statuses %s", c.Path, c.Host, c.Statuses)
}

// printer remembers the first error of many writes.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}
