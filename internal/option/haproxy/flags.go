// Package haproxy has the names of flags and variables of the HAProxy router that are taken, so that its command line and environment
// work as they are, and do nothing.
package haproxy

import (
	"slices"
	"strings"

	"turnout/internal/option"
)

// Flag is a flag of the HAProxy router that is taken, so that its command
// line works as it is, and does nothing.
type Flag struct {
	option.Ignored
	// Later says that this version does not have what the flag configures; otherwise
	// there is nothing here that it could configure.
	Later bool
}

// Flags lists those that table does not have. A flag that becomes a setting
// leaves this list.
func Flags(table []option.Option) []Flag {
	var all []Flag
	add := func(f Flag, names ...string) {
		for _, f.Name = range names {
			if !slices.ContainsFunc(table, func(s option.Option) bool { return s.Flag == f.Name }) {
				all = append(all, f)
			}
		}
	}
	// Logging of the Kubernetes libraries; both spellings are in use.
	add(Flag{}, "v", "vmodule", "stderrthreshold", "log_backtrace_at", "log-backtrace-at", "log_dir", "log-dir", "log_file", "log-file",
		"log_file_max_size", "log-file-max-size")
	add(Flag{Ignored: option.Ignored{IsBool: true}}, "logtostderr", "alsologtostderr", "add_dir_header", "add-dir-header", "one_output", "one-output",
		"skip_headers", "skip-headers", "skip_log_headers", "skip-log-headers")
	// There is no template, no configuration file, no reload and no process to watch.
	add(Flag{}, "template", "reload", "interval", "working-dir", "commit-interval", "blueprint-route-namespace",
		"blueprint-route-labels", "blueprint-route-pool-size", "max-dynamic-servers")
	add(Flag{Ignored: option.Ignored{IsBool: true}}, "haproxy-config-manager", "enable-ingress", "watch-endpoints")

	add(Flag{Later: true, Ignored: option.Ignored{IsBool: true}}, "include-udp-endpoints")
	return all
}

// FlagWarnings says in at most two lines which of the given flags do nothing.
func FlagWarnings(given map[string]string, foreign []Flag) []string {
	var useless, later []string
	for _, f := range foreign {
		switch _, ok := given[f.Name]; {
		case ok && f.Later:
			later = append(later, "--"+f.Name)
		case ok:
			useless = append(useless, "--"+f.Name)
		}
	}
	var warnings []string
	if len(useless) > 0 {
		warnings = append(warnings, "flags of the OpenShift router that have no effect here: "+strings.Join(useless, ", "))
	}
	if len(later) > 0 {
		warnings = append(warnings, "flags that configure what this version does not have: "+strings.Join(later, ", "))
	}
	return warnings
}
