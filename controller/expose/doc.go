// Package expose says how Gateways are reached: the Services that bring their ports to the pods of the router, the local ports that these listen on,
// and the addresses that follow from it.
//
// In a cluster all Gateways are served by the same pods. Each has Services of its own in its namespace, one for each address that it asks for, whose
// ports lead to ports of the pods that no other Gateway has: two Gateways may both have a port 80. The Services select nothing; their EndpointSlices name
// the pods that a Service of the router's own selects.
//
//	Gateway, port 80 ─► Service turnout-NAME, port 80 ─► EndpointSlice, port 20000 ─► pods of the router
//
// Which local port stands for which port of a Gateway is in the Services alone: whoever leads chooses it and writes it there, and all replicas read it.
// Without a cluster the ports of a Gateway are ports of this machine.
//
// Everything but the Writer is pure.
package expose

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway"
	"turnout/controller/source"
)

// Socket is a port of this machine, and what it is there for.
type Socket struct {
	Name string // of the port, see gateway.Port
	Addr string // host:port; no host = all addresses
	Kind gateway.PortKind
}

// Gateway is one that is ours, with what it needs.
type Gateway struct {
	Object *gatewayv1.Gateway
	Ports  []gateway.Port
}

// key returns the name of the Gateway.
func (g *Gateway) key() source.Key {
	return source.Key{Namespace: g.Object.Namespace, Name: g.Object.Name}
}

// nameLimit is how long the name of a Service may be.
const nameLimit = 63

// ServiceName returns the name of the Service of a Gateway for the address with a number.
func ServiceName(gateway string, number int) string {
	name := "turnout-" + gateway
	if number > 0 {
		name += "-" + strconv.Itoa(number)
	}
	return short(name)
}

// short returns a name of a length that a Service, and the value of a label, may have.
func short(name string) string {
	if len(name) <= nameLimit {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	sum := "-" + strconv.FormatUint(uint64(h.Sum32()), 36)
	return name[:nameLimit-len(sum)] + sum
}

// labelOfController tells our Services and EndpointSlices from those of others, routers with classes of another controller among them.
const labelOfController = "turnout.router/gateway-controller"

// owner is who manages our objects.
const owner = "turnout"

// labelOf is the value of labelOfController.
func labelOf(controller string) string { return short(strings.ReplaceAll(controller, "/", "_")) }

// Ours reports whether a Service leads to a Gateway of a class of the controller.
func Ours(s *corev1.Service, controller string) bool {
	return s != nil && s.Labels[labelOfController] == labelOf(controller) && s.Labels[gatewayv1.GatewayNameLabelKey] != ""
}

// asked returns the addresses that a Gateway asks for, "" for any; at least one.
func asked(g *gatewayv1.Gateway) []string {
	var list []string
	for _, a := range g.Spec.Addresses {
		if a.Type != nil && *a.Type != gatewayv1.IPAddressType {
			continue // judged elsewhere
		}
		if !slices.Contains(list, a.Value) || a.Value == "" {
			list = append(list, a.Value)
		}
	}
	if len(list) == 0 {
		return []string{""}
	}
	return list
}
