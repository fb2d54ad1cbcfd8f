package expose

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway"
	"turnout/controller/source"
)

// Places are the sockets of all Gateways, and what became of each Gateway.
type Places struct {
	Sockets  []Socket
	Assigned map[source.Key]*gateway.Assigned
}

// ByServices says where Gateways are by the Services that they have, ours by their key. Sockets of ports that no Service has yet are missing, and, unless this
// is a pod of a Gateway's own, those of Gateways that others serve.
func ByServices(gateways []Gateway, services map[source.Key]*corev1.Service, own bool) Places {
	p := Places{Assigned: make(map[source.Key]*gateway.Assigned, len(gateways))}
	for i := range gateways {
		g := &gateways[i]
		has := servicesOf(g, services)
		p.Assigned[g.key()] = assigned(g, has)
		if has[0] == nil || !own && !g.shared() {
			continue
		}
		for _, port := range g.Ports {
			if local := localPort(has[0], port); local != 0 {
				p.Sockets = append(p.Sockets, Socket{Name: port.Name, Addr: ":" + strconv.Itoa(int(local)), Kind: port.Kind})
			}
		}
	}
	return p
}

// servicesOf returns the Services of a Gateway by the number of the address they are for, nil for one that is not there.
func servicesOf(g *Gateway, services map[source.Key]*corev1.Service) []*corev1.Service {
	own := make([]*corev1.Service, len(asked(g.Object)))
	for i := range own {
		s := services[source.Key{Namespace: g.Object.Namespace, Name: ServiceName(g.Object, i)}]
		if s != nil && s.DeletionTimestamp == nil && s.Labels[gatewayv1.GatewayNameLabelKey] == gatewayLabel(g.Object.Name) {
			own[i] = s
		}
	}
	return own
}

// localPort returns the port of the router's pods that a Service leads a port of a Gateway to, 0 if it does not.
func localPort(s *corev1.Service, port gateway.Port) int32 {
	for _, p := range s.Spec.Ports {
		if p.Port == port.Number && p.Protocol == port.Protocol {
			return p.TargetPort.IntVal
		}
	}
	return 0
}

// assigned says which addresses a Gateway has by its Services, and what it lacks.
func assigned(g *Gateway, own []*corev1.Service) *gateway.Assigned {
	a := new(gateway.Assigned)
	lack := func(reason gatewayv1.GatewayConditionReason, message string) {
		if a.Reason == "" {
			a.Reason, a.Message = reason, message
		}
	}
	if g.Refused != "" {
		lack(gatewayv1.GatewayReasonNoResources, g.Refused)
	}
	for i, want := range asked(g.Object) {
		has := addressesOf(own[i])
		switch {
		case want != "" && !slices.ContainsFunc(has, func(h gatewayv1.GatewayStatusAddress) bool { return h.Value == want }):
			if own[i] == nil {
				lack(gatewayv1.GatewayReasonPending, "the Service for address "+want+" is being made")
				continue
			}
			lack(gatewayv1.GatewayReasonAddressNotUsable, fmt.Sprintf("no load balancer serves address %s for Service %s/%s", want, own[i].Namespace, own[i].Name))
		case len(has) == 0 && own[i] == nil:
			lack(gatewayv1.GatewayReasonPending, "the Service of the Gateway is being made")
		case len(has) == 0:
			lack(gatewayv1.GatewayReasonAddressNotAssigned, fmt.Sprintf("Service %s/%s has no address yet: its status has none", own[i].Namespace, own[i].Name))
		}
		for _, h := range has {
			if want == "" || h.Value == want {
				a.Addresses = append(a.Addresses, h)
			}
		}
	}
	if own[0] != nil {
		for _, port := range g.Ports {
			if localPort(own[0], port) == 0 {
				lack(gatewayv1.GatewayReasonPending, fmt.Sprintf("Service %s/%s does not lead port %d to the router yet", own[0].Namespace, own[0].Name, port.Number))
			}
		}
		switch {
		case !g.apart() || g.Led.Pods > 0:
		case !g.Led.Shared:
			lack(gatewayv1.GatewayReasonPending, fmt.Sprintf("Service %s/%s leads to no pod of Deployment %s that is ready yet", own[0].Namespace, own[0].Name, ObjectName(g.Object)))
		case a.Reason == "":
			a.Message = fmt.Sprintf("The router's pods serve the Gateway until Service %s/%s leads to a pod of Deployment %s that is ready", own[0].Namespace, own[0].Name, ObjectName(g.Object))
		}
	}
	return a
}

// addressesOf returns where a Service, which may be nil, is reached.
func addressesOf(s *corev1.Service) (list []gatewayv1.GatewayStatusAddress) {
	if s == nil {
		return nil
	}
	add := func(kind gatewayv1.AddressType, value string) {
		if value != "" && value != corev1.ClusterIPNone {
			list = append(list, gatewayv1.GatewayStatusAddress{Type: &kind, Value: value})
		}
	}
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		for _, ip := range s.Spec.ClusterIPs {
			add(gatewayv1.IPAddressType, ip)
		}
		return list
	}
	for _, in := range s.Status.LoadBalancer.Ingress {
		add(gatewayv1.IPAddressType, in.IP)
		add(gatewayv1.HostnameAddressType, in.Hostname)
	}
	return list
}

// Taken is an address of this machine, host:port without a host for all, that the router itself has, and what for.
type Taken struct{ Addr, For string }

// overlaps reports whether no socket can have an address beside that of t.
func (t *Taken) overlaps(host, port string) bool {
	ours, at, err := net.SplitHostPort(t.Addr)
	if err != nil || at != port {
		return false
	}
	all := func(host string) bool { ip := net.ParseIP(host); return host == "" || ip != nil && ip.IsUnspecified() }
	return ours == host || all(ours) || all(host)
}

// Local says where Gateways are without a cluster: at their ports of this machine, at the addresses that they ask for, else at all of them, which are
// addresses then. No Gateway gets a port that the router itself has. Of two Gateways that want one port the older has it.
func Local(gateways []Gateway, addresses []string, own []Taken) Places {
	gateways = slices.Clone(gateways)
	slices.SortStableFunc(gateways, func(a, b Gateway) int {
		return cmp.Or(a.Object.CreationTimestamp.Compare(b.Object.CreationTimestamp.Time), cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	p := Places{Assigned: make(map[source.Key]*gateway.Assigned, len(gateways))}
	taken := make(map[string]source.Key)
	for i := range gateways {
		g := &gateways[i]
		a := new(gateway.Assigned)
		p.Assigned[g.key()] = a
		hosts := asked(g.Object)
		for _, host := range hosts {
			for _, value := range shown(host, addresses) {
				kind := gatewayv1.IPAddressType
				if net.ParseIP(value) == nil {
					kind = gatewayv1.HostnameAddressType
				}
				a.Addresses = append(a.Addresses, gatewayv1.GatewayStatusAddress{Type: &kind, Value: value})
			}
		}
		bind := hosts[0]
		if len(hosts) > 1 {
			bind = "" // one socket has one address, or all
		}
		for _, port := range g.Ports {
			number := strconv.Itoa(int(port.Number))
			at := net.JoinHostPort(bind, number)
			place := string(port.Protocol) + " " + at
			lose := func(to string) {
				if a.Unavailable == nil {
					a.Unavailable = make(map[string]string)
				}
				a.Unavailable[port.Name] = to
			}
			if i := slices.IndexFunc(own, func(t Taken) bool { return t.overlaps(bind, number) }); i >= 0 && port.Protocol == corev1.ProtocolTCP {
				lose("it is the port of " + own[i].For)
				continue
			}
			if by, ok := taken[place]; ok {
				lose(fmt.Sprintf("Gateway %s, which is older, has it", by))
				continue
			}
			taken[place] = g.key()
			p.Sockets = append(p.Sockets, Socket{Name: port.Name, Addr: at, Kind: port.Kind})
		}
	}
	return p
}

// shown returns what the status has for an address that is asked for.
func shown(host string, addresses []string) []string {
	if host != "" || len(addresses) == 0 {
		return []string{cmp.Or(host, "127.0.0.1")}
	}
	return addresses
}
