// Package expose says how Gateways are reached: the Services that bring their ports to pods that serve them, the local ports that these listen on,
// and the addresses that follow from it.
//
// In a cluster each Gateway has Services of its own in its namespace, one for each address that it asks for, whose ports lead to local ports that no other
// Gateway has: two Gateways may both have a port 80. Which pods they lead to is up to the Gateway's parameters: those of the router, which all such Gateways
// share, or those of a Deployment of its own.
//
//	shared:      Gateway, port 80 ─► Service NAME-CLASS, port 80 ─► EndpointSlice of ours, port 20000 ─► pods of the router
//	deployment:  Gateway, port 80 ─► Service NAME-CLASS, port 80 ─► its selector,          port 20000 ─► pods of Deployment NAME-CLASS
//
// Which local port stands for which port of a Gateway is in the Services alone: the router that leads chooses it and writes it there, and all others read it. It is the
// same in both modes, so a Gateway goes from one to the other while both kinds of pods serve it: Ports.Plan has the order of steps.
// Without a cluster the ports of a Gateway are ports of this machine.
//
// Everything but the Writer is pure.
package expose

import (
	"crypto/sha1" //nolint:gosec // names are shortened with it, as GEP-1762 asks
	"encoding/hex"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/endpoints"
	"turnout/controller/gateway"
	"turnout/controller/gateway/parameters"
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

	Parameters          *parameters.Parameters  // how it is to be run; nil = what there is stays
	Secrets, ConfigMaps map[source.Key]struct{} // that it is served with
	Led                 Led                     // by its Service
	Refused             string                  // why what it needs cannot be written; "" = it can
}

// apart reports that the Gateway is to have pods of its own.
func (g *Gateway) apart() bool { return g.Parameters != nil && g.Parameters.Deployment }

// shared reports that the pods of the router are to have the Gateway's ports open: they serve it, or its Service leads to them still.
func (g *Gateway) shared() bool { return g.Led.Shared || g.Parameters != nil && !g.apart() }

// Led is where the Service of a Gateway leads, by its EndpointSlices.
type Led struct {
	Pods   int  // pods of the Gateway's own that are ready
	Shared bool // there are EndpointSlices for the pods of the router, be they empty
}

// LedBy reads where a Service leads from its EndpointSlices.
func LedBy(service source.Key, list []endpoints.Slice) (led Led) {
	ready := make(map[string]struct{})
	for _, packed := range list {
		if packed.Name == sliceName(service.Name, discoveryv1.AddressTypeIPv4) || packed.Name == sliceName(service.Name, discoveryv1.AddressTypeIPv6) {
			led.Shared = true
			continue
		}
		slice, err := packed.Object(service.Namespace, service.Name)
		if err != nil {
			continue
		}
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			if e.TargetRef != nil && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				ready[e.TargetRef.Name] = struct{}{}
			}
		}
	}
	led.Pods = len(ready)
	return led
}

// key returns the name of the Gateway.
func (g *Gateway) key() source.Key {
	return source.Key{Namespace: g.Object.Namespace, Name: g.Object.Name}
}

// nameLimit is how long the name of a Service may be.
const nameLimit = 63

// ObjectName returns the name of what a Gateway has of a kind, as GEP-1762 recommends it.
func ObjectName(g *gatewayv1.Gateway) string {
	return dnsLabel(g.Name + "-" + string(g.Spec.GatewayClassName))
}

// ServiceName returns the name of the Service of a Gateway for the address with a number.
func ServiceName(g *gatewayv1.Gateway, number int) string {
	name := g.Name + "-" + string(g.Spec.GatewayClassName)
	if number > 0 {
		name += "-" + strconv.Itoa(number)
	}
	return dnsLabel(name)
}

// dnsLabel returns a name that a Service may have: what else a name of a Gateway may be made of is replaced, and a sum tells it from others.
func dnsLabel(name string) string {
	made := strings.ReplaceAll(name, ".", "-")
	if made[0] >= '0' && made[0] <= '9' {
		made = "g" + made
	}
	if made == name && len(name) <= nameLimit {
		return name
	}
	return cut(made, name)
}

// short returns a text of a length that the value of a label may have.
func short(name string) string {
	if len(name) <= nameLimit {
		return name
	}
	return cut(name, name)
}

// cut returns the beginning of a text with a sum of what it stands for.
func cut(text, of string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(of)) // never fails
	sum := "-" + strconv.FormatUint(uint64(h.Sum32()), 36)
	return text[:min(len(text), nameLimit-len(sum))] + sum
}

// gatewayLabel is the value of the label with a Gateway's name, as GEP-1762 shortens it.
func gatewayLabel(name string) string {
	const kept = 20
	if len(name) <= nameLimit {
		return name
	}
	sum := sha1.Sum([]byte(name[kept:])) //nolint:gosec // see above
	return name[:kept] + "-" + hex.EncodeToString(sum[:])
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
