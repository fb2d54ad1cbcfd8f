package expose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway"
	"turnout/controller/owned"
	"turnout/controller/source"
)

// The local ports that are given to Gateways, in turn. They are below those that the kernel gives to connections.
const (
	firstLocal = 20000
	lastLocal  = 29999
)

// Bounds on how many of them there are at a time: each is a socket of every event loop.
const (
	mostPorts      = 4096
	mostOfOneOwner = 512 // in one namespace
)

// Ports gives local ports to ports of Gateways. It is made by NewPorts, and belongs to one goroutine, of the process that leads.
type Ports struct {
	controller string             // of the classes
	kind       corev1.ServiceType // of Services of Gateways that ask for none
	image      string             // of pods of Gateways that ask for none; "" = not known
	why        error              // why it is not
	refused    func()             // called for each port that gets none because of a bound; nil = nobody is
	crowded    func()             // the same for each Gateway that gets no pods

	of    map[string]int   // given to a namespace
	given map[string]int32 // by the name of the port
	taken map[int32]string // the opposite; TCP and UDP have one range in common
	next  int32

	run   map[source.Key]struct{} // Gateways that have pods of their own
	bound bool                    // the binding of their accounts was made
	turns map[source.Key]turn     // Gateways that go over to other pods
}

// NewPorts returns one that has given none, for the Gateways of the classes of a controller, whose Services have a type.
func NewPorts(controller string, kind corev1.ServiceType) *Ports {
	return &Ports{
		controller: controller, kind: kind, of: make(map[string]int), given: make(map[string]int32), taken: make(map[int32]string), next: firstLocal,
		run: make(map[source.Key]struct{}), turns: make(map[source.Key]turn),
	}
}

// namespaceOf is that of the Gateway of a port, by its name.
func namespaceOf(port string) string {
	namespace, _, _ := strings.Cut(port, "/")
	return namespace
}

// keep notes a port that was given before.
func (p *Ports) keep(name string, local int32) bool {
	if by, ok := p.taken[local]; ok && by != name || p.given[name] != 0 && p.given[name] != local {
		return false
	}
	if p.given[name] == 0 {
		p.of[namespaceOf(name)]++
	}
	p.given[name], p.taken[local] = local, name
	return true
}

// give returns the local port for one of a Gateway, 0 if none is left.
func (p *Ports) give(name string) int32 {
	if local := p.given[name]; local != 0 {
		return local
	}
	if len(p.given) >= mostPorts || p.of[namespaceOf(name)] >= mostOfOneOwner {
		if p.refused != nil {
			p.refused()
		}
		return 0
	}
	for range lastLocal - firstLocal + 1 {
		local := p.next
		if p.next++; p.next > lastLocal {
			p.next = firstLocal
		}
		if _, ok := p.taken[local]; !ok {
			p.keep(name, local)
			return local
		}
	}
	return 0
}

// retain gives back the ports of names that are not needed any more.
func (p *Ports) retain(needed map[string]bool) {
	for name, local := range p.given {
		if !needed[name] {
			delete(p.given, name)
			delete(p.taken, local)
			if of := namespaceOf(name); p.of[of] > 1 {
				p.of[of]--
			} else {
				delete(p.of, of)
			}
		}
	}
}

// Wanted is the objects that there are to be.
type Wanted struct {
	Services []*corev1.Service
	Slices   []*discoveryv1.EndpointSlice
	Others   []thing
	// Refused is why a Gateway does not get what it asks for.
	Refused map[source.Key]string
	Again   time.Duration // after which there is something else to do; 0 = nothing

	kept map[source.Key]bool // names of objects that stay as they are; false = Services and EndpointSlices do not
}

// keep has the objects of a Gateway stay as they are: all of them, or those of its own pods.
func (w *Wanted) keep(g *Gateway, all bool) {
	in := func(namespace, name string) {
		key := source.Key{Namespace: namespace, Name: name}
		w.kept[key] = w.kept[key] || all
	}
	in("", roleName(g.key())) // in any namespace
	in(g.Object.Namespace, ObjectName(g.Object))
	for i := range mostAddresses {
		service := ServiceName(g.Object, i)
		in(g.Object.Namespace, service)
		in(g.Object.Namespace, sliceName(service, discoveryv1.AddressTypeIPv4))
		in(g.Object.Namespace, sliceName(service, discoveryv1.AddressTypeIPv6))
	}
}

// Keeps reports whether an object that is not wanted is to stay all the same.
func (w *Wanted) Keeps(o owned.Object) bool {
	all, kept := w.kept[source.Key{Namespace: o.Namespace, Name: o.Name}]
	if !kept {
		all, kept = w.kept[source.Key{Name: o.Name}]
	}
	return kept && (all || o.Resource != owned.Services && o.Resource != owned.Slices)
}

// How long a Gateway takes to go over to other pods.
const (
	opening = 5 * time.Second  // all pods of the router have its ports open by then
	leaving = 10 * time.Second // connections go to the new pods by then
)

// Plan says which objects Gateways are to have. Ports that Services have already stay.
//
// A Gateway that gets pods of its own is served by those of the router until the first of its own is ready and its Service leads there; these go on for a while
// with EndpointSlices that are empty. The other way round the pods of the router open its ports, then get EndpointSlices, and a while later its own pods go.
func (p *Ports) Plan(now Now, at time.Time) Wanted {
	gateways := slices.Clone(now.Gateways)
	slices.SortFunc(gateways, func(a, b Gateway) int {
		return cmp.Or(cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	needed := make(map[string]bool)
	for i := range gateways {
		g := &gateways[i]
		for _, port := range g.Ports {
			needed[port.Name] = true
		}
		if s := servicesOf(g, now.Services)[0]; s != nil && len(g.Ports) == 0 { // it stays, and leads to where it does
			for i := range s.Spec.Ports {
				needed[portOf(g, &s.Spec.Ports[i])] = true
			}
		}
	}
	p.retain(needed)
	for i := range gateways {
		g := &gateways[i]
		s := servicesOf(g, now.Services)[0]
		if s == nil {
			continue
		}
		for i := range s.Spec.Ports {
			if name := portOf(g, &s.Spec.Ports[i]); needed[name] && s.Spec.Ports[i].TargetPort.IntVal != 0 {
				p.keep(name, s.Spec.Ports[i].TargetPort.IntVal)
			}
		}
	}
	w := Wanted{Refused: make(map[source.Key]string), kept: make(map[source.Key]bool)}
	p.crowd(gateways, now.Running, &w)
	for i := range gateways {
		p.plan(&gateways[i], now, at, &w)
	}
	return w
}

// Bounds on Gateways with pods of their own: each is watched for, and is a subject of one binding.
const (
	mostRuns    = 1000
	mostRunsOne = 64 // in one namespace
)

// crowd says which Gateways have pods of their own. Those that have some come first.
func (p *Ports) crowd(gateways []Gateway, running map[source.Key]bool, w *Wanted) {
	before := p.run
	p.run = make(map[source.Key]struct{})
	of := make(map[string]int)
	for _, had := range []bool{true, false} {
		for i := range gateways {
			g := &gateways[i]
			key := g.key()
			if _, has := before[key]; !g.apart() || (has || running[key]) != had {
				continue
			}
			if len(p.run) >= mostRuns || of[key.Namespace] >= mostRunsOne {
				if w.Refused[key] = fmt.Sprintf("there are %d Gateways with pods of their own, %d of them in this namespace: no more get any", len(p.run), of[key.Namespace]); p.crowded != nil {
					p.crowded()
				}
				continue
			}
			p.run[key] = struct{}{}
			of[key.Namespace]++
		}
	}
	var list []*Gateway
	for i := range gateways {
		if _, runs := p.run[gateways[i].key()]; runs || running[gateways[i].key()] {
			list = append(list, &gateways[i])
		}
	}
	if now := len(list); now > 0 || p.bound {
		p.bound = now > 0
		w.Others = append(w.Others, readers(list))
	}
}

// turn is a Gateway's going over to other pods.
type turn struct {
	apart bool // to its own
	since time.Time
}

// turned returns for how long a Gateway has been going over to pods of its own, or from them, and has Plan called again when that has lasted for until.
func (p *Ports) turned(g *Gateway, apart bool, at time.Time, w *Wanted, until time.Duration) time.Duration {
	t, known := p.turns[g.key()]
	if !known || t.apart != apart {
		t = turn{apart, at}
		p.turns[g.key()] = t
	}
	since := at.Sub(t.since)
	if left := until - since; left > 0 && (w.Again == 0 || left < w.Again) {
		w.Again = left
	}
	return since
}

// plan adds what one Gateway is to have.
func (p *Ports) plan(g *Gateway, now Now, at time.Time, w *Wanted) {
	key := g.key()
	_, runs := p.run[key]
	ports := p.servicePorts(g)
	if g.Parameters == nil || len(ports) == 0 || runs && p.image == "" && g.Parameters.Image == "" {
		if len(ports) > 0 && runs {
			w.Refused[key] = fmt.Sprintf("the image of the router is not known, and key image of the GatewayClass's parameters says none: %v", p.why)
		}
		w.keep(g, true) // a Service has a port
		return
	}
	pods := now.Pods // that EndpointSlices of ours name
	switch led := g.Led; {
	case runs && led.Shared && led.Pods > 0:
		if p.turned(g, true, at, w, leaving) >= leaving {
			led.Shared = false
		}
		p.own(g, w)
		p.ways(g, now, ports, led.Shared, nil, w)
		return
	case runs:
		p.own(g, w)
		p.ways(g, now, ports, led.Shared, pods, w)
	case g.apart():
		if led.Shared {
			p.ways(g, now, ports, true, pods, w)
		}
	case now.Running[key] && len(pods) > 0:
		since := p.turned(g, false, at, w, opening)
		if p.ways(g, now, ports, led.Shared || since >= opening, pods, w); since < opening || p.turned(g, false, at, w, opening+leaving) < opening+leaving {
			w.keep(g, false)
		}
		return
	case now.Running[key]:
		p.ways(g, now, ports, led.Shared, pods, w)
		w.keep(g, false) // nobody else would serve it
	default:
		p.ways(g, now, ports, true, pods, w)
	}
	delete(p.turns, key)
}

// servicePorts are the ports of a Gateway's Services.
func (p *Ports) servicePorts(g *Gateway) (ports []corev1.ServicePort) {
	for _, port := range g.Ports {
		if local := p.give(port.Name); local != 0 {
			name := strings.ToLower(string(port.Protocol)) + "-" + strconv.Itoa(int(port.Number))
			ports = append(ports, corev1.ServicePort{Name: name, Port: port.Number, Protocol: port.Protocol, TargetPort: intstr.FromInt32(local)})
		}
	}
	return ports
}

// ways adds the Services of a Gateway and, if led, EndpointSlices that lead these to pods of the router.
func (p *Ports) ways(g *Gateway, now Now, ports []corev1.ServicePort, led bool, pods []string, w *Wanted) {
	kind := cmp.Or(g.Parameters.ServiceType, p.kind)
	there := servicesOf(g, now.Services)
	_, runs := p.run[g.key()]
	for i, address := range asked(g.Object) {
		meta := p.metadata(g.Object)
		meta.Name = ServiceName(g.Object, i)
		s := &corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta,
			Spec: corev1.ServiceSpec{Type: kind, Ports: ports, LoadBalancerIP: address},
		}
		if runs || there[i] != nil && there[i].Spec.Selector != nil {
			s.Spec.Selector = p.selector(g.Object) // stays: of a Service that loses it nobody takes the pods out that it has led to
		}
		w.Services = append(w.Services, s)
		if !led {
			continue
		}
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			if slice := sliceOf(meta, ports, family, pods); slice != nil {
				w.Slices = append(w.Slices, slice)
			}
		}
	}
}

// portOf is the name of the Gateway's port that a port of its Service stands for.
func portOf(g *Gateway, s *corev1.ServicePort) string {
	return gateway.PortName(g.key(), s.Port, s.Protocol == corev1.ProtocolUDP)
}

// sliceName is the name of an EndpointSlice of ours for a Service.
func sliceName(service string, family discoveryv1.AddressType) string {
	return service + "-" + strings.ToLower(string(family))
}

// metadata is what our objects of a Gateway have in common: they go with it, and have the labels and annotations that it gives them.
func (p *Ports) metadata(o *gatewayv1.Gateway) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Namespace: o.Namespace, Labels: map[string]string{}, Annotations: map[string]string{},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: gatewayv1.GroupVersion.String(), Kind: "Gateway", Name: o.Name, UID: o.UID}},
	}
	if in := o.Spec.Infrastructure; in != nil {
		for k, v := range in.Labels {
			m.Labels[string(k)] = string(v)
		}
		for k, v := range in.Annotations {
			m.Annotations[string(k)] = string(v)
		}
	}
	m.Labels[gatewayv1.GatewayNameLabelKey], m.Labels[labelOfController] = gatewayLabel(o.Name), labelOf(p.controller)
	return m
}

// sliceOf returns the EndpointSlice of a Service for a family of addresses, nil if there is no such address.
func sliceOf(of metav1.ObjectMeta, ports []corev1.ServicePort, family discoveryv1.AddressType, pods []string) *discoveryv1.EndpointSlice {
	six := family == discoveryv1.AddressTypeIPv6
	var list []discoveryv1.Endpoint
	ready := true
	for _, pod := range pods {
		if strings.Contains(pod, ":") == six {
			list = append(list, discoveryv1.Endpoint{Addresses: []string{pod}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
		}
	}
	if len(list) == 0 && six {
		return nil
	}
	meta := of
	meta.Name = sliceName(of.Name, family)
	meta.Labels = maps.Clone(of.Labels)
	meta.Labels[discoveryv1.LabelServiceName], meta.Labels[discoveryv1.LabelManagedBy] = of.Name, owner
	slice := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}, ObjectMeta: meta, AddressType: family, Endpoints: list,
	}
	for _, p := range ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &p.TargetPort.IntVal, Protocol: &p.Protocol})
	}
	return slice
}
