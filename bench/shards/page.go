package main

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	pageHead = `# A million routes on a thousand routers: what was simulated

` + "`make sim`" + ` prints this page: the scheduler's real code, in virtual time, with a cluster around it that is simulated (` + "`controller/shard/sim`" + `). Writes take
5 ms, watches lag behind by 20 ms, each router has two replicas that report each 10 s, names of routes may be kept by resolvers for 30 s. Each write is checked: none may take
from a route what serves it, and no more than a tenth of all bindings may be under way. Not every strategy was simulated with a million routes: the second column says how many there were
(` + "`go run ./bench/shards -only NAME`" + ` simulates one at its full size, with ` + "`-routes N`" + ` so many routes on 100 routers).

First all routes are placed; then some routers stop, and are found lost after 2 minutes; then others are added, and the RouteScheduler's ` + "`spec.rebalance`" + ` asks for an even spread.
Times are virtual, from the event until every route is served by as many routers as it should be, nothing is under way and resolvers have forgotten old names. They are the writes divided by the
rate, ` + "`spec.writesPerSecond`" + `: at the default of 100 they are ten times as long.

## Time, writes and moves

A move is a binding that is made in another's place. The least is what any scheduler would need: the bindings of the routers that are lost; and, when routers are added, those
that are above an even share.

`
	pageSpread = `## Spread of load

The largest load of a router divided by the mean of all that run, and the Gini coefficient (0: all have the same), of routes and of requests per second. Requests of routes are unequal: the
mean is 1 per second, one in a thousand has more than 30. Rebalancing evens routes, not requests.

`
	pageMemory = `## Memory

Heap is the largest that was in use after a collection, of scheduler and simulated cluster together; the scheduler alone is what is left at the end when the cluster is gone.
Resident is the peak of the process, with what has not been collected yet: the collector lets a fifth of the heap accumulate, and is limited to 1.5 GiB. The program
turnout scheduler has, besides, what it keeps of objects to read and write them.

`
)

// page is docs/lab/shards.md.
func page(results []Result) []byte {
	var b bytes.Buffer
	b.WriteString(pageHead)
	row := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row("strategy", "routes × routers", "all placed", "lost: time", "moves", "least", "added: time", "moves", "least", "writes/s, mean", "most in 10 s", "most under way")
	row("---", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:")
	for i := range results {
		r := &results[i]
		placed, lost, added := r.Phases[0], r.Phases[1], r.Phases[2]
		row(r.Strategy, fmt.Sprintf("%s × %s", thousands(r.Size.Routes), thousands(r.Size.Routers)), minutes(placed.Minutes),
			fmt.Sprintf("%d: %s", r.Size.Lost, minutes(lost.Minutes)), thousands(lost.Moves), thousands(lost.Least),
			fmt.Sprintf("%d: %s", r.Size.Added, minutes(added.Minutes)), thousands(added.Moves), thousands(added.Least),
			thousands(int(float64(placed.Writes)/placed.Minutes/60)), thousands(int(r.MostWrites)), fmt.Sprintf("%.1f %%", 100*r.UnderWay))
	}
	b.WriteString("\n")
	for i := range results {
		if r := &results[i]; r.About != "" {
			fmt.Fprintf(&b, "%s: %s.\n", r.Strategy, r.About)
		}
	}
	b.WriteString("\nThe mean is of the time until all are placed. A route costs three writes there: the binding, what the route says, that the binding is served. Statuses of routers are the others.\n\n")
	b.WriteString(pageSpread)
	row("strategy", "", "placed: max/mean", "Gini", "lost: max/mean", "Gini", "added: max/mean", "Gini")
	row("---", "---", "---:", "---:", "---:", "---:", "---:", "---:")
	for i := range results {
		for k, what := range []string{"routes", "requests"} {
			cells := []string{results[i].Strategy, what}
			for _, p := range results[i].Phases {
				cells = append(cells, fmt.Sprintf("%.3f", p.Spread[1+2*k]), fmt.Sprintf("%.3f", p.Spread[2+2*k]))
			}
			row(cells...)
		}
	}
	b.WriteString("\n")
	for i := range results {
		fmt.Fprintf(&b, "![%s: load spread over time](%s)\n", results[i].Strategy, pictureName(results[i].Strategy))
	}
	b.WriteString("\n" + pageMemory)
	row("strategy", "heap, MiB", "of these the scheduler's", "resident, MiB", "bytes of the scheduler per binding", "simulated in")
	row("---", "---:", "---:", "---:", "---:", "---:")
	for i := range results {
		r := &results[i]
		row(r.Strategy, number(r.Heap), number(r.Planner), number(r.RSS), number(r.Planner*(1<<20)/float64(r.Phases[0].Moves)), number(r.Seconds)+" s")
	}
	return b.Bytes()
}

// minutes is a time in minutes, or in hours when it is long.
func minutes(m float64) string {
	if m >= 100 {
		return fmt.Sprintf("%.1f h", m/60)
	}
	return fmt.Sprintf("%.1f min", m)
}

func number(v float64) string { return thousands(int(v + 0.5)) }

// thousands is a number with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
