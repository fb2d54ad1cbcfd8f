package ingress

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"

	"turnout/controller/expansion"
	"turnout/routing"
)

// The reasons of problems: those of events.
const (
	ReasonService    = "ServiceNotFound"
	ReasonPort       = "ServicePortNotFound"
	ReasonExternal   = "UnsupportedService"
	ReasonResource   = "UnsupportedBackend"
	ReasonDuplicate  = "DuplicatePath"
	ReasonAnnotation = "UnsupportedAnnotation"
	ReasonTLSHost    = "UnusedCertificate"
	ReasonTooMany    = "TooManyRules"
	ReasonPath       = "UnsupportedPath"

	ReasonCertificate = "CertificateNotUsed" // the default certificate, or the last good one, is served
)

// Problem is something of an Ingress that cannot be served, or not as it is written. The zero value is none.
type Problem struct {
	Reason  string // one of the reasons, or one of admission
	Message string // for people: what is wrong, and what to do
}

// Input is an Ingress and what belongs to it. It is not changed.
type Input struct {
	Ingress *networkingv1.Ingress
	Service func(name string) *corev1.Service // of the namespace, with its ports; nil = there is none
}

// Rules returns the largest number of rules that an Ingress may expand to: its paths, the hosts
// that only spec.tls names, and a default backend for each host.
func Rules(in *networkingv1.Ingress) (n int) {
	hosts := len(in.Spec.Rules)
	for i := range in.Spec.Rules {
		if http := in.Spec.Rules[i].HTTP; http != nil {
			n += len(http.Paths)
		}
	}
	for i := range in.Spec.TLS {
		hosts += len(in.Spec.TLS[i].Hosts)
	}
	return n + hosts + 1
}

// Result is what becomes of an Ingress.
type Result struct {
	Rules    []Rule    // each with a name of its own; in the order of the Ingress, default backends last
	Problems []Problem // in the order in which they were found
	Services []string  // that were asked for, sorted, each once
	Beyond   int       // rules left out, because the Ingress expands to too much
	Size     expansion.Size
}

// Expand returns what becomes of an Ingress. There is nothing that makes it fail.
func Expand(in Input) Result {
	e := expander{in: in, treatment: readTreatment(in.Ingress.Annotations), secrets: secretsOf(in.Ingress.Spec.TLS), annotations: ofRoute(in.Ingress.Annotations), names: make(map[string]bool)}
	e.out.Problems = append(slices.Clone(e.treatment.refused), e.treatment.notes...)
	items := e.collect()
	items = append(items, e.ofTLS(items)...)
	items = e.distinct(items)
	source := expansion.Source(in.Ingress)
	most, why := expansion.MostRules(len(items), in.Ingress.Annotations, source)
	if e.out.Beyond = len(items) - most; why != "" {
		items = items[:most]
		e.problem(ReasonTooMany, "it %s: the first %d rules are served: write several Ingresses", why, most)
	}
	e.out.Size = expansion.Ingress(most, in.Ingress.Annotations, source)
	for i := range items {
		if it := &items[i]; e.passes(it) {
			e.resolve(it)
			e.out.Rules = append(e.out.Rules, e.rule(it))
		}
	}
	slices.Sort(e.out.Services)
	e.out.Services = slices.Compact(e.out.Services)
	return e.out
}

// expander is one call of Expand.
type expander struct {
	in          Input
	treatment   treatment
	secrets     map[string]string // by host, see secretsOf
	annotations map[string]string // of Routes
	names       map[string]bool   // of Routes that are made
	said        map[Problem]bool
	out         Result
}

// item is a path of a host on its way to a rule.
type item struct {
	host      string // as in the Ingress; "" = any
	path      routing.PathMatch
	isDefault bool
	backend   *networkingv1.IngressBackend
	at        string // where it stands, for people

	service, port string // "" = none, and all ports
	problem       Problem
}

// claim is what distinguishes rules of a host.
func (it *item) claim() string {
	r := Rule{Path: it.path, Default: it.isDefault}
	return r.Claim()
}

func (e *expander) problem(reason, format string, args ...any) Problem {
	p := Problem{reason, fmt.Sprintf(format, args...)}
	if e.said == nil {
		e.said = make(map[Problem]bool)
	}
	if !e.said[p] { // one Service is named by many paths
		e.said[p] = true
		e.out.Problems = append(e.out.Problems, p)
	}
	return p
}

// collect returns the paths of the rules, then the default backend for each host and for any.
func (e *expander) collect() (items []item) {
	spec := &e.in.Ingress.Spec
	hosts, known := []string{""}, map[string]bool{"": true}
	for i := range spec.Rules {
		rule := &spec.Rules[i]
		if rule.Host == AnyHost {
			continue // the API allows no such host
		}
		if !known[rule.Host] {
			hosts, known[rule.Host] = append(hosts, rule.Host), true
		}
		if rule.HTTP == nil {
			continue
		}
		for j := range rule.HTTP.Paths {
			p := &rule.HTTP.Paths[j]
			it := item{host: rule.Host, path: routing.PathMatch{Kind: routing.PathPrefix, Value: p.Path}, backend: &p.Backend, at: fmt.Sprintf("spec.rules[%d].http.paths[%d]", i, j)}
			if p.PathType != nil && *p.PathType == networkingv1.PathTypeExact {
				it.path.Kind = routing.PathExact
			}
			items = append(items, it)
		}
	}
	if spec.DefaultBackend != nil {
		for _, host := range hosts {
			items = append(items, item{host: host, path: routing.PathMatch{Kind: routing.PathPrefix}, isDefault: true, backend: spec.DefaultBackend, at: "spec.defaultBackend"})
		}
	}
	return items
}

// distinct leaves of the paths of a host that take the same requests the one with the longest text, and of equal ones the first.
func (e *expander) distinct(items []item) []item {
	type place struct{ host, claim string }
	at := make(map[place]int, len(items))
	kept := items[:0]
	for _, it := range items {
		key := place{it.host, it.claim()}
		i, there := at[key]
		if !there {
			at[key] = len(kept)
			kept = append(kept, it)
			continue
		}
		winner, loser := &kept[i], it
		if len(it.path.Value) > len(winner.path.Value) {
			loser, *winner = *winner, it
		}
		if !loser.isDefault {
			e.problem(ReasonDuplicate, "%s takes the same requests as %s, which is served: remove one of the two", loser.at, winner.at)
		}
	}
	return kept
}

// passes reports whether an item can be served with the termination of the Ingress.
func (e *expander) passes(it *item) bool {
	if e.treatment.termination != routev1.TLSTerminationPassthrough {
		return true
	}
	switch {
	case it.host == "" && it.isDefault:
		return false // hosts that are named have it
	case it.host == "":
		e.problem(ReasonPath, "%s is not served: passthrough termination is by the host that a client names, and the rule has none", it.at)
		return false
	case it.path.Kind == routing.PathExact || strings.Trim(it.path.Value, "/") != "":
		e.problem(ReasonPath, "%s is not served: with passthrough termination nobody sees paths; write / as Prefix", it.at)
		return false
	}
	it.path.Value = ""
	return true
}

// resolve finds the Service of an item and the name of its port.
func (e *expander) resolve(it *item) {
	if refused := e.treatment.refused; len(refused) > 0 {
		it.problem = refused[0]
		return
	}
	b := it.backend
	if b.Service == nil {
		kind := "no Service"
		if b.Resource != nil {
			kind = "a " + b.Resource.Kind
		}
		it.problem = e.problem(ReasonResource, "the backend of %s is %s, and only Services are served: requests are answered with 503", it.at, kind)
		return
	}
	e.out.Services = append(e.out.Services, b.Service.Name)
	service := e.in.Service(b.Service.Name)
	switch {
	case service == nil:
		it.problem = e.problem(ReasonService, "the Service %s does not exist: requests are answered with 503 until it does", b.Service.Name)
		return
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		it.problem = e.problem(ReasonExternal, "the Service %s is of type ExternalName, which is not served: requests are answered with 503", b.Service.Name)
		return
	}
	port := portOf(service, b.Service.Port)
	if port == nil {
		wanted := b.Service.Port.Name
		if wanted == "" {
			wanted = fmt.Sprint(b.Service.Port.Number)
		}
		it.problem = e.problem(ReasonPort, "the Service %s has no port %s: requests are answered with 503 until it does", b.Service.Name, wanted)
		return
	}
	it.service, it.port = b.Service.Name, port.Name
}

// portOf returns a port of a Service by name or number, nil if it has none. Endpoints are found by its name, because their numbers may differ from
// pod to pod; a port without a name is the only one.
func portOf(s *corev1.Service, wanted networkingv1.ServiceBackendPort) *corev1.ServicePort {
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if p.Protocol != "" && p.Protocol != corev1.ProtocolTCP {
			continue
		}
		if wanted.Name != "" && p.Name == wanted.Name || wanted.Name == "" && p.Port == wanted.Number {
			return p
		}
	}
	return nil
}
