// Package shards is the commands turnout routers and turnout bindings: what they take, and how they print what the cluster says.
package shards

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"turnout/controller/shard/show"
	"turnout/controller/source/cluster"
	"turnout/internal/option"
	"turnout/internal/option/kubectl"
)

// Options are those of both commands.
type Options struct {
	reach     cluster.Reach
	output    string
	namespace string // of bindings; "": all
	router    string // of bindings; "": all
	waiting   bool   // of bindings: only those that wait
}

// Table are the options of the command of a name, bound to o.
func (o *Options) Table(name string) []option.Option {
	all := []option.Option{{Flag: "output", Short: "o", Def: "text", Value: "FORMAT", Set: option.Words(&o.output, "text", "json"), Help: "text or json"}}
	if name == "bindings" {
		all = append(all,
			option.Option{Flag: "namespace", Short: "n", Value: "NAME", Set: option.Into(&o.namespace, cluster.ParseNamespace), Help: "only those of this namespace"},
			option.Option{Flag: "router", Value: "NAME", Set: option.Into(&o.router, option.ParseText), Help: "only those to this Router"},
			option.Option{Flag: "waiting", IsBool: true, Set: option.Into(&o.waiting, option.ParseBool), Help: "only Routes that wait for a Router"})
	}
	for _, s := range kubectl.Settings(&o.reach) {
		s.Group = kubectl.Group
		all = append(all, s)
	}
	return all
}

// Run is the command of a name. agent is how the program calls itself when it asks an API server.
func Run(ctx context.Context, name string, args []string, env option.Environment, agent string, out io.Writer) error {
	o := new(Options)
	if _, _, err := option.Parse(o.Table(name), nil, args, env); err != nil {
		return err
	}
	reader, err := show.New(&cluster.Config{Reach: o.reach, UserAgent: agent})
	if err != nil {
		return err
	}
	if name == "routers" {
		all, err := reader.Routers(ctx)
		if err != nil {
			return err
		}
		return o.print(out, all, func(w io.Writer) { routers(w, all) })
	}
	all, err := reader.Bindings(ctx, o.namespace)
	if err != nil {
		return err
	}
	chosen := make([]show.Binding, 0, len(all))
	for _, b := range all {
		if (o.router == "" || b.Router == o.router) && (!o.waiting || b.Phase == show.Waiting) {
			chosen = append(chosen, b)
		}
	}
	return o.print(out, chosen, func(w io.Writer) { bindings(w, chosen) })
}

// print writes values as JSON, or as a table.
func (o *Options) print(out io.Writer, values any, table func(io.Writer)) error {
	if o.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(values)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	table(w)
	return w.Flush()
}

func routers(w io.Writer, all []show.Router) {
	fmt.Fprintln(w, "NAME\tDOMAIN\tPHASE\tREADY\tROUTES\tCAPACITY\tMOVING\tREQ/S\tADDRESSES\tPROBLEMS")
	for i := range all {
		r := &all[i]
		capacity := "-"
		if r.Capacity > 0 {
			capacity = strconv.Itoa(int(r.Capacity))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%d\t%d\t%s\t%s\n", r.Name, cmp.Or(r.Domain, "-"), r.Phase, r.Ready, r.Routes, capacity, r.Moving, r.RequestsPerSecond,
			cmp.Or(strings.Join(r.Addresses, ","), "-"), strings.Join(r.Problems, "; "))
	}
}

func bindings(w io.Writer, all []show.Binding) {
	fmt.Fprintln(w, "NAMESPACE\tROUTE\tROUTER\tPHASE\tDNS\tPOINT A DOMAIN OF YOUR OWN TO\tWHY IT WAITS")
	for i := range all {
		b := &all[i]
		target := "-"
		if b.Target != b.DNS {
			target = cmp.Or(b.Target, "-")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", b.Namespace, b.Route, cmp.Or(b.Router, "-"), b.Phase, cmp.Or(b.DNS, "-"), target, b.Message)
	}
}
