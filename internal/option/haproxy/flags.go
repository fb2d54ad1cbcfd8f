// Package haproxy has the names of flags and variables of the HAProxy router that are taken, so that its command line and environment
// work as they are, and do nothing.
package haproxy

import (
	"slices"
	"strings"

	"turnout/internal/option"
)

// Flags lists those that table does not have. A flag that becomes a setting
// leaves this list.
func Flags(table []option.Option) []option.Ignored {
	var all []option.Ignored
	add := func(isBool bool, names ...string) {
		for _, name := range names {
			if !slices.ContainsFunc(table, func(s option.Option) bool { return s.Flag == name }) {
				all = append(all, option.Ignored{Name: name, IsBool: isBool})
			}
		}
	}
	// Logging of the Kubernetes libraries; both spellings are in use.
	add(false, "v", "vmodule", "stderrthreshold", "log_backtrace_at", "log-backtrace-at", "log_dir", "log-dir", "log_file", "log-file",
		"log_file_max_size", "log-file-max-size")
	add(true, "logtostderr", "alsologtostderr", "add_dir_header", "add-dir-header", "one_output", "one-output",
		"skip_headers", "skip-headers", "skip_log_headers", "skip-log-headers")
	// There is no template, no configuration file, no reload and no process to watch.
	add(false, "template", "reload", "interval", "working-dir", "commit-interval", "blueprint-route-namespace",
		"blueprint-route-labels", "blueprint-route-pool-size", "max-dynamic-servers")
	add(true, "haproxy-config-manager", "enable-ingress", "watch-endpoints")
	// HTTP and TLS go over TCP: there is nobody at a UDP port to connect to.
	add(true, "include-udp-endpoints")
	return all
}

// FlagWarning says in one line which of the given flags do nothing, "" without any.
func FlagWarning(given map[string]string, foreign []option.Ignored) string {
	var useless []string
	for _, f := range foreign {
		if _, ok := given[f.Name]; ok {
			useless = append(useless, "--"+f.Name)
		}
	}
	if len(useless) == 0 {
		return ""
	}
	return "flags of the OpenShift router that have no effect here: " + strings.Join(useless, ", ")
}
