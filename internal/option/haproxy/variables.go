package haproxy

import (
	"strings"

	"turnout/internal/option"
)

// UselessVariables are variables of the HAProxy router that have no meaning here:
// there is no HAProxy, no template and no reload, or Turnout always does what they
// ask for. docs/options.md has the reason for each.
func UselessVariables() []string {
	return []string{
		"TEMPLATE_FILE",
		"RELOAD_SCRIPT",
		"RELOAD_INTERVAL",
		"MAX_RELOAD_WAIT_TIME",
		"COMMIT_INTERVAL",
		"HAPROXY_MAX_SHUTDOWN_TIMEOUT",
		"ROUTER_SHUTDOWN",
		"ROUTER_BIND_PORTS_BEFORE_SYNC",
		"ROUTER_HAPROXY_CONFIG_MANAGER",
		"ROUTER_HAPROXY_ADMIN_UNIX_SOCKET",
		"ROUTER_HAPROXY_CONTSTATS",
		"ROUTER_BLUEPRINT_ROUTE_NAMESPACE",
		"ROUTER_BLUEPRINT_ROUTE_LABELS",
		"ROUTER_BLUEPRINT_ROUTE_POOL_SIZE",
		"ROUTER_MAX_DYNAMIC_SERVERS",
		"ROUTER_METRICS_HAPROXY_TIMEOUT",
		"ROUTER_METRICS_HAPROXY_BASE_SCRAPE_INTERVAL",
		"ROUTER_METRICS_HAPROXY_SCRAPE_URI",
		"ROUTER_METRICS_HAPROXY_PID_FILE",
		"ROUTER_WATCH_ENDPOINTS",
		"ROUTER_BACKEND_PROCESS_ENDPOINTS",
		"OPENSHIFT_ON_PANIC",
		"OPENSHIFT_PROFILE",
	}
}

// VariableWarning is one line about the variables that are set and have no effect, ""
// without any.
func VariableWarning(env option.Environment) string {
	var names []string
	for _, name := range UselessVariables() {
		if env.Get(name) != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "variables of the OpenShift router that have no effect here: " + strings.Join(names, ", ")
}
