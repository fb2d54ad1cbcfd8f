package main

import (
	"slices"

	"turnout/internal/cli"
	"turnout/internal/convert"
	"turnout/internal/explain"
	"turnout/internal/nameserver"
	"turnout/internal/offline"
	"turnout/internal/option"
	"turnout/internal/option/kubectl"
	"turnout/internal/schedule"
	"turnout/internal/shards"
	"turnout/internal/togateway"
)

// commands are the subcommands as help and completion have them: each with the flags that are of use to it. What it takes and has no use
// for, because a router's whole command line and environment may be handed to it, is not there.
func commands(name string) *cli.Program {
	all := settings(&options{})
	return &cli.Program{
		Name: name, About: "serves OpenShift Route objects.",
		Notes: "A flag wins over the environment variable in brackets; an empty variable is the\nsame as an unset one. TIME is a whole number with us, ms, s, m, h or d.\n",
		Commands: []cli.Command{
			{Name: "run", About: "serve the cluster this pod runs in, a folder (--manifests) or a cluster (--kubeconfig); the default", Table: all},
			{Name: "demo", About: "router, examples and small backends in one process", Table: without(all, append(sources(), "Objects of a cluster")...)},
			{Name: "dns", About: "answer for the domains of Routers, as an authoritative name server; see docs/dns.md", Table: new(nameserver.Options).Table()},
			{Name: "scheduler", About: "bind the Routes of a cluster to Routers; see docs/sharding.md", Table: new(schedule.Options).Table()},
			{Name: "routers", About: "list the Routers of a cluster, what they have and what is wrong with them", Table: new(shards.Options).Table("routers")},
			{Name: "bindings", About: "list which Router serves which Route, by which name, and who waits and why", Table: new(shards.Options).Table("bindings")},
			{Name: "ingress-to-route", About: "make Routes of the Ingresses of a cluster, as OpenShift does; see docs/ingress.md", Table: new(convert.Options).Table()},
			{Name: "validate", Args: "DIR|FILE...", About: "check manifests (- for the standard input), or the objects of a cluster, without serving them", Paths: true,
				Table: append(new(offline.ValidateOptions).Table(), judging(all)...)},
			{Name: "convert", Args: "DIR|FILE...", About: "make objects of the Gateway API of Routes and Ingresses, and say what has no equal; see docs/gateway-api.md", Paths: true,
				Table: append(new(togateway.Options).Table(), judging(all)...)},
			{Name: "explain", Args: "URL", About: "say what would become of a request, and why; see docs/explain.md",
				Table: slices.Concat(clientSettings(&clientOptions{}), new(explain.Question).Table(), loginSettings(&options{}), judging(all, "manifests"))},
			{Name: "routes", Args: "[WORD...]", About: "list the routes of a running router that have all words in their names, hosts or states",
				Table: append(inspectSettings("routes", &inspectOptions{}), loginSettings(&options{})...)},
			{Name: "problems", About: "say what is wrong in a running router", Table: append(inspectSettings("problems", &inspectOptions{}), loginSettings(&options{})...)},
			{Name: "top", Args: "[WORD...]", About: "show a running router's routes live: rate, errors, latency, sessions, queue, endpoints",
				Notes: "P99 is there for the busiest routes, as many as --metrics-top-routes of the router says, and for those of --metrics-routes; others show -. MEAN is there for all.\n",
				Table: append(inspectSettings("top", &inspectOptions{}), loginSettings(&options{})...)},
			{Name: "completion", Args: "SHELL", About: "print completion for bash, zsh or fish: source <(" + name + " completion bash)", Words: cli.Shells()},
			{Name: "version", About: "print the version; also --version"},
			{Name: "help", Args: "[COMMAND]", About: "print this text, or the flags of a command"},
		},
	}
}

func sources() []string { return []string{"manifests", "backend", kubectl.Group} }

// without is a table without some groups and flags.
func without(table []option.Option, names ...string) []option.Option {
	return slices.DeleteFunc(slices.Clone(table), func(o option.Option) bool { return slices.Contains(names, o.Group) || slices.Contains(names, o.Flag) })
}

// judging are the options that decide what becomes of objects, and others.
func judging(table []option.Option, besides ...string) []option.Option {
	return slices.DeleteFunc(slices.Clone(table), func(o option.Option) bool {
		if o.Flag == "router" { // of them it is the router that is asked
			return true
		}
		if slices.Contains(besides, o.Flag) {
			return false
		}
		switch o.Flag {
		case "ingress-controller", "ingress", "ingress-class-controller", "default-destination-ca-path", "disable-http2", "default-connect-timeout", "default-server-timeout", "default-tunnel-timeout", "backend-check-interval":
			return false
		}
		return o.Group != "Admission" && o.Group != "Serving" && o.Group != "Objects of a cluster" && o.Group != kubectl.Group || o.Flag == "update-status" || o.Flag == "clear-stale-status" || o.Flag == "resync-interval"
	})
}
