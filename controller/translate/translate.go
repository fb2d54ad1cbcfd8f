// Package translate turns an admitted Route, with its services, endpoints and
// certificate, into a routing.RouteSpec. It does no I/O and its result depends on its
// input alone.
package translate

import (
	"fmt"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"turnout/balancer"
	"turnout/controller/endpoints"
	"turnout/internal/keypair"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// Options is what applies to all routes. The zero value is valid.
type Options struct {
	Defaults      Defaults
	DestinationCA []byte              // PEM: verifies endpoints of re-encrypt routes without a CA of their own; nil = they are not verified
	UpstreamALPN  []protocol.Protocol // offered to endpoints of re-encrypt routes; nil = no ALPN
	DisableH2C    bool                // endpoints that want HTTP/2 without TLS are spoken to in HTTP/1.1
}

// Input is one route and what belongs to it. It is not changed and not kept.
type Input struct {
	Route       *routev1.Route
	Host        string                           // effective host
	TLS         *routev1.TLSConfig               // as to be used, see admit.TLS; nil = plain HTTP
	Certificate *routing.CertificateSpec         // instead of the one in TLS; nil = that one
	Leaf        *keypair.Leaf                    // of the certificate in TLS, which was found to be usable; nil = nobody has read it
	Service     func(name string) *endpoints.Set // endpoints of a service of the namespace, never nil
	Notes       []string                         // that there are about it already

	// What annotations refer to, see SecretsOf, is looked up by the caller.
	ClientCA       string                  // authorities in PEM; "" = there is no such annotation
	PodCert        routing.CertificateSpec // shown to endpoints
	PodCertProblem string                  // why there is none, and endpoints are not reached; "" = there is

	Shared *Shared // servers of routes that were translated with the same endpoints; nil = of none
}

// Result is what a route has become.
type Result struct {
	Spec     *routing.RouteSpec // nil after Settle; its Targets are those of the result
	Place    Place              // where the route is served
	Targets  []balancer.Target
	Kept     *routing.CertificateSpec // the certificate of Spec
	Services []string                 // names of all services, sorted, each once
	Notes    []string                 // what had no effect or is missing, for people
	Closed   bool                     // an allow-list has no valid entry: nobody may connect
	fleet    fleet
	beside   *beside // nil = nothing
	clients  *routing.ClientAuthSpec
	own      int // how many of Notes, from the first on, are not about its servers
}

// Place is where a route is served.
type Place struct {
	Host, Path  string
	Wildcard    bool
	Termination routing.Termination
}

// Settle drops Spec: the table has it now, and there are as many results as routes.
func (r *Result) Settle() { r.Spec = nil }

// Translator translates routes. It is made by New and used by one goroutine.
type Translator struct {
	options  Options
	tls      interned[*balancer.TLS] // by destination CA and server name
	allowed  interned[*routing.AllowList]
	compiled compiled
}

// New returns a translator. It fails when the destination CA holds no certificate.
func New(options Options) (*Translator, error) {
	options.Defaults = options.Defaults.complete()
	t := &Translator{options: options}
	t.tls.most = maxAuthorities
	if len(options.DestinationCA) > 0 {
		if err := CheckDestinationCA(options.DestinationCA); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// CheckDestinationCA fails when pem is torn, or holds no certificate that endpoints could be verified against.
func CheckDestinationCA(pem []byte) error {
	_, err := keypair.Decode(pem)
	if err == nil {
		_, err = balancer.NewTLS(balancer.TLSConfig{CA: string(pem), Verify: true})
	}
	if err != nil {
		return fmt.Errorf("cannot use default destination CA: %w", err)
	}
	return nil
}

// SetDestinationCA replaces Options.DestinationCA by one that CheckDestinationCA has passed, for the routes translated from
// now on.
func (t *Translator) SetDestinationCA(pem []byte) { t.options.DestinationCA = pem }

// SetDefaults replaces Options by next, but for DestinationCA, for the routes translated from now on.
func (t *Translator) SetDefaults(next Options) {
	next.Defaults, next.DestinationCA = next.Defaults.complete(), t.options.DestinationCA
	t.options = next
}

// Route translates one route. Wrong values are noted and replaced by defaults; there is
// nothing that makes it fail.
func (t *Translator) Route(in Input) *Result {
	r := in.Route
	out := &Result{Spec: &routing.RouteSpec{
		RouteKey: routing.RouteKey{Namespace: r.Namespace, Name: r.Name, UID: string(r.UID)},
		Host:     in.Host,
		Path:     r.Spec.Path,
		Wildcard: r.Spec.WildcardPolicy == routev1.WildcardPolicySubdomain,
	}}
	spec := out.Spec
	spec.Termination, spec.Insecure = termination(in.TLS)
	a := &annotations{values: r.Annotations, notes: slices.Clip(in.Notes)}
	out.clients = a.clientAuth(&in, spec)
	a.policy(&in, &t.options.Defaults, spec)
	spec.Policy.Allow, out.Closed = t.allowList(a)
	spec.Policy.Rates = a.rates(spec.Termination == routing.TermPassthrough)
	spec.Limit = a.podConnections()
	spec.Check = a.checkInterval(&t.options.Defaults)
	spec.HTTPCheck = a.httpCheck(in.Host, spec.Termination)
	spec.EjectAfterErrors, spec.SlowStart = a.ejectAfterErrors(), a.slowStart()
	a.headers(&t.compiled, r, &spec.Policy, spec.Termination)
	if spec.Termination == routing.TermEdge || spec.Termination == routing.TermReencrypt {
		spec.Certificate = certificate(&in)
	}
	t.fleet(a, &in, out)
	a.unread()
	out.Notes, out.own = a.notes, len(a.notes)
	out.Kept = spec.Certificate
	out.Place = Place{spec.Host, spec.Path, spec.Wildcard, spec.Termination}
	out.fill(in.Service, in.Shared)
	return out
}

// fleet finds out which services a route has, and how their endpoints are chosen and reached.
func (t *Translator) fleet(a *annotations, in *Input, out *Result) {
	r, spec := in.Route, out.Spec
	f := fleet{asked: spec.HTTPCheck.Asks(), names: a.share(r, services(r)), idle: "no endpoint can be chosen: " + idleRoute, kind: endpoints.Kind{
		Port:        port(r),
		Passthrough: spec.Termination == routing.TermPassthrough,
		H2C:         !t.options.DisableH2C && (spec.Termination == routing.TermNone || spec.Termination == routing.TermEdge),
	}}
	if spec.Policy.Redirect != nil {
		f.idle = ""
	}
	out.beside = a.beside(f.kind)
	active := 0
	for i := range f.names {
		if f.names[i].weight > 0 {
			active++
		}
	}
	id := a.podIdentity(in, spec.Termination)
	t.secure(a, in, spec, &id, f.names)
	out.Services = names(out.Services, f.names)
	out.beside.sides(func(s *side) {
		t.secure(a, in, spec, &id, s.fleet.names)
		out.Services = names(out.Services, s.fleet.names)
	})
	spec.Balance = a.balance(&t.options.Defaults, f.kind.Passthrough, active)
	out.fleet = f
}

// names adds those of services to a sorted list, each once.
func names(list []string, services []backend) []string {
	for i := range services {
		if at, found := slices.BinarySearch(list, services[i].name); !found {
			list = slices.Insert(list, at, services[i].name)
		}
	}
	return list
}

// secure says how TLS is done to the endpoints of services of a re-encrypt route.
func (t *Translator) secure(a *annotations, in *Input, spec *routing.RouteSpec, id *podIdentity, services []backend) {
	if spec.Termination != routing.TermReencrypt {
		return
	}
	for i := range services {
		config := t.destination(in.TLS, spec.Namespace, services[i].name)
		id.apply(a, &config)
		tls, err := t.identity(&config)
		switch {
		case id.problem != "":
			a.once(id.problem + "; endpoints are not reached")
			services[i].unreachable = true
		case err != nil:
			a.once("destinationCACertificate: " + err.Error() + "; endpoints are not reached")
			services[i].unreachable = true
		}
		services[i].tls = tls
	}
}

// termination returns where TLS ends and what becomes of plain requests. Words that are
// not known count as edge and None. Without a word TLS ends nowhere: plain requests are served, or redirected if that is the
// policy. Either is possible without extended validation only.
func termination(tls *routev1.TLSConfig) (routing.Termination, routing.InsecurePolicy) {
	if tls == nil {
		return routing.TermNone, routing.InsecureNone
	}
	term := routing.TermEdge
	switch tls.Termination {
	case "":
		term = routing.TermNone
	case routev1.TLSTerminationReencrypt:
		term = routing.TermReencrypt
	case routev1.TLSTerminationPassthrough:
		term = routing.TermPassthrough
	}
	switch tls.InsecureEdgeTerminationPolicy {
	case routev1.InsecureEdgeTerminationPolicyAllow:
		if term != routing.TermPassthrough && term != routing.TermNone {
			return term, routing.InsecureAllow
		}
	case routev1.InsecureEdgeTerminationPolicyRedirect:
		return term, routing.InsecureRedirect
	}
	return term, routing.InsecureNone
}

func certificate(in *Input) *routing.CertificateSpec {
	if in.Certificate != nil {
		return in.Certificate
	}
	if in.TLS.Certificate == "" {
		return nil
	}
	return &routing.CertificateSpec{Certificate: in.TLS.Certificate, Key: in.TLS.Key, CA: in.TLS.CACertificate, Leaf: in.Leaf}
}

// port returns the target port of a route as text, "" for all ports.
func port(r *routev1.Route) string {
	if r.Spec.Port == nil {
		return ""
	}
	if p := r.Spec.Port.TargetPort; p.Type == intstr.String {
		return p.StrVal
	}
	return r.Spec.Port.TargetPort.String()
}

// destination is how the endpoints of a service are verified.
func (t *Translator) destination(config *routev1.TLSConfig, namespace, service string) balancer.TLSConfig {
	tls := balancer.TLSConfig{ALPN: t.options.UpstreamALPN}
	switch {
	case config.DestinationCACertificate != "":
		tls.CA, tls.Verify = config.DestinationCACertificate, true
	case len(t.options.DestinationCA) > 0:
		tls.CA, tls.Verify = string(t.options.DestinationCA), true
		tls.ServerName = service + "." + namespace + ".svc"
	}
	return tls
}

// identity returns how TLS is done to endpoints.
func (t *Translator) identity(config *balancer.TLSConfig) (*balancer.TLS, error) {
	key := config.ServerName + "\x00" + config.CA
	if config.CertPEM != "" || len(config.SubjectAltNames) > 0 {
		key += fmt.Sprintf("\x00%q %q %q", config.SubjectAltNames, config.CertPEM, config.KeyPEM)
	}
	if known, ok := t.tls.get(key); ok {
		return known, nil
	}
	made, err := balancer.NewTLS(*config)
	if err != nil {
		return nil, err
	}
	t.tls.put(key, made)
	return made, nil
}

// backend is one service of a route.
type backend struct {
	name        string
	weight      int
	tls         *balancer.TLS
	unreachable bool
}

// services returns the services of a route in the order of their names. Of a service
// that is named twice the later weight counts.
func services(r *routev1.Route) []backend {
	list := make([]backend, 0, 1+len(r.Spec.AlternateBackends))
	add := func(ref *routev1.RouteTargetReference) {
		if ref.Name == "" {
			return // a rule of an Ingress that leads nowhere
		}
		b := backend{name: ref.Name, weight: weight(ref.Weight)}
		if i := slices.IndexFunc(list, func(o backend) bool { return o.name == b.name }); i >= 0 {
			list[i] = b
			return
		}
		list = append(list, b)
	}
	add(&r.Spec.To)
	for i := range r.Spec.AlternateBackends {
		add(&r.Spec.AlternateBackends[i])
	}
	slices.SortFunc(list, func(a, b backend) int { return strings.Compare(a.name, b.name) })
	return list
}

// weight returns the weight of a service. Objects of an API server always have one.
func weight(w *int32) int {
	if w == nil {
		return 1
	}
	return min(max(int(*w), 0), balancer.MaxWeight)
}
