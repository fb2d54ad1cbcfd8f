package expose

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

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
	controller string // of the classes
	refused    func() // called for each port that gets none because of a bound; nil = nobody is

	of    map[string]int   // given to a namespace
	given map[string]int32 // by the name of the port
	taken map[int32]string // the opposite; TCP and UDP have one range in common
	next  int32
}

// NewPorts returns one that has given none, for the Gateways of the classes of a controller.
func NewPorts(controller string) *Ports {
	return &Ports{controller: controller, of: make(map[string]int), given: make(map[string]int32), taken: make(map[int32]string), next: firstLocal}
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
}

// Plan says which Services and EndpointSlices Gateways are to have: services are ours as they are, pods the addresses of the router's pods that are ready.
// Ports that Services have already stay.
func (p *Ports) Plan(gateways []Gateway, services map[source.Key]*corev1.Service, pods []string, kind corev1.ServiceType) Wanted {
	gateways = slices.Clone(gateways)
	slices.SortFunc(gateways, func(a, b Gateway) int {
		return cmp.Or(cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	needed := make(map[string]bool)
	for i := range gateways {
		for _, port := range gateways[i].Ports {
			needed[port.Name] = true
		}
	}
	p.retain(needed)
	for i := range gateways {
		g := &gateways[i]
		if s := servicesOf(g, services)[0]; s != nil {
			for _, port := range g.Ports {
				if local := localPort(s, port); local != 0 {
					p.keep(port.Name, local)
				}
			}
		}
	}
	var w Wanted
	for i := range gateways {
		p.plan(&gateways[i], pods, kind, &w)
	}
	return w
}

// plan adds what one Gateway is to have.
func (p *Ports) plan(g *Gateway, pods []string, kind corev1.ServiceType, w *Wanted) {
	o := g.Object
	var ports []corev1.ServicePort
	for _, port := range g.Ports {
		if local := p.give(port.Name); local != 0 {
			name := strings.ToLower(string(port.Protocol)) + "-" + strconv.Itoa(int(port.Number))
			ports = append(ports, corev1.ServicePort{Name: name, Port: port.Number, Protocol: port.Protocol, TargetPort: intstr.FromInt32(local)})
		}
	}
	if len(ports) == 0 {
		return // a Service has a port
	}
	for i, address := range asked(o) {
		meta := p.metadata(o)
		meta.Name = ServiceName(o.Name, i)
		w.Services = append(w.Services, &corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta,
			Spec: corev1.ServiceSpec{Type: kind, Ports: ports, LoadBalancerIP: address},
		})
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			if slice := sliceOf(meta, ports, family, pods); slice != nil {
				w.Slices = append(w.Slices, slice)
			}
		}
	}
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
	m.Labels[gatewayv1.GatewayNameLabelKey], m.Labels[labelOfController] = short(o.Name), labelOf(p.controller)
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
	meta.Name = of.Name + "-" + strings.ToLower(string(family))
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
