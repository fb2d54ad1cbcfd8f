package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"turnout/internal/option/haproxy"
)

// TestForeignFlags: command lines of the OpenShift router are taken as they are.
func TestForeignFlags(t *testing.T) {
	f := func(want []string, args ...string) {
		t.Helper()
		o, warnings, err := parseOptions(args, envOf())
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		if !slices.Equal(warnings, want) {
			t.Errorf("%v:\n got %q\nwant %q", args, warnings, want)
		}
		if o.control.RouterName != "public" {
			t.Errorf("%v: changed an option", args)
		}
	}
	f([]string{"flags of the OpenShift router that have no effect here: --v"}, "--v=2")
	f([]string{"flags of the OpenShift router that have no effect here: --v, --logtostderr"}, "-v", "4", "--logtostderr", "--name=public")
	f([]string{"flags of the OpenShift router that have no effect here: --template, --reload, --haproxy-config-manager"},
		"--template=/var/lib/haproxy/conf/haproxy-config.template", "--reload", "/var/lib/haproxy/reload-haproxy", "--metrics-type=haproxy",
		"--haproxy-config-manager")
	f([]string{"flags of the OpenShift router that have no effect here: --v, --include-udp-endpoints"}, "--include-udp-endpoints", "--v=2", "--v=3")
	if _, _, err := parseOptions([]string{"--v"}, envOf()); err == nil || err.Error() != "no value given for --v; see turnout help" {
		t.Error(err)
	}
}

// TestForeignFlagsAreNoSettings: what is a setting has an effect, and what has none
// is documented.
func TestForeignFlagsAreNoSettings(t *testing.T) {
	text, err := os.ReadFile("../../docs/options.md")
	if err != nil {
		t.Fatal(err)
	}
	all, rest := haproxy.Flags(nil), haproxy.Flags(settings(&options{}))
	for _, f := range all {
		if !slices.Contains(rest, f) {
			t.Errorf("--%s is a setting: take it out of haproxy.Flags", f.Name)
		}
		if !strings.Contains(string(text), "`--"+strings.ReplaceAll(f.Name, "_", "-")+"`") {
			t.Errorf("--%s is not in docs/options.md", f.Name)
		}
	}
}

// TestOperatorEnvironment: the container that the OpenShift ingress operator makes
// for a router, with most of what an IngressController can ask for, is understood. A
// warning may say that something is not there or not needed, never that a value is
// wrong.
func TestOperatorEnvironment(t *testing.T) {
	env := envOf(
		"ROUTER_SERVICE_NAMESPACE", "openshift-ingress",
		"ROUTER_SERVICE_NAME", "default",
		"DEFAULT_CERTIFICATE_DIR", "/etc/pki/tls/private",
		"DEFAULT_DESTINATION_CA_PATH", "/var/run/configmaps/service-ca/service-ca.crt",
		"STATS_PORT", "1936",
		"STATS_USERNAME_FILE", "/var/lib/haproxy/conf/metrics-auth/statsUsername",
		"STATS_PASSWORD_FILE", "/var/lib/haproxy/conf/metrics-auth/statsPassword",
		"ROUTER_METRICS_TYPE", "haproxy",
		"ROUTER_METRICS_TLS_CERT_FILE", "/etc/pki/tls/metrics-certs/tls.crt",
		"ROUTER_METRICS_TLS_KEY_FILE", "/etc/pki/tls/metrics-certs/tls.key",
		"ROUTER_LOAD_BALANCE_ALGORITHM", "random",
		"ROUTER_TCP_BALANCE_SCHEME", "source",
		"ROUTER_MAX_CONNECTIONS", "auto",
		"ROUTER_HAPROXY_CONFIG_MANAGER", "true",
		"ROUTER_DOMAIN", "apps.example.com",
		"ROUTER_CANONICAL_HOSTNAME", "router-default.apps.example.com",
		"ROUTER_USE_PROXY_PROTOCOL", "true",
		"ROUTER_THREADS", "4",
		"ROUTER_DEFAULT_CLIENT_TIMEOUT", "30s",
		"ROUTER_CLIENT_FIN_TIMEOUT", "1s",
		"ROUTER_DEFAULT_SERVER_TIMEOUT", "30s",
		"ROUTER_DEFAULT_SERVER_FIN_TIMEOUT", "1s",
		"ROUTER_DEFAULT_TUNNEL_TIMEOUT", "1h",
		"ROUTER_INSPECT_DELAY", "5s",
		"ROUTER_BACKEND_CHECK_INTERVAL", "5s",
		"RELOAD_INTERVAL", "5s",
		"NAMESPACE_LABELS", "environment in (test,production),!internal",
		"ROUTE_LABELS", "type=public",
		"ROUTER_SERVICE_HTTP_PORT", "80",
		"ROUTER_SERVICE_HTTPS_PORT", "443",
		"ROUTER_SYSLOG_ADDRESS", "10.0.0.1:514",
		"ROUTER_LOG_LEVEL", "info",
		"ROUTER_LOG_FACILITY", "local1",
		"ROUTER_LOG_MAX_LENGTH", "1024",
		"ROUTER_SYSLOG_FORMAT", `"%ci:%cp [%t] %ft %b/%s %ST %B"`,
		"ROUTER_CAPTURE_HTTP_REQUEST_HEADERS", "Host:32,User-Agent:256",
		"ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS", "Content-Type:64",
		"ROUTER_CAPTURE_HTTP_COOKIE", "session=:256",
		"ROUTER_DONT_LOG_NULL", "true",
		"ROUTER_CIPHERS", "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"+
			"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384",
		"ROUTER_CIPHERSUITES", "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256",
		"SSL_MIN_VERSION", "TLSv1.2",
		"ROUTER_IP_V4_V6_MODE", "v4v6",
		"ROUTER_DISABLE_NAMESPACE_OWNERSHIP_CHECK", "false",
		"ROUTER_ALLOW_WILDCARD_ROUTES", "false",
		"ROUTER_SET_FORWARDED_HEADERS", "append",
		"ROUTER_UNIQUE_ID_HEADER_NAME", "unique-id",
		"ROUTER_UNIQUE_ID_FORMAT", `"%{+X}o %ci:%cp_%fi:%fp_%Ts_%rt:%pid"`,
		"ROUTER_H1_CASE_ADJUST", "X-Forwarded-For,Host",
		"ROUTER_HTTP_RESPONSE_HEADERS", "X-Frame-Options:DENY:Set,Server:Delete",
		"ROUTER_HTTP_REQUEST_HEADERS", "X-Origin:%25%5Breq.hdr%28host%29%5D:Set",
		"ROUTER_HTTP_IGNORE_PROBES", "true",
		"ROUTER_DISABLE_HTTP2", "true",
		"ROUTER_HARD_STOP_AFTER", "1h",
		"ROUTER_BUF_SIZE", "32768",
		"ROUTER_MAX_REWRITE_SIZE", "8192",
		"ROUTER_MUTUAL_TLS_AUTH", "required",
		"ROUTER_MUTUAL_TLS_AUTH_CA", "/etc/pki/tls/client-ca/ca-bundle.pem",
		"ROUTER_MUTUAL_TLS_AUTH_FILTER", "(?:^/CN=.*$)",
		"ROUTER_ENABLE_COMPRESSION", "true",
		"ROUTER_COMPRESSION_MIME", `text/html application/json "text/css; charset=utf-8"`,
		"ROUTER_ERRORFILE_503", "/var/lib/haproxy/conf/error_code_pages/error-page-503.http",
		"ROUTER_ERRORFILE_404", "/var/lib/haproxy/conf/error_code_pages/error-page-404.http",
		"ROUTER_ENABLE_EXTERNAL_CERTIFICATE", "true",
		"KUBERNETES_SERVICE_HOST", "172.30.0.1",
	)
	o, warnings, err := parseOptions([]string{"--v=2"}, env)
	if err != nil {
		t.Fatal(err)
	}
	if o.useCluster(env); !o.cluster || o.control.RouterName != "default" || o.routeLabels != "type=public" || o.server.HTTPAddr != ":80" {
		t.Errorf("%+v", o)
	}
	for _, w := range warnings {
		if strings.Contains(w, " is ignored;") || strings.Contains(w, "not valid") {
			t.Errorf("a value of the operator's is not understood: %s", w)
		}
		t.Log(w)
	}
}
