package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"

	"turnout/internal/logging"
	"turnout/internal/server"
	"turnout/tlsmux"
)

// options is the router's whole configuration after flags, environment and
// defaults have been put together. It is plain data: run.go hands the parts to
// the packages.
type options struct {
	server    server.Config // of the request path; what is not in an option is set by router.go
	adminAddr string        // host:port

	manifests, kubeconfig string
	cluster               bool // objects come from a cluster
	selection
	serviceAccount           string // NAMESPACE:NAME
	resync                   time.Duration
	updateStatus, clearStale bool

	logs         logging.RequestsConfig
	logLevel     zapcore.Level
	logLevelFile string // "" = none

	// The pieces of the addresses, as the environment gives them.
	httpPort, httpsPort, statsPort int
	listenAddr, ipMode             string

	adminPort adminOptions
	headers   headerOptions
	answers   answerOptions

	certificate       tlsmux.DefaultCertificate
	destinationCAPath string
	suitesLeftOut     []string // of a set or keyword of cipher suites that --ciphers names
	mutual            mutualOptions
	notes             []string // what the values ask for and do not get

	name, canonicalHostname                  string
	hostnameTemplate, domain                 string
	overrideHostname                         bool
	overrideDomains, deniedDomains           []string
	allowedDomains                           []string
	allowWildcardRoutes, disableOwnership    bool
	extendedValidation                       bool
	externalCertificates                     bool
	upgradeValidation, forceUnservable       bool
	cookieName, balance, tcpBalance, forward string

	serverTimeout, tunnelTimeout time.Duration
	checkInterval                time.Duration
	bindAfterSync                bool
	handoverSocket               string
	shutdownDelay                time.Duration // below 0: not given
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

// usageError is a mistake in the command line or the environment: one line, exit
// status 2.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// environment looks a variable up as os.LookupEnv does. Empty is the same as unset.
type environment func(name string) (string, bool)

// get returns the value of name, "" when it is unset.
func (e environment) get(name string) string {
	v, _ := e(name)
	return v
}

// setting is one option: how it is called, what it accepts, where it goes.
type setting struct {
	flag  string // without dashes
	short string // another name of the flag, "" for none
	env   string // "" when only the flag exists
	def   string // "" leaves the field's zero value
	// envStops says that a bad value in the environment stops the start. Otherwise
	// it is ignored with a warning, as the router we replace ignores it silently.
	envStops bool
	isBool   bool
	value    string // what the help calls the value
	help     string
	set      func(v string) error // the error says what is allowed
}

// parseOptions puts the defaults, env and args of a subcommand together; flags
// win over the environment. warnings are about values of the environment that
// were ignored. The error is a usageError or flag.ErrHelp.
func parseOptions(args []string, env environment, defaults ...string) (o *options, warnings []string, err error) {
	o = &options{shutdownDelay: -1}
	table := settings(o)
	given, err := parseFlags(table, args)
	if err != nil {
		return nil, nil, err
	}
	for i := 0; i+1 < len(defaults); i += 2 {
		for j := range table {
			if table[j].flag == defaults[i] {
				table[j].def = defaults[i+1]
			}
		}
	}
	for _, s := range table {
		if s.def != "" {
			if err := s.set(s.def); err != nil {
				return nil, nil, fmt.Errorf("BUG: default of --%s: %w", s.flag, err)
			}
		}
		if v, ok := given[s.flag]; ok {
			if err := s.set(v); err != nil {
				return nil, nil, usagef("--%s %q is not valid; %v", s.flag, v, err)
			}
			continue
		}
		v := ""
		if s.env != "" {
			v = env.get(s.env)
		}
		if v == "" {
			continue
		}
		if err := s.set(v); err != nil {
			if s.envStops {
				return nil, nil, usagef("%s=%q is not valid; %v", s.env, v, err)
			}
			warnings = append(warnings, fmt.Sprintf("%s=%q is ignored; %v", s.env, v, err))
		}
	}
	o.headers.complete(o)
	o.answers.complete(o)
	warnings = append(append(warnings, o.notes...), o.mutual.idle(&o.server)...)
	warnings = append(warnings, formatDoubts(&o.logs, o.server.Proxy.Captures)...)
	for _, name := range laterVariables() {
		if env.get(name) != "" {
			warnings = append(warnings, name+" is set, but this version does not have what it configures")
		}
	}
	if line := uselessWarning(env); line != "" {
		warnings = append(warnings, line)
	}
	warnings = append(warnings, foreignWarnings(given, table)...)
	o.resolveAddresses()
	return o, warnings, o.check(given, env)
}

// parseFlags reads args without judging any value.
func parseFlags(table []setting, args []string) (map[string]string, error) {
	given := map[string]string{}
	set := flag.NewFlagSet("turnout", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, s := range table {
		store := func(v string) error { given[s.flag] = v; return nil }
		if s.isBool {
			set.BoolFunc(s.flag, s.help, store)
		} else {
			set.Func(s.flag, s.help, store)
		}
		if s.short != "" {
			set.Func(s.short, s.help, store)
		}
	}
	addForeign(set, table, func(name string) { given[name] = "" })
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		text := err.Error()
		text = strings.Replace(text, "flag provided but not defined: -", "unknown flag --", 1)
		text = strings.Replace(text, "flag needs an argument: -", "no value given for --", 1)
		return nil, usagef("%s; see turnout help", text)
	}
	if set.NArg() > 0 {
		return nil, usagef("unexpected argument %q; see turnout help", set.Arg(0))
	}
	return given, nil
}

// resolveAddresses fills the addresses that were not given whole from ports.
func (o *options) resolveAddresses() {
	host := map[string]string{"v4": "0.0.0.0", "v6": "::", "v4v6": ""}[o.ipMode]
	if o.server.HTTPAddr == "" {
		o.server.HTTPAddr = net.JoinHostPort(host, strconv.Itoa(o.httpPort))
	}
	if o.server.HTTPSAddr == "" {
		o.server.HTTPSAddr = net.JoinHostPort(host, strconv.Itoa(o.httpsPort))
	}
	if o.adminAddr == "" {
		o.adminAddr = o.listenAddr
	}
	if o.adminAddr == "" {
		if o.statsPort == 0 { // unset for the router we replace
			o.statsPort = 1936
		}
		o.adminAddr = net.JoinHostPort("0.0.0.0", strconv.Itoa(o.statsPort))
	}
}

// useCluster decides whether objects come from a cluster.
func (o *options) useCluster(env environment) {
	pod := o.manifests == "" && o.kubeconfig == "" && env.get("KUBERNETES_SERVICE_HOST") != ""
	o.cluster = o.kubeconfig != "" || pod
	if o.shutdownDelay < 0 && pod { // not given
		o.shutdownDelay = 45 * time.Second
	}
}

// check finds options that contradict each other.
func (o *options) check(given map[string]string, env environment) error {
	_, nameFlag := given["name"]
	switch {
	case o.server.TLS.MaxVersion != 0 && o.server.TLS.MaxVersion < o.server.TLS.MinVersion:
		return usagef("--ssl-max-version (SSL_MAX_VERSION) is below --ssl-min-version (SSL_MIN_VERSION)")
	case o.hostnameTemplate == "" && o.overrideHostname:
		return usagef("--override-hostname (ROUTER_OVERRIDE_HOSTNAME) requires --hostname-template (ROUTER_SUBDOMAIN)")
	case o.hostnameTemplate == "" && len(o.overrideDomains) > 0:
		return usagef("--override-domains (ROUTER_OVERRIDE_DOMAINS) requires --hostname-template (ROUTER_SUBDOMAIN)")
	case o.name == "":
		return usagef("--name is empty; the router must have a name to identify itself in route status")
	case !nameFlag && env.get("ROUTER_SERVICE_NAME") != "" && env.get("ROUTER_SERVICE_NAMESPACE") == "":
		return usagef("ROUTER_SERVICE_NAMESPACE is required when ROUTER_SERVICE_NAME is specified")
	case o.manifests != "" && o.kubeconfig != "":
		return usagef("only one of --manifests and --kubeconfig may be given")
	case o.namespace != "" && o.namespaceLabels != "":
		return usagef("only one of --namespace-labels (NAMESPACE_LABELS) and --namespace may be used")
	case o.namespace != "" && o.projectLabels != "":
		return usagef("only one of --project-labels (PROJECT_LABELS) and --namespace may be used")
	case o.namespaceLabels != "" && o.projectLabels != "":
		return usagef("only one of --namespace-labels (NAMESPACE_LABELS) and --project-labels (PROJECT_LABELS) may be used")
	case o.manifests != "" && o.selection != selection{}:
		return usagef("--namespace, --labels, --fields, --namespace-labels and --project-labels, and their variables, select objects of a cluster; they do nothing with --manifests")
	}
	return nil
}
