// Command turnout is a router for OpenShift Route objects.
//
//	turnout run                    serve the cluster this pod runs in
//	turnout run --kubeconfig FILE  serve a cluster from outside
//	turnout run --manifests DIR    serve a folder of manifests
//	turnout demo                   everything in one process, with examples
//	turnout validate DIR|FILE...   check manifests without serving them
//	turnout help                   the others
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

	"turnout/internal/cli"
	"turnout/internal/convert"
	"turnout/internal/elected"
	"turnout/internal/nameserver"
	"turnout/internal/option"
	"turnout/internal/schedule"
	"turnout/internal/shards"
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
	all := commands(filepath.Base(argv[0]))
	sub, args := "run", argv[1:]
	switch {
	case len(args) == 0:
	case !strings.HasPrefix(args[0], "-"):
		sub, args = args[0], args[1:]
	case args[0] == "--version" || args[0] == "-version":
		sub = "version"
	case isHelp(args[0]):
		sub, args = "help", nil
	}
	c, err := all.Command(sub)
	if err == nil {
		err = dispatch(ctx, all, sub, args, env, stdout, stderr)
	}
	if errors.Is(err, flag.ErrHelp) {
		all.Help(stdout, c)
		return 0
	}
	return exitStatus(err, all.Name, stderr)
}

// dispatch runs a command that exists.
func dispatch(ctx context.Context, all *cli.Program, sub string, args []string, env option.Environment, stdout, stderr io.Writer) (err error) {
	switch sub {
	case "run":
		return runRouter(ctx, args, env, stdout, stderr)
	case "demo":
		return runDemo(ctx, args, env, stdout, stderr)
	case "validate", "convert":
		return runOnce(ctx, sub, args, env, os.Stdin, stdout, stderr)
	case "explain":
		return runExplain(ctx, args, env, os.Stdin, stdout)
	case "dns":
		return nameserver.Run(ctx, args, env, userAgent(), stderr, func() { os.Exit(1) })
	case "scheduler", "ingress-to-route":
		work := map[string]func(context.Context, elected.Call) error{"scheduler": schedule.Run, "ingress-to-route": convert.Run}[sub]
		return work(ctx, elected.Call{Args: args, Env: env, Agent: userAgent(), Stderr: stderr, Exit: func() { os.Exit(1) }})
	case "routers", "bindings":
		return shards.Run(ctx, sub, args, env, userAgent(), stdout)
	case "routes", "problems", "top":
		return runInspect(ctx, sub, args, env, stdout)
	case "version":
		_, err = fmt.Fprintln(stdout, "turnout", version())
		return err
	}
	if len(args) > 0 && isHelp(args[0]) {
		return flag.ErrHelp
	}
	return all.Tell(stdout, sub, args)
}

func isHelp(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" }

// exitStatus prints err on one line, and returns the status.
func exitStatus(err error, program string, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "%s: %s\n", program, strings.ReplaceAll(err.Error(), "\n", "; "))
	if errors.As(err, &option.UsageError{}) {
		return 2
	}
	return 1
}
