package main

import (
	"net"
	"strconv"
	"time"

	"go.uber.org/zap/zapcore"

	"turnout/controller"
	"turnout/controller/shard/member"
	"turnout/controller/source"
	"turnout/controller/source/cluster"
	"turnout/controller/source/local"
	"turnout/internal/access"
	"turnout/internal/gateways"
	"turnout/internal/logging"
	"turnout/internal/metrics"
	"turnout/internal/option"
	"turnout/internal/option/haproxy"
	"turnout/internal/option/ingresses"
	"turnout/internal/server"
	"turnout/internal/tracing"
	"turnout/tlsmux"
)

// options is the router's whole configuration after flags, environment and
// defaults have been put together. It is plain data: run.go hands the parts to
// the packages.
type options struct {
	server    server.Config // of the request path; what is not in an option is set by router.go
	adminAddr string        // host:port

	manifests string
	backends  local.Backends // of --manifests
	reach     cluster.Reach
	cluster   bool // objects come from a cluster
	selection
	replica                  member.Config // what is not in an option is set by cluster.go
	serviceAccount           string        // NAMESPACE:NAME
	resync                   time.Duration
	updateStatus, clearStale bool

	logs         logging.RequestsConfig
	logLevel     zapcore.Level
	logLevelFile string // "" = none
	logFormat    string // auto, json or console

	// The pieces of the addresses, as the environment gives them.
	httpPort, httpsPort, statsPort int
	listenAddr, ipMode             string

	adminPort access.Options
	metrics   metrics.Options
	tracing   tracing.Options
	headers   headerOptions
	answers   answerOptions

	ingressController source.Key // zero = none
	origins           []option.Origin

	certificate       tlsmux.DefaultCertificate
	destinationCAPath string
	suitesLeftOut     []string // of a set or keyword of cipher suites that --ciphers names
	mutual            mutualOptions
	notes             []string // what the values ask for and do not get
	doubts            []string // what of the IngressController is put to use only in part

	ingresses      ingresses.Options
	gateways       gateways.Options
	control        controller.Options // of admission and translation; see controllerOptions
	bindAfterSync  bool
	handoverSocket string
	shutdownDelay  time.Duration // below 0: not given
}

// selection is which objects of a cluster are served.
type selection struct {
	namespace                      string
	routeLabels, routeFields       string
	namespaceLabels, projectLabels string
}

// namespaces returns the label selector of namespaces; "" = all of them.
func (s *selection) namespaces() string {
	if s.projectLabels != "" && s.projectLabels != "*" {
		return s.projectLabels
	}
	return s.namespaceLabels
}

// parseOptions puts the defaults, env and args of a subcommand together; flags
// win over the environment. warnings are about values of the environment that
// were ignored. The error is an option.UsageError or flag.ErrHelp.
func parseOptions(args []string, env option.Environment, defaults ...string) (o *options, warnings []string, err error) {
	return parseSaid(args, env, nil, defaults...)
}

// parseSaid is parseOptions with what others say of options that neither flags nor the environment set.
func parseSaid(args []string, env option.Environment, said []option.Said, defaults ...string) (o *options, warnings []string, err error) {
	o = &options{shutdownDelay: -1, backends: local.Backends{}}
	table := settings(o)
	foreign := haproxy.Flags(table)
	parsed, err := option.ParseSaid(table, foreign, args, env, said, defaults...)
	if err != nil {
		return nil, nil, err
	}
	given, warnings := parsed.Given, parsed.Warnings
	o.origins, o.control.Origins = parsed.Origins, option.Decided(parsed.Origins)
	o.headers.complete(o)
	o.answers.complete(o)
	warnings = append(append(warnings, o.notes...), o.mutual.idle(&o.server)...)
	warnings = append(warnings, o.tracing.Doubts()...)
	warnings = append(warnings, o.logs.Doubts(o.server.Proxy.Captures)...)
	if line := haproxy.VariableWarning(env); line != "" {
		warnings = append(warnings, line)
	}
	if line := haproxy.FlagWarning(given, foreign); line != "" {
		warnings = append(warnings, line)
	}
	o.resolveAddresses()
	return o, warnings, o.check(given, env)
}

// resolveAddresses fills the addresses that were not given whole from ports.
func (o *options) resolveAddresses() {
	host := map[string]string{"v4": "0.0.0.0", "v6": "::", "v4v6": ""}[o.ipMode]
	if o.server.HTTPAddr == "" && o.gateways.Routes() {
		o.server.HTTPAddr = net.JoinHostPort(host, strconv.Itoa(o.httpPort))
	}
	if o.server.HTTPSAddr == "" && o.gateways.Routes() {
		o.server.HTTPSAddr = net.JoinHostPort(host, strconv.Itoa(o.httpsPort))
	}
	if o.adminAddr == "" {
		o.adminAddr = o.listenAddr
	}
	if o.adminAddr == "" {
		if o.statsPort == 0 { // unset for the HAProxy router
			o.statsPort = 1936
		}
		o.adminAddr = net.JoinHostPort("0.0.0.0", strconv.Itoa(o.statsPort))
	}
}

// useCluster decides whether objects come from a cluster.
func (o *options) useCluster(env option.Environment) {
	pod := o.manifests == "" && !o.reach.Asked() && env.Get("KUBERNETES_SERVICE_HOST") != ""
	o.cluster = o.manifests == "" && o.reach.Known() || pod
	if o.shutdownDelay < 0 && pod { // not given
		o.shutdownDelay = 45 * time.Second
	}
}

// check finds options that contradict each other.
func (o *options) check(given map[string]string, env option.Environment) error {
	_, nameFlag := given["name"]
	if o.replica.Router != "" && !nameFlag && env.Get("ROUTER_SERVICE_NAME") == "" {
		o.control.RouterName = o.replica.Router
	}
	if err := o.gateways.Check(o.manifests != "" || o.control.Ingress || o.replica.Router != "" || o.ingressController != source.Key{} || o.selection != selection{}); err != nil {
		return err
	}
	switch {
	case o.replica.Router != "" && o.control.RouterName != o.replica.Router:
		return option.Usagef("--name (ROUTER_SERVICE_NAME) is %q and --router (TURNOUT_ROUTER) %q; with --router the name in the status of Routes is that of the Router: leave --name out", o.control.RouterName, o.replica.Router)
	case o.server.TLS.MaxVersion != 0 && o.server.TLS.MaxVersion < o.server.TLS.MinVersion:
		return option.Usagef("--ssl-max-version (SSL_MAX_VERSION) is below --ssl-min-version (SSL_MIN_VERSION)")
	case o.control.HostTemplate == "" && o.control.OverrideHostname:
		return option.Usagef("--override-hostname (ROUTER_OVERRIDE_HOSTNAME) requires --hostname-template (ROUTER_SUBDOMAIN)")
	case o.control.HostTemplate == "" && len(o.control.OverrideDomains) > 0:
		return option.Usagef("--override-domains (ROUTER_OVERRIDE_DOMAINS) requires --hostname-template (ROUTER_SUBDOMAIN)")
	case o.control.RouterName == "":
		return option.Usagef("--name is empty; the router must have a name to identify itself in route status")
	case !nameFlag && env.Get("ROUTER_SERVICE_NAME") != "" && env.Get("ROUTER_SERVICE_NAMESPACE") == "":
		return option.Usagef("ROUTER_SERVICE_NAMESPACE is required when ROUTER_SERVICE_NAME is specified")
	case o.manifests != "" && o.reach.Asked():
		return option.Usagef("only one of --manifests and --kubeconfig, or other flags that say how to reach a cluster, may be given")
	case o.namespace != "" && o.namespaceLabels != "":
		return option.Usagef("only one of --namespace-labels (NAMESPACE_LABELS) and --namespace may be used")
	case o.namespace != "" && o.control.NamespaceLabels != "":
		return option.Usagef("--namespace wins: the router reads no namespaces")
	case o.namespace != "" && o.projectLabels != "":
		return option.Usagef("only one of --project-labels (PROJECT_LABELS) and --namespace may be used")
	case o.namespaceLabels != "" && o.projectLabels != "":
		return option.Usagef("only one of --namespace-labels (NAMESPACE_LABELS) and --project-labels (PROJECT_LABELS) may be used")
	case o.manifests == "" && len(o.backends) > 0:
		return option.Usagef("--backend is for services of --manifests, which is not given")
	case o.manifests != "" && (o.selection != selection{} || o.replica.Router != ""):
		return option.Usagef("--router, --namespace, --labels, --fields, --namespace-labels and --project-labels, and their variables, select objects of a cluster; they do nothing with --manifests")
	}
	return nil
}
