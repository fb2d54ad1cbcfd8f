package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"turnout/internal/option/haproxy"
)

// referenceVariables are all variables of the HAProxy router.
func referenceVariables() []string {
	return []string{
		"COMMIT_INTERVAL", "DEBUG_UPGRADE_VALIDATION_FORCE_ADD_CONDITION", "DEBUG_UPGRADE_VALIDATION_FORCE_REMOVE_CONDITION",
		"DEFAULT_CERTIFICATE", "DEFAULT_CERTIFICATE_DIR", "DEFAULT_CERTIFICATE_PATH", "DEFAULT_DESTINATION_CA_PATH",
		"EXTENDED_VALIDATION", "HAPROXY_MAX_SHUTDOWN_TIMEOUT", "KUBERNETES_MASTER", "MAX_RELOAD_WAIT_TIME", "NAMESPACE_LABELS",
		"OPENSHIFT_ON_PANIC", "OPENSHIFT_PROFILE", "PROJECT_LABELS", "RELOAD_INTERVAL", "RELOAD_SCRIPT", "ROUTER_ABORT_ON_CLOSE",
		"ROUTER_ALLOWED_DOMAINS", "ROUTER_ALLOW_WILDCARD_ROUTES", "ROUTER_BACKEND_CHECK_INTERVAL", "ROUTER_BACKEND_PROCESS_ENDPOINTS",
		"ROUTER_BIND_PORTS_AFTER_SYNC", "ROUTER_BIND_PORTS_BEFORE_SYNC", "ROUTER_BLUEPRINT_ROUTE_LABELS",
		"ROUTER_BLUEPRINT_ROUTE_NAMESPACE", "ROUTER_BLUEPRINT_ROUTE_POOL_SIZE", "ROUTER_BUF_SIZE", "ROUTER_CANONICAL_HOSTNAME",
		"ROUTER_CAPTURE_HTTP_COOKIE", "ROUTER_CAPTURE_HTTP_REQUEST_HEADERS", "ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS", "ROUTER_CIPHERS",
		"ROUTER_CIPHERSUITES", "ROUTER_CLIENT_FIN_TIMEOUT", "ROUTER_COMPRESSION_MIME", "ROUTER_COOKIE_NAME", "ROUTER_CURVES",
		"ROUTER_DEFAULT_CLIENT_TIMEOUT", "ROUTER_DEFAULT_CONNECT_TIMEOUT", "ROUTER_DEFAULT_SERVER_FIN_TIMEOUT",
		"ROUTER_DEFAULT_SERVER_TIMEOUT", "ROUTER_DEFAULT_TUNNEL_TIMEOUT", "ROUTER_DENIED_DOMAINS", "ROUTER_DISABLE_HTTP2",
		"ROUTER_DISABLE_NAMESPACE_OWNERSHIP_CHECK", "ROUTER_DOMAIN", "ROUTER_DONT_LOG_NULL", "ROUTER_ENABLE_COMPRESSION",
		"ROUTER_ENABLE_EXTERNAL_CERTIFICATE", "ROUTER_ERRORFILE_404", "ROUTER_ERRORFILE_503", "ROUTER_GRACEFUL_SHUTDOWN_DELAY",
		"ROUTER_H1_CASE_ADJUST", "ROUTER_HAPROXY_ADMIN_UNIX_SOCKET", "ROUTER_HAPROXY_CONFIG_MANAGER", "ROUTER_HAPROXY_CONTSTATS",
		"ROUTER_HARD_STOP_AFTER", "ROUTER_HTTP_IGNORE_PROBES", "ROUTER_HTTP_REQUEST_HEADERS", "ROUTER_HTTP_RESPONSE_HEADERS",
		"ROUTER_IDLE_CLOSE_ON_RESPONSE", "ROUTER_INSPECT_DELAY", "ROUTER_IP_V4_V6_MODE", "ROUTER_LISTEN_ADDR",
		"ROUTER_LOAD_BALANCE_ALGORITHM", "ROUTER_LOG_FACILITY", "ROUTER_LOG_LEVEL", "ROUTER_LOG_MAX_LENGTH", "ROUTER_MAX_CONNECTIONS",
		"ROUTER_MAX_DYNAMIC_SERVERS", "ROUTER_MAX_REWRITE_SIZE", "ROUTER_MAX_SHUTDOWN_TIMEOUT",
		"ROUTER_METRICS_HAPROXY_BASE_SCRAPE_INTERVAL", "ROUTER_METRICS_HAPROXY_EXPORTED", "ROUTER_METRICS_HAPROXY_PID_FILE",
		"ROUTER_METRICS_HAPROXY_SCRAPE_URI", "ROUTER_METRICS_HAPROXY_SERVER_THRESHOLD", "ROUTER_METRICS_HAPROXY_TIMEOUT",
		"ROUTER_METRICS_READY_HTTP_URL", "ROUTER_METRICS_TLS_CERT_FILE", "ROUTER_METRICS_TLS_CIPHERS", "ROUTER_METRICS_TLS_CURVES",
		"ROUTER_METRICS_TLS_KEY_FILE", "ROUTER_METRICS_TLS_MIN_VERSION", "ROUTER_METRICS_TYPE", "ROUTER_MUTUAL_TLS_AUTH",
		"ROUTER_MUTUAL_TLS_AUTH_CA", "ROUTER_MUTUAL_TLS_AUTH_CRL", "ROUTER_MUTUAL_TLS_AUTH_FILTER", "ROUTER_MUTUAL_TLS_HEADER_FILTER",
		"ROUTER_OVERRIDE_DOMAINS", "ROUTER_OVERRIDE_HOSTNAME", "ROUTER_SERVICE_HTTPS_PORT", "ROUTER_SERVICE_HTTP_PORT",
		"ROUTER_SERVICE_NAME", "ROUTER_SERVICE_NAMESPACE", "ROUTER_SET_FORWARDED_HEADERS", "ROUTER_SHUTDOWN",
		"ROUTER_SLOWLORIS_HTTP_KEEPALIVE", "ROUTER_SLOWLORIS_TIMEOUT", "ROUTER_STRICT_SNI", "ROUTER_SUBDOMAIN",
		"ROUTER_SYSLOG_ADDRESS", "ROUTER_SYSLOG_FORMAT", "ROUTER_TCP_BALANCE_SCHEME", "ROUTER_THREADS", "ROUTER_UNIQUE_ID_FORMAT",
		"ROUTER_UNIQUE_ID_HEADER_NAME", "ROUTER_UPDATE_STATUS", "ROUTER_USE_PROXY_PROTOCOL", "ROUTER_WATCH_ENDPOINTS", "ROUTE_FIELDS",
		"ROUTE_LABELS", "SSL_MAX_VERSION", "SSL_MIN_VERSION", "STATS_PASSWORD", "STATS_PASSWORD_FILE", "STATS_PORT", "STATS_USERNAME",
		"STATS_USERNAME_FILE", "TEMPLATE_FILE", "UPGRADE_VALIDATION",
	}
}

// TestEveryVariableHasAPlace: each variable of the HAProxy router is an option, or
// has no effect for a reason, or is announced as not there; and docs/options.md says which.
func TestEveryVariableHasAPlace(t *testing.T) {
	text, err := os.ReadFile("../../docs/options.md")
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]int{"ROUTER_SERVICE_NAMESPACE": 1}
	for _, s := range settings(&options{}) {
		if s.Env != "" {
			places[s.Env]++
		}
	}
	useless, announced, ok := strings.Cut(string(text), "## Variables that are not there yet")
	_, useless, ok2 := strings.Cut(useless, "## Variables that have no effect")
	if !ok || !ok2 {
		t.Fatal("docs/options.md lacks a section")
	}
	inTable := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z0-9_]+)` \\| .+ \\|$").FindAllStringSubmatch(useless, -1) {
		inTable[m[1]] = true
	}
	for _, name := range haproxy.UselessVariables() {
		places[name]++
		if !inTable[name] {
			t.Errorf("%s has no reason in docs/options.md", name)
		}
		delete(inTable, name)
	}
	for name := range inTable {
		t.Errorf("docs/options.md says %s has no effect; the code does not", name)
	}
	for _, name := range haproxy.LaterVariables() {
		places[name]++
	}
	for _, m := range regexp.MustCompile("`([A-Z0-9_]+)`").FindAllStringSubmatch(announced, -1) {
		if !slices.Contains(haproxy.LaterVariables(), m[1]) {
			t.Errorf("docs/options.md announces %s; the code does not", m[1])
		}
	}
	for _, name := range referenceVariables() {
		if places[name] != 1 {
			t.Errorf("%s has %d places, want one", name, places[name])
		}
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("%s is not in docs/options.md", name)
		}
	}
}

func TestUselessVariablesAreNamedOnce(t *testing.T) {
	_, warnings, err := parseOptions(nil, envOf("RELOAD_INTERVAL", "5s", "TEMPLATE_FILE", "x", "ROUTER_SHUTDOWN", ""))
	if err != nil || len(warnings) != 1 || warnings[0] != "variables of the OpenShift router that have no effect here: TEMPLATE_FILE, RELOAD_INTERVAL" {
		t.Errorf("%v %q", err, warnings)
	}
}
