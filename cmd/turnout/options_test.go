package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"turnout/internal/option"
)

// envOf is an environment of name, value pairs.
func envOf(pairs ...string) option.Environment {
	m := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func parse(t *testing.T, env option.Environment, args ...string) *options {
	t.Helper()
	o, warnings, err := parseOptions(args, env)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings: %v", warnings)
	}
	return o
}

func TestDefaults(t *testing.T) {
	o := parse(t, envOf())
	if o.server.HTTPAddr != "0.0.0.0:80" || o.server.HTTPSAddr != "0.0.0.0:443" || o.adminAddr != "0.0.0.0:1936" {
		t.Errorf("addresses %s %s %s", o.server.HTTPAddr, o.server.HTTPSAddr, o.adminAddr)
	}
	if o.control.RouterName != "public" || o.logs.Access != "off" || o.logLevel != zapcore.InfoLevel || o.control.SkipExtendedValidation || o.control.SetForwardedHeaders != "append" || o.server.Loops != 0 {
		t.Errorf("%+v", o)
	}
	timeouts := o.server.Proxy.Timeouts
	if err := timeouts.Validate(); err != nil {
		t.Error(err)
	}
	if timeouts.RequestHead != 10*time.Second || timeouts.KeepAlive != 300*time.Second || o.control.TunnelTimeout != time.Hour {
		t.Errorf("%+v", timeouts)
	}
}

func TestFlagsWinOverEnvironment(t *testing.T) {
	env := envOf("ROUTER_SERVICE_HTTP_PORT", "8080", "ROUTER_DOMAIN", "env.example.com", "ROUTER_DEFAULT_SERVER_TIMEOUT", "1m",
		"ROUTER_STRICT_SNI", "true", "ROUTER_DENIED_DOMAINS", "a.test, b.test")
	o := parse(t, env)
	if o.server.HTTPAddr != "0.0.0.0:8080" || o.control.Domain != "env.example.com" || o.control.ServerTimeout != time.Minute || !o.server.StrictSNI || len(o.control.DeniedDomains) != 2 {
		t.Errorf("environment: %+v", o)
	}
	o = parse(t, env, "--service-http-port", "81", "-router-domain=flag.example.com", "--default-server-timeout=2500", "--strict-sni=false", "--denied-domains=")
	if o.server.HTTPAddr != "0.0.0.0:81" || o.control.Domain != "flag.example.com" || o.control.ServerTimeout != 2500*time.Millisecond || o.server.StrictSNI || len(o.control.DeniedDomains) != 0 {
		t.Errorf("flags: %+v", o)
	}
}

func TestAddresses(t *testing.T) {
	f := func(wantHTTP, wantAdmin string, env option.Environment, args ...string) {
		t.Helper()
		if o := parse(t, env, args...); o.server.HTTPAddr != wantHTTP || o.adminAddr != wantAdmin {
			t.Errorf("http %s admin %s, want %s %s", o.server.HTTPAddr, o.adminAddr, wantHTTP, wantAdmin)
		}
	}
	f(":80", "0.0.0.0:1936", envOf("ROUTER_IP_V4_V6_MODE", "v4v6"))
	f("[::]:80", "0.0.0.0:1936", envOf("ROUTER_IP_V4_V6_MODE", "v6"))
	f("127.0.0.1:0", "0.0.0.0:1936", envOf("ROUTER_SERVICE_HTTP_PORT", "8080"), "--http-addr=127.0.0.1:0")
	f("0.0.0.0:80", "0.0.0.0:9000", envOf("STATS_PORT", "9000"))
	f("0.0.0.0:80", "0.0.0.0:1936", envOf("STATS_PORT", "0"))
	f("0.0.0.0:80", "127.0.0.1:9001", envOf("STATS_PORT", "9000", "ROUTER_LISTEN_ADDR", "127.0.0.1:9001"))
	f("0.0.0.0:80", "127.0.0.1:0", envOf("STATS_PORT", "9000", "ROUTER_LISTEN_ADDR", "127.0.0.1:9001"), "--admin-addr", "127.0.0.1:0")
}

func TestSelection(t *testing.T) {
	o := parse(t, envOf("ROUTE_LABELS", "a=b,!c", "ROUTE_FIELDS", "spec.host!=x", "NAMESPACE_LABELS", "a in (b, c)"))
	if o.routeLabels != "a=b,!c" || o.routeFields != "spec.host!=x" || o.namespaces() != "a in (b, c)" {
		t.Errorf("%+v", o.selection)
	}
	if o := parse(t, envOf("PROJECT_LABELS", "a=b")); o.namespaces() != "a=b" {
		t.Errorf("%+v", o.selection)
	}
	if o := parse(t, envOf("PROJECT_LABELS", "*")); o.namespaces() != "" {
		t.Errorf("%+v", o.selection)
	}
	if o := parse(t, envOf("ROUTE_LABELS", "a"), "-n", "here", "--labels="); o.namespace != "here" || o.routeLabels != "" {
		t.Errorf("%+v", o.selection)
	}
}

func TestWhereObjectsComeFrom(t *testing.T) {
	pod := envOf("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	f := func(cluster bool, delay time.Duration, env option.Environment, args ...string) {
		t.Helper()
		o := parse(t, env, args...)
		o.useCluster(env)
		config := o.controllerOptions()
		if o.cluster != cluster || max(o.shutdownDelay, 0) != delay || config.AllowLoopback == cluster {
			t.Errorf("%v: cluster %v, delay %v, loopback %v", args, o.cluster, o.shutdownDelay, config.AllowLoopback)
		}
	}
	f(false, 0, envOf())
	f(false, 0, pod, "--manifests=m")
	f(true, 0, pod, "--kubeconfig=k")
	f(true, 0, envOf(), "--kubeconfig=k")
	f(true, 45*time.Second, pod)
	f(true, 0, pod, "--graceful-shutdown-delay=0s")
	f(true, 2*time.Second, pod, "--graceful-shutdown-delay=2s")
}

func TestEmptyVariableIsUnset(t *testing.T) {
	o := parse(t, envOf("ROUTER_SERVICE_HTTP_PORT", "", "EXTENDED_VALIDATION", "", "ROUTER_SERVICE_NAME", "", "ROUTER_MUTUAL_TLS_AUTH", ""))
	if o.server.HTTPAddr != "0.0.0.0:80" || o.control.SkipExtendedValidation || o.control.RouterName != "public" {
		t.Errorf("%+v", o)
	}
}

func TestMistakes(t *testing.T) {
	f := func(want string, env option.Environment, args ...string) {
		t.Helper()
		_, _, err := parseOptions(args, env)
		if !errors.As(err, &option.UsageError{}) || err.Error() != want || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v:\n got %v\nwant %s", args, err, want)
		}
	}
	none := envOf()
	f(`--http-addr "80" is not valid; allowed: HOST:PORT, where HOST is an IP address, localhost or empty (every address) and PORT 0 to 65535`, none, "--http-addr", "80")
	f(`--default-server-timeout "0s" is not valid; allowed: a whole number above 0 with one of the units us, ms, s, m, h, d (no unit: ms), for example 30s`, none, "--default-server-timeout=0s")
	f(`--strict-sni "yes" is not valid; allowed: true or false`, none, "--strict-sni=yes")
	f(`--load-balance-algorithm "uri" is not valid; allowed: random, roundrobin, leastconn, source`, none, "--load-balance-algorithm=uri")
	f(`--log-level "loud" is not valid; allowed: debug, info, warn, error`, none, "--log-level=loud")
	f(`unknown flag --nope; see turnout help`, none, "--nope")
	f(`no value given for --http-addr; see turnout help`, none, "--http-addr")
	f(`unexpected argument "more"; see turnout help`, none, "--strict-sni", "more")
	f(`ROUTER_SERVICE_HTTPS_PORT="tls" is not valid; allowed: a port from 0 to 65535`, envOf("ROUTER_SERVICE_HTTPS_PORT", "tls"))
	f(`ROUTER_CANONICAL_HOSTNAME="10.0.0.1" is not valid; allowed: a lower-case DNS name such as router.example.com, not an IP address`, envOf("ROUTER_CANONICAL_HOSTNAME", "10.0.0.1"))
	f(`--override-hostname (ROUTER_OVERRIDE_HOSTNAME) requires --hostname-template (ROUTER_SUBDOMAIN)`, none, "--override-hostname")
	f(`--override-domains (ROUTER_OVERRIDE_DOMAINS) requires --hostname-template (ROUTER_SUBDOMAIN)`, envOf("ROUTER_OVERRIDE_DOMAINS", "a.test"))
	f(`ROUTER_SERVICE_NAMESPACE is required when ROUTER_SERVICE_NAME is specified`, envOf("ROUTER_SERVICE_NAME", "r"))
	f(`--name is empty; the router must have a name to identify itself in route status`, none, "--name=")
	f(`only one of --manifests and --kubeconfig, or other flags that say how to reach a cluster, may be given`, none, "--manifests=a", "--kubeconfig=b")
	const selector = `allowed: a Kubernetes selector such as type=public,env!=test: `
	f(`--labels "a b" is not valid; `+selector+`unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt`, none, "--labels", "a b")
	f(`ROUTE_FIELDS="a" is not valid; `+selector+`invalid selector: 'a'; can't understand 'a'`, envOf("ROUTE_FIELDS", "a"))
	f(`NAMESPACE_LABELS="=" is not valid; `+selector+`found '=', expected: !, identifier, or 'end of string'`, envOf("NAMESPACE_LABELS", "="))
	f(`PROJECT_LABELS="a>b" is not valid; `+selector+`unable to parse requirement: values[0]: Invalid value: "b": for 'Gt', 'Lt' operators, the value must be an integer`, envOf("PROJECT_LABELS", "a>b"))
	f(`only one of --namespace-labels (NAMESPACE_LABELS) and --namespace may be used`, envOf("NAMESPACE_LABELS", "a"), "-n", "b")
	f(`only one of --project-labels (PROJECT_LABELS) and --namespace may be used`, envOf("PROJECT_LABELS", "*"), "--namespace", "b")
	f(`only one of --namespace-labels (NAMESPACE_LABELS) and --project-labels (PROJECT_LABELS) may be used`, envOf("PROJECT_LABELS", "*", "NAMESPACE_LABELS", "a"))
	f(`--router, --namespace, --labels, --fields, --namespace-labels and --project-labels, and their variables, select objects of a cluster; they do nothing with --manifests`,
		envOf("ROUTE_LABELS", "a"), "--manifests=a")
	f(`--gateway and --gateway-deployments need --gateway-api`, envOf("TURNOUT_GATEWAY", "ns/gw"))
	f(`--gateway-deployments needs --gateway-pods: Gateways have Services then`, none, "--gateway-api", "--gateway-deployments")
	f(`--gateway serves one Gateway and writes nothing: --gateway-pods and --gateway-deployments are for the routers that all share`, none, "--gateway-api", "--gateway=ns/gw", "--gateway-pods=ns/routers")
	f(`--gateway serves one Gateway of a cluster and nothing else: not --manifests, --ingress, --ingress-controller, --router and options that select Routes`, none, "--gateway-api", "--gateway=ns/gw", "--ingress")
	f(`--gateway "gw" is not valid; allowed: NAMESPACE/NAME`, none, "--gateway-api", "--gateway=gw")
	if _, _, err := parseOptions([]string{"--help"}, none); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
}

func TestBadEnvironmentIsIgnoredWithAWarning(t *testing.T) {
	o, warnings, err := parseOptions(nil, envOf("ROUTER_STRICT_SNI", "yes", "ROUTER_DEFAULT_CLIENT_TIMEOUT", "1m30s",
		"ROUTER_LOAD_BALANCE_ALGORITHM", "uri", "ROUTER_COOKIE_NAME", "a b", "ROUTER_BACKEND_PROCESS_ENDPOINTS", "shuffle"))
	if err != nil {
		t.Fatal(err)
	}
	if o.server.StrictSNI || o.server.Proxy.Timeouts.Client != 30*time.Second || o.control.LoadBalance != "" || o.control.CookieName != "" {
		t.Errorf("%+v", o)
	}
	all := strings.Join(warnings, "\n")
	for _, want := range []string{`ROUTER_STRICT_SNI="yes" is ignored; allowed: true or false`, `ROUTER_DEFAULT_CLIENT_TIMEOUT="1m30s" is ignored`,
		`ROUTER_LOAD_BALANCE_ALGORITHM="uri" is ignored`, `ROUTER_COOKIE_NAME="a b" is ignored`, "have no effect here: ROUTER_BACKEND_PROCESS_ENDPOINTS"} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning %s in\n%s", want, all)
		}
	}
	if len(warnings) != 5 {
		t.Errorf("%d warnings", len(warnings))
	}
}

// TestOptionsAreDocumented compares flags, variables and defaults with
// docs/options.md and the help text.
func TestOptionsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/options.md")
	if err != nil {
		t.Fatal(err)
	}
	var help bytes.Buffer
	all := commands("turnout")
	all.Help(&help, &all.Commands[0])
	documented := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `--([a-z0-9-]+)` \\|([^|]*)\\|([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = strings.Trim(m[2], " `") + " " + strings.Trim(m[3], " `")
	}
	seen := map[string]bool{}
	for _, s := range settings(&options{}) {
		want := s.Env + " " + s.Def
		if documented[s.Flag] != want {
			t.Errorf("--%s: docs/options.md says %q, want %q", s.Flag, documented[s.Flag], want)
		}
		if !strings.Contains(help.String(), "--"+s.Flag) {
			t.Errorf("--%s is not in the help text", s.Flag)
		}
		if seen[s.Flag] || (s.Env != "" && seen[s.Env]) {
			t.Errorf("--%s or its variable is there twice", s.Flag)
		}
		seen[s.Flag], seen[s.Env] = true, true
		delete(documented, s.Flag)
	}
	for name := range documented {
		t.Errorf("docs/options.md describes --%s, which does not exist", name)
	}
}

// TestPodOfAGateway: a process that serves one Gateway has no ports of Routes, and reads the objects of that Gateway only.
func TestPodOfAGateway(t *testing.T) {
	o, _, err := parseOptions(nil, envOf("TURNOUT_GATEWAY_API", "true", "TURNOUT_GATEWAY", "ns/gw", "KUBERNETES_SERVICE_HOST", "10.96.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	if read := o.clusterConfig(nil, nil, nil).Gateway; o.server.HTTPAddr != "" || o.server.HTTPSAddr != "" || o.adminAddr == "" || read.String() != "ns/gw" {
		t.Errorf("%q, %q, admin port %q, reads %s", o.server.HTTPAddr, o.server.HTTPSAddr, o.adminAddr, read)
	}
}

func TestDefaultsOfSubcommand(t *testing.T) {
	o, _, err := parseOptions([]string{"--https-addr=127.0.0.1:1"}, envOf(), "http-addr", "127.0.0.1:8080", "https-addr", "127.0.0.1:8443")
	if err != nil || o.server.HTTPAddr != "127.0.0.1:8080" || o.server.HTTPSAddr != "127.0.0.1:1" {
		t.Errorf("%v %+v", err, o)
	}
}
