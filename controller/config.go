// Package controller turns objects into routing tables: Routes, Services,
// EndpointSlices and Secrets in, published tables and route status out.
//
// Feeders (package source) deliver events into sinks, which only keep the latest event
// of each object and wake the one owner goroutine, Controller.Run. It alone has state:
//
//	events ─► objects ─► admit (host claims, TLS) ─► translate ─► routing.Apply ─► Store.Publish ─► status
//	                └──► endpoints ─► balancer.Pool.Update                       (no table)
//
// After quiet the first event is handled at once; more events within the hold-off are
// collected until no more come, at most for the ceiling. Nothing is published before
// all feeders have delivered what there was when they started, and the secrets that
// routes refer to.
package controller

import (
	"errors"
	"fmt"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/validation"

	"turnout/controller/admit"
	"turnout/controller/source"
	"turnout/controller/status"
	"turnout/controller/translate"
	"turnout/internal/bound"
	"turnout/internal/problem"
	"turnout/internal/target"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// Options is how routes are admitted and what applies to those that say nothing
// themselves. Texts are as in the environment of the router; where a text can be
// invalid it counts as none. The zero value is the router's own defaults, with
// extended validation and external certificates on.
type Options struct {
	RouterName        string // name in route status; "" = "public"
	CanonicalHostname string // for route status; a DNS name, "" = none
	// Namespace is the namespace of the router's pod. Its Services belong to the administrator.
	// "" = unknown.
	Namespace string

	Domain                    string   // appended to spec.subdomain; "" = none
	HostTemplate              string   // host with ${name} and ${namespace}; "" = none
	OverrideHostname          bool     // the template applies to all routes
	OverrideDomains           []string // the template applies to hosts in these domains
	AllowedDomains            []string // hosts must be in one of these; empty = all
	DeniedDomains             []string // hosts must not be in one of these
	AllowWildcard             bool     // wildcardPolicy Subdomain is admitted
	DisableNamespaceOwnership bool     // routes of different namespaces may share a host

	SkipExtendedValidation  bool // TLS settings are not checked
	SkipExternalCertificate bool // spec.tls.externalCertificate is ignored
	// KeepWithoutSecret admits routes whose secret is not there or cannot be read, with a note: the rest of them is judged.
	KeepWithoutSecret bool
	// AsksClients says that the router asks clients of all hosts for certificates, which routes must not change: those that name authorities of their own are rejected.
	AsksClients           bool
	SkipUpgradeValidation bool // the condition UnservableInFutureVersions is left as it is
	ForceUnservable       bool // every admitted route gets it, to see what comes of it

	// SelectNamespaces leaves out the routes of namespaces without a Namespace object, or whose labels NamespaceLabels does not
	// select, silently, until there is one that it does.
	SelectNamespaces bool
	NamespaceLabels  string // a label selector; "" = all that there are
	RouteLabels      string // a label selector on routes, besides what the source was asked for; "" = all
	// Ingress has Ingresses served beside Routes, those of the classes whose controller is IngressController; "" = ingress.Controller. Both stay as they are
	// while the controller runs.
	Ingress           bool
	IngressController string

	// Gateways is which Gateways are served. It stays as it is while the controller runs.
	Gateways GatewayOptions

	// Router has only those routes served that a RouteBinding binds to this Router, by their UID, under the host that it says; "" = all. It
	// stays as it is while the controller runs.
	Router string

	ServerTimeout        time.Duration       // silence of an endpoint; 0 = 30 s
	TunnelTimeout        time.Duration       // silence of a tunnel; 0 = 1 h
	ConnectTimeout       time.Duration       // connecting to an endpoint; 0 = 5 s
	CheckInterval        time.Duration       // between two health checks of a server; 0 = 5 s
	SetForwardedHeaders  string              // append, replace, if-none, never; "" = append
	LoadBalance          string              // algorithm; "" = random, for passthrough source
	TCPBalance           string              // algorithm of passthrough routes; "" = LoadBalance
	CookieName           string              // sticky cookie; "" = one per route
	DefaultDestinationCA []byte              // PEM: verifies re-encrypt endpoints of routes without a CA; nil = not verified
	UpstreamALPN         []protocol.Protocol // offered to re-encrypt endpoints; nil = none

	// Origins says for people what decided about options, by flags such as --default-server-timeout; those that are not there are named
	// by their flags.
	Origins map[string]string

	IncludeUDP    bool // UDP ports are servers too
	AllowLoopback bool // loopback endpoint addresses are kept, for manifests on one machine
}

// Config is what a Controller needs.
type Config struct {
	Store   *routing.Store   // where tables are published; required
	Routing routing.Options  // how tables are compiled; its Registry is required
	Options Options          // how routes are treated
	Clock   func() time.Time // for the times in route status; nil = time.Now
	Log     *zap.Logger      // nil = no logs
	Bounds  *bound.Counts    // counts bounds that objects reach; nil = nobody does
	// Problems is notified of what is wrong with routes; nil = nobody asks.
	Problems *problem.List
	Secrets  source.Secrets // brings the secrets routes refer to; nil = secrets come unasked
	// Ingresses takes what became of Ingresses; nil = it is only shown.
	Ingresses status.IngressReporter
	// Gateways takes what is to be written about the Gateway API; nil = nothing is. Sockets opens the ports of Gateways; nil = they are open.
	// ConfigMaps brings those that objects of the Gateway API refer to; nil = they come unasked.
	Gateways   GatewayReporter
	Sockets    Sockets
	ConfigMaps ConfigMaps
	// Targets receives each new policy of targets; nil = the policy applies to endpoints only.
	Targets *target.Guard
	Status  status.Reporter // takes the status of routes; nil = it is only shown
	HoldOff time.Duration   // quiet to wait for after a change that is not the first; 0 = 10 ms
	Ceiling time.Duration   // longest time that changes can delay their handling; 0 = 250 ms
	// SecretWait is the longest time the first table, and later a route without a
	// certificate to go on with, waits for a secret; 0 = 10 s.
	SecretWait time.Duration
	// SweepEvery is the time between two clean-ups of pools and endpoints nothing uses
	// any more; 0 = 10 s.
	SweepEvery time.Duration

	translating func(*routev1.Route) // called before a route is translated; nil = nothing is, but in tests
}

// complete returns cfg with its defaults, or why it cannot be used.
func (cfg Config) complete() (Config, error) {
	switch {
	case cfg.Store == nil:
		return cfg, errors.New("cannot make controller: no store given")
	case cfg.Routing.Registry == nil:
		return cfg, errors.New("cannot make controller: no registry given")
	}
	if name := cfg.Options.CanonicalHostname; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		return cfg, fmt.Errorf("cannot make controller: invalid canonical hostname: %s", name)
	}
	if cfg.Options.OverrideHostname && cfg.Options.HostTemplate == "" {
		return cfg, errors.New("cannot make controller: overriding host names needs a host template")
	}
	if len(cfg.Options.OverrideDomains) > 0 && cfg.Options.HostTemplate == "" {
		return cfg, errors.New("cannot make controller: overriding the hosts of domains needs a host template")
	}
	if cfg.Options.RouterName == "" {
		cfg.Options.RouterName = "public"
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.HoldOff <= 0 {
		cfg.HoldOff = 10 * time.Millisecond
	}
	if cfg.Ceiling <= 0 {
		cfg.Ceiling = 250 * time.Millisecond
	}
	if cfg.SecretWait <= 0 {
		cfg.SecretWait = 10 * time.Second
	}
	if cfg.SweepEvery <= 0 {
		cfg.SweepEvery = 10 * time.Second
	}
	return cfg, nil
}

func (o *Options) admission() admit.Options {
	return admit.Options{
		Domain: o.Domain, HostTemplate: o.HostTemplate, OverrideHostname: o.OverrideHostname, OverrideDomains: o.OverrideDomains,
		AllowedDomains: o.AllowedDomains, DeniedDomains: o.DeniedDomains,
		AllowWildcard: o.AllowWildcard, DisableOwnership: o.DisableNamespaceOwnership,
	}
}

func (o *Options) translation() translate.Options {
	return translate.Options{
		Defaults: translate.Defaults{
			ServerTimeout: o.ServerTimeout, TunnelTimeout: o.TunnelTimeout, ConnectTimeout: o.ConnectTimeout, CheckInterval: o.CheckInterval,
			Forwarded: o.SetForwardedHeaders, LoadBalance: o.LoadBalance, TCPBalance: o.TCPBalance, CookieName: o.CookieName,
		},
		DestinationCA: o.DefaultDestinationCA,
		UpstreamALPN:  o.UpstreamALPN,
	}
}

// upgrade is what is said about the future of routes. Nothing that is admitted is
// known to be refused by a later version.
func (o *Options) upgrade() status.Upgrade {
	switch {
	case o.SkipUpgradeValidation:
		return status.UpgradeUnsaid
	case o.ForceUnservable:
		return status.UpgradeForced
	}
	return status.UpgradeSafe
}

func (o *Options) status() status.Options {
	return status.Options{RouterName: o.RouterName, CanonicalHostname: o.CanonicalHostname}
}
