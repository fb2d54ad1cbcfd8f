package main

import (
	"slices"
	"strings"

	"turnout/internal/option"
)

// foreignFlag is a flag of the HAProxy router that is taken, so that its command
// line works as it is, and does nothing.
type foreignFlag struct {
	option.Ignored
	// later says that this version does not have what the flag configures; otherwise
	// there is nothing here that it could configure.
	later bool
}

// foreignFlags lists those that table does not have. A flag that becomes a setting
// leaves this list.
func foreignFlags(table []option.Option) []foreignFlag {
	var all []foreignFlag
	add := func(f foreignFlag, names ...string) {
		for _, f.Name = range names {
			if !slices.ContainsFunc(table, func(s option.Option) bool { return s.Flag == f.Name }) {
				all = append(all, f)
			}
		}
	}
	// Logging of the Kubernetes libraries; both spellings are in use.
	add(foreignFlag{}, "v", "vmodule", "stderrthreshold", "log_backtrace_at", "log-backtrace-at", "log_dir", "log-dir", "log_file", "log-file",
		"log_file_max_size", "log-file-max-size")
	add(foreignFlag{Ignored: option.Ignored{IsBool: true}}, "logtostderr", "alsologtostderr", "add_dir_header", "add-dir-header", "one_output", "one-output",
		"skip_headers", "skip-headers", "skip_log_headers", "skip-log-headers")
	// There is no template, no configuration file, no reload and no process to watch.
	add(foreignFlag{}, "template", "reload", "interval", "working-dir", "commit-interval", "blueprint-route-namespace",
		"blueprint-route-labels", "blueprint-route-pool-size", "max-dynamic-servers")
	add(foreignFlag{Ignored: option.Ignored{IsBool: true}}, "haproxy-config-manager", "enable-ingress", "watch-endpoints")

	add(foreignFlag{later: true, Ignored: option.Ignored{IsBool: true}}, "include-udp-endpoints")
	return all
}

// foreignWarnings says in at most two lines which of the given flags do nothing.
func foreignWarnings(given map[string]string, foreign []foreignFlag) []string {
	var useless, later []string
	for _, f := range foreign {
		switch _, ok := given[f.Name]; {
		case ok && f.later:
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
