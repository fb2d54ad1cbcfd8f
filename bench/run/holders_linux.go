package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// holders are who holds memory, by a function that is on the stack when it is allocated. The first one that fits counts.
var holders = []struct{ name, function string }{
	{"endpoints of servers", "balancer.(*Registry).acquire"},
	{"lists of servers, and who of them may be chosen", "balancer.(*Registry).findRoster"},
	{"groups and health checks", "balancer.(*Registry).group"},
	{"pools", "balancer."},
	{"checks in progress and their times", "internal/health."},
	{"endpoint slices as they are kept", "endpoints.Pack"},
	{"claims of hosts and paths", "admit.(*Claims)"},
	{"the table", "turnout/routing."},
	{"translation", "controller/translate."},
	{"status: verdicts and what is written", "controller/status."},
	{"what is shown of routes", "controller.(*views)"},
	{"routes in the controller", "controller.(*state).routeEvent"},
	{"services and slices in the controller", "controller.(*state).sliceEvent"},
	{"services and slices in the controller", "controller.(*state).service"},
	{"the controller, else", "turnout/controller.("},
	{"versions that were passed on", "cluster.(*store)"},
	{"objects as they are decoded", "json"},
	{"objects as they are decoded", "yaml"},
	{"objects as they are decoded", "protobuf"},
	{"the folder", "source/folder."},
	{"metrics", "internal/metrics."},
	{"metrics", "prometheus"},
}

// holding is what one of them holds, in bytes.
type holding struct {
	holder string
	bytes  float64
}

// liveByHolder reads a heap profile in the runtime's text form (debug=1): a line per stack and the functions on it. It returns what is in use, and by
// whom, the most first.
func liveByHolder(profile io.Reader) (total float64, rows []holding) {
	sums := map[string]float64{}
	var rate, bytes float64
	var stack []string
	note := func() {
		if bytes > 0 {
			sums[holderOf(stack)] += bytes
			total += bytes
		}
		bytes, stack = 0, stack[:0]
	}
	for lines := bufio.NewScanner(profile); lines.Scan(); {
		line := lines.Text()
		var n, size, allN, allSize float64
		switch {
		case strings.HasPrefix(line, "heap profile:"):
			_, text, _ := strings.Cut(line, "heap/")
			_, _ = fmt.Sscan(text, &rate) // twice the distance of two samples; without it nothing is scaled
			rate /= 2
		case strings.HasPrefix(line, "#\t"):
			if fields := strings.Fields(line); len(fields) > 2 {
				stack = append(stack, fields[2])
			}
		default:
			if k, _ := fmt.Sscanf(line, "%f: %f [%f: %f]", &n, &size, &allN, &allSize); k < 4 {
				continue
			}
			note()
			if bytes = size; n > 0 && rate > 0 { // the larger an allocation, the likelier is it in the sample
				bytes /= 1 - math.Exp(-size/n/rate)
			}
		}
	}
	note()
	for holder, sum := range sums {
		rows = append(rows, holding{holder, sum})
	}
	slices.SortFunc(rows, func(a, b holding) int { return cmp.Compare(b.bytes, a.bytes) })
	return total, rows
}

// holderOf is who holds what was allocated with such a stack: one of holders, or else the function that called the runtime.
func holderOf(stack []string) string {
	for _, h := range holders {
		if slices.ContainsFunc(stack, func(f string) bool { return strings.Contains(f, h.function) }) {
			return h.name
		}
	}
	for _, f := range stack {
		if !strings.HasPrefix(f, "runtime.") && !strings.HasPrefix(f, "internal/") {
			name, _, _ := strings.Cut(f, "+0x")
			return name
		}
	}
	return "the runtime"
}
