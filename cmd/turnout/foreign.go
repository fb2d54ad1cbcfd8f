package main

import (
	"flag"
	"slices"
	"strings"
)

// foreignFlag is a flag of the router we replace that is taken, so that its command
// line works as it is, and does nothing.
type foreignFlag struct {
	name   string
	isBool bool // may stand without a value
	// later says that this version does not have what the flag configures; otherwise
	// there is nothing here that it could configure.
	later bool
}

// foreignFlags lists those that table does not have. A flag that becomes a setting
// leaves this list.
func foreignFlags(table []setting) []foreignFlag {
	var all []foreignFlag
	add := func(f foreignFlag, names ...string) {
		for _, f.name = range names {
			if !slices.ContainsFunc(table, func(s setting) bool { return s.flag == f.name }) {
				all = append(all, f)
			}
		}
	}
	// Logging of the Kubernetes libraries; both spellings are in use.
	add(foreignFlag{}, "v", "vmodule", "stderrthreshold", "log_backtrace_at", "log-backtrace-at", "log_dir", "log-dir", "log_file", "log-file",
		"log_file_max_size", "log-file-max-size")
	add(foreignFlag{isBool: true}, "logtostderr", "alsologtostderr", "add_dir_header", "add-dir-header", "one_output", "one-output",
		"skip_headers", "skip-headers", "skip_log_headers", "skip-log-headers")
	// There is no template, no configuration file, no reload and no process to watch.
	add(foreignFlag{}, "template", "reload", "interval", "working-dir", "commit-interval", "blueprint-route-namespace",
		"blueprint-route-labels", "blueprint-route-pool-size", "max-dynamic-servers")
	add(foreignFlag{isBool: true}, "haproxy-config-manager", "enable-ingress", "watch-endpoints")

	add(foreignFlag{later: true, isBool: true}, "include-udp-endpoints")
	return all
}

// addForeign lets set take the flags that table does not have; store is told of
// each that is given.
func addForeign(set *flag.FlagSet, table []setting, store func(name string)) {
	for _, f := range foreignFlags(table) {
		take := func(string) error { store(f.name); return nil }
		if f.isBool {
			set.BoolFunc(f.name, "", take)
		} else {
			set.Func(f.name, "", take)
		}
	}
}

// foreignWarnings says in at most two lines which of the given flags do nothing.
func foreignWarnings(given map[string]string, table []setting) []string {
	var useless, later []string
	for _, f := range foreignFlags(table) {
		switch _, ok := given[f.name]; {
		case ok && f.later:
			later = append(later, "--"+f.name)
		case ok:
			useless = append(useless, "--"+f.name)
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
