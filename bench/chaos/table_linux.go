package chaos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"turnout/bench/site"
)

// short is a time in milliseconds or seconds.
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "-"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}

// printClients prints what clients saw.
func printClients(w io.Writer, all []*result) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "fault\ttook place\tanswers\treasons\tp50\tp99\trecovered\tpod back\tothers\tfailed\tp99\t")
	for _, r := range all {
		back := "-"
		if r.fault.want.returns > 0 {
			back = short(r.returned)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t\n", r.fault.name, r.evidence, r.victims.String(), r.why(),
			short(r.victims.P50), short(r.victims.P99), short(r.recovered), back, r.neighbors.asked, r.neighbors.failed(), short(r.neighbors.P99))
	}
	_ = t.Flush() // of what is printed nobody learns that it was not
}

// why lists the reasons of what went wrong.
func (r *result) why() string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(r.reasons)) {
		out = append(out, fmt.Sprintf("%.0f %s", r.reasons[k], k))
	}
	if out == nil {
		return "-"
	}
	return strings.Join(out, ", ")
}

// printRouter prints what the router held before and after.
func printRouter(w io.Writer, all []*result) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "fault\tgoroutines\tdescriptors\tMiB\tto pods\troute change in it\tafter it\tverdict\t")
	for _, r := range all {
		a, b := r.before, r.after
		verdict := "ok"
		if len(r.complaints) > 0 {
			verdict = "FAILED"
		}
		fmt.Fprintf(t, "%s\t%d %d\t%d %d\t%.0f %.0f\t%d %d\t%s\t%s\t%s\t\n", r.fault.name, a.goroutines, b.goroutines, a.descriptors, b.descriptors,
			site.MiB(a.resident), site.MiB(b.resident), a.upstream, b.upstream, short(r.changed), short(r.changedNext), verdict)
	}
	_ = t.Flush() // of what is printed nobody learns that it was not
}
