package controller

import (
	"fmt"
	"io"
)

// Print writes what is wrong first, that of flags and variables before that of manifests, then a line per route,
// then the sums.
func (r *Report) Print(w io.Writer, warnings []string) error {
	p := printer{w: w}
	for _, warning := range warnings {
		p.printf("warning: %s\n", warning)
	}
	for _, problem := range r.Problems {
		p.printf("%s: %s\n", problem.Severity, problem)
	}
	rejected := 0
	for _, route := range r.Routes {
		url := route.Host + route.Path
		if !route.Admitted {
			rejected++
			p.printf("rejected: %s/%s (%s): %s: %s\n", route.Namespace, route.Name, url, route.Reason, route.Message)
			continue
		}
		p.printf("ok: %s/%s (%s) %s, %d servers%s\n", route.Namespace, route.Name, url, route.Termination, route.Servers, asked(route.Check))
		for _, note := range route.Notes {
			p.printf("note: %s/%s: %s\n", route.Namespace, route.Name, note)
		}
	}
	p.printf("%d files, %d objects, %d routes, %d rejected, %d problems\n",
		r.Files, r.Objects, len(r.Routes), rejected, len(r.Problems))
	return p.err
}

// asked tells what checks of servers ask for, "" for those without a request.
func asked(c *CheckReport) string {
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
