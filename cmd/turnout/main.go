// Command turnout is a router for OpenShift Route objects.
//
//	turnout run                    serve the cluster this pod runs in
//	turnout run --kubeconfig FILE  serve a cluster from outside
//	turnout run --manifests DIR    serve a folder of manifests
//	turnout demo                   everything in one process, with examples
//	turnout validate DIR|FILE...   check manifests without serving them
//	turnout explain URL            say what becomes of a request, and why
//
// This package wires the packages together and reads flags and environment. It is
// the only one that does either; what the packages do is in their own packages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"turnout/internal/option"
)

func main() {
	// Go prints no tracebacks in a program that gets capabilities from its file, as it
	// does in the image. This brings back those of panics.
	debug.SetTraceback("single")
	os.Exit(command(context.Background(), os.Args, os.LookupEnv, os.Stdout, os.Stderr))
}

// command runs the subcommand that argv names and returns the exit status: 0, 1
// for a failure, 2 for a mistake in the command line or environment.
func command(ctx context.Context, argv []string, env option.Environment, stdout, stderr io.Writer) int {
	sub, args := "run", argv[1:]
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		sub, args = args[0], args[1:]
	}
	var err error
	switch sub {
	case "run":
		err = runRouter(ctx, args, env, stdout, stderr)
	case "demo":
		err = runDemo(ctx, args, env, stdout, stderr)
	case "validate":
		err = runValidate(args, env, stdout)
	case "explain":
		err = runExplain(ctx, args, env, os.Stdin, stdout)
	case "version":
		_, err = fmt.Fprintln(stdout, "turnout", version())
	case "help":
		err = flag.ErrHelp
	default:
		err = option.Usagef("unknown command %q; allowed: run, demo, validate, explain, version, help", sub)
	}
	return exitStatus(err, filepath.Base(argv[0]), stdout, stderr)
}

// exitStatus prints what err asks for, on one line, and returns the status.
func exitStatus(err error, program string, stdout, stderr io.Writer) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		usage(stdout, program)
		return 0
	}
	fmt.Fprintf(stderr, "%s: %s\n", program, strings.ReplaceAll(err.Error(), "\n", "; "))
	if errors.As(err, &option.UsageError{}) {
		return 2
	}
	return 1
}
