// Package endpoints turns the EndpointSlices of a service into what a route can be
// served from. It is the road that changes of pods take: the balancer targets of the
// routes are updated and no table is made. It does no I/O.
package endpoints

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"turnout/balancer"
	"turnout/internal/target"
	"turnout/internal/wire/protocol"
)

// idledAt is the annotation of a service whose pods were stopped until it is used.
const idledAt = "idling.alpha.openshift.io/idled-at"

// Options selects the endpoints that are used.
type Options struct {
	IncludeUDP bool           // ports of protocol UDP are used
	Targets    *target.Policy // admits the addresses; nil = none is used
}

// Endpoint is one place where a service can be reached.
type Endpoint struct {
	ID       string      // identity of the server, see balancer.ServerID
	Addr     target.Addr // where to connect
	Port     string      // name of the port
	Pod      string      // "" = not a pod
	H2C      bool        // HTTP/2 without TLS by prior knowledge
	Fallback bool        // stands for an idled service; never health checked
}

// Set is the endpoints of one service. It is read-only.
type Set struct {
	Service   string     // name of the service
	Endpoints []Endpoint // ready, each ID once, in the order of the slices
	Notes     []string   // what was left out, for people
	Own       int        // ports left out because the router itself listens there
	Beyond    int        // endpoints left out because there are too many
}

// What is kept of one service: a slice has up to a thousand addresses and a hundred ports, and each namespace as many slices as it
// likes.
const (
	maxEndpoints = 10000
	maxNotes     = 20
)

// Service returns the endpoints of a service. service is nil if it is not known; list is
// its EndpointSlices in any order. Neither is changed or kept.
func Service(options Options, namespace, name string, service *corev1.Service, list []Slice) *Set {
	b := builder{options: options, set: &Set{Service: name}, seen: make(map[string]struct{})}
	ordered := slices.Clone(list)
	slices.SortFunc(ordered, func(a, b Slice) int { return cmp.Compare(a.Name, b.Name) })
	for _, s := range ordered {
		object, err := s.Object(namespace, name)
		if err != nil {
			b.notef("BUG: %v", err)
			continue
		}
		b.slice(object)
	}
	if len(b.set.Endpoints) == 0 && service != nil && service.Annotations[idledAt] != "" {
		b.idled(service)
	}
	if b.more > 0 {
		b.addf("%d more notes of this kind", b.more)
	}
	if b.set.Beyond > 0 {
		b.addf("service %s/%s has more than %d endpoints: %d are not used", namespace, name, maxEndpoints, b.set.Beyond)
	}
	if len(b.set.Endpoints) == 0 {
		switch {
		case service == nil && len(ordered) == 0:
			b.addf("service %s/%s does not exist", namespace, name)
		default:
			b.addf("service %s/%s has no ready endpoints", namespace, name)
		}
	}
	return b.set
}

// builder makes one Set.
type builder struct {
	options Options
	set     *Set
	seen    map[string]struct{}
	more    int // notes beyond those that are kept
}

func (b *builder) notef(format string, args ...any) {
	if len(b.set.Notes) == maxNotes {
		b.more++
		return
	}
	b.addf(format, args...)
}

// addf notes what is noted however many notes there are.
func (b *builder) addf(format string, args ...any) {
	b.set.Notes = append(b.set.Notes, fmt.Sprintf(format, args...))
}

// at admits a port of an address. It notes and counts a refused port, and returns ok = false.
func (b *builder) at(ip target.Host, port uint16, text, of string) (at target.Addr, ok bool) {
	at, err := b.options.Targets.At(ip, port)
	if err == nil {
		return at, true
	}
	b.set.Own++ // only ErrOwn is possible here: Host has made the other checks
	b.notef("%s: port %d of address %s is not used: %v", of, port, text, err)
	return target.Addr{}, false
}

// address is one ready address of a slice.
type address struct {
	text     string
	ip       target.Host
	hostname string
	pod      string
}

// slice adds the addresses of one slice times its ports.
func (b *builder) slice(s *discoveryv1.EndpointSlice) {
	if s.AddressType != discoveryv1.AddressTypeIPv4 && s.AddressType != discoveryv1.AddressTypeIPv6 {
		b.notef("endpoint slice %s: addresses of type %q are not used", s.Name, s.AddressType)
		return
	}
	addresses := b.addresses(s)
	ports := slices.Clone(s.Ports)
	slices.SortFunc(ports, func(a, b discoveryv1.EndpointPort) int {
		return cmp.Or(cmp.Compare(value(a.Port), value(b.Port)), cmp.Compare(value(a.Protocol), value(b.Protocol)),
			cmp.Compare(value(a.Name), value(b.Name)))
	})
	for _, p := range ports {
		if b.skips(value(p.Protocol)) {
			continue
		}
		number := value(p.Port)
		if number < 1 || number > 65535 {
			continue
		}
		for _, a := range addresses {
			at, ok := b.at(a.ip, uint16(number), a.text, "endpoint slice "+s.Name)
			if !ok {
				continue
			}
			b.addEndpoint(Endpoint{
				Addr: at, Port: value(p.Name), Pod: a.pod, H2C: isH2C(p.AppProtocol),
			}, a.text)
		}
	}
}

// addresses returns the usable addresses of a slice, by IP and then by host name.
func (b *builder) addresses(s *discoveryv1.EndpointSlice) []address {
	var out []address
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		ready := e.Conditions.Ready == nil || *e.Conditions.Ready
		if !ready || value(e.Conditions.Terminating) {
			continue
		}
		for _, text := range e.Addresses {
			ip, err := b.options.Targets.Host(text)
			if err != nil {
				b.notef("endpoint slice %s: address %s is not used: %v", s.Name, text, err)
				continue
			}
			a := address{text: text, ip: ip, hostname: value(e.Hostname)}
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				a.pod = e.TargetRef.Name
			}
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b address) int {
		return cmp.Or(a.ip.Compare(b.ip), cmp.Compare(a.hostname, b.hostname))
	})
	return out
}

// addEndpoint adds an endpoint unless its identity is there. The identity carries the address
// as it is written.
func (b *builder) addEndpoint(e Endpoint, text string) {
	if len(b.set.Endpoints) == maxEndpoints {
		b.set.Beyond++
		return
	}
	e.ID = balancer.ServerID(e.Pod, b.set.Service, e.Port, text, e.Addr.Port())
	if _, twice := b.seen[e.ID]; twice {
		return
	}
	b.seen[e.ID] = struct{}{}
	if e.Pod != "" {
		e.Pod = e.ID[len("pod:"):][:len(e.Pod)] // one text for both
	}
	b.set.Endpoints = append(b.set.Endpoints, e)
}

// skips reports that ports of a protocol are no servers: nothing that is spoken here
// goes over them.
func (b *builder) skips(p corev1.Protocol) bool {
	return p == corev1.ProtocolSCTP || p == corev1.ProtocolUDP && !b.options.IncludeUDP
}

// idled adds the cluster address of an idled service, whose first connection starts its
// pods again.
func (b *builder) idled(s *corev1.Service) {
	ip, err := b.options.Targets.Host(s.Spec.ClusterIP)
	if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone {
		err = errors.New("it has no cluster address")
	}
	if err != nil {
		b.notef("service %s/%s is idled and cannot be woken up: %v", s.Namespace, s.Name, err)
		return
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if b.skips(p.Protocol) || p.Port < 1 || p.Port > 65535 {
			continue
		}
		at, ok := b.at(ip, uint16(p.Port), s.Spec.ClusterIP, "service "+s.Name)
		if !ok {
			continue
		}
		b.addEndpoint(Endpoint{
			Addr: at, Port: p.Name, H2C: isH2C(p.AppProtocol), Fallback: true,
		}, s.Spec.ClusterIP)
	}
	b.notef("service %s/%s is idled: its cluster address is used", s.Namespace, s.Name)
}

// Matching returns the endpoints that a route with a target port uses: those with that
// port name or number, all of them if port is "".
func (s *Set) Matching(port string) []Endpoint {
	if port == "" {
		return s.Endpoints
	}
	var out []Endpoint
	for _, e := range s.Endpoints {
		if e.Port == port || strconv.Itoa(int(e.Addr.Port())) == port {
			out = append(out, e)
		}
	}
	return out
}

// Weighted is one service of a route with its weight.
type Weighted struct {
	Set    *Set
	Weight int           // 0..256
	TLS    *balancer.TLS // nil = plain
}

// Kind is what a route does with its endpoints.
type Kind struct {
	Port        string // target port, "" = all ports
	Passthrough bool   // bytes are copied; servers of weight 0 are left out
	H2C         bool   // endpoints that want it are spoken to in HTTP/2 without TLS
}

// Targets returns the servers of a route. services are in the order of their names.
func Targets(kind Kind, services []Weighted) []balancer.Target {
	matching := make([][]Endpoint, len(services))
	input := make([]balancer.ServiceWeight, len(services))
	total := 0
	for i, s := range services {
		matching[i] = s.Set.Matching(kind.Port)
		input[i] = balancer.ServiceWeight{Weight: s.Weight, Endpoints: len(matching[i])}
		total += len(matching[i])
	}
	weights := balancer.Weights(input)
	targets := make([]balancer.Target, 0, total)
	for i, s := range services {
		if kind.Passthrough && weights[i] == 0 {
			continue
		}
		for _, e := range matching[i] {
			t := balancer.Target{
				ID: e.ID, Addr: e.Addr, Weight: weights[i], TLS: s.TLS, NoCheck: e.Fallback, Pod: e.Pod, Service: s.Set.Service,
			}
			switch {
			case kind.Passthrough:
				t.Protocol = protocol.TCP
			case kind.H2C && e.H2C:
				t.Protocol = protocol.HTTP2
			}
			targets = append(targets, t)
		}
	}
	return targets
}

func isH2C(appProtocol *string) bool {
	return appProtocol != nil && (*appProtocol == "h2c" || *appProtocol == "kubernetes.io/h2c")
}

// value returns what p points to, the zero value for nil.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
