package controller

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway"
	"turnout/controller/source"
)

// What others got wrong (docs/lab/gateway.md has the list), as far as it is about the order of things here.

// orderRig notes what is served while a status is told.
type orderRig struct {
	*gatewayRig
	served map[gateway.Ref]bool // whether requests of the Gateway found a route when the status of an object was told
	ports  map[gateway.Ref]int  // how many ports were open then
}

func (r *orderRig) note(ref gateway.Ref) {
	r.served[ref], r.ports[ref] = r.arrives("any.test") != nil, len(r.sockets)
}

// Status implements GatewayReporter.
func (r *orderRig) Status(ref gateway.Ref, have runtime.Object, want any) {
	r.note(ref)
	r.gatewayRig.Status(ref, have, want)
}

// Forget implements GatewayReporter.
func (r *orderRig) Forget(ref gateway.Ref) {
	r.note(ref)
	r.gatewayRig.Forget(ref)
}

// TestGatewayStatusFollowsTheTable: what a status says is served is served when it is told, and what is gone is served no more, in one batch with whatever
// else changes.
func TestGatewayStatusFollowsTheTable(t *testing.T) {
	r := &orderRig{gatewayRig: newGatewayRig(t, GatewayOptions{}), served: make(map[gateway.Ref]bool), ports: make(map[gateway.Ref]int)}
	r.c.state.cfg.Gateways = r
	gw, route := gateway.Ref{Kind: "Gateway", Key: source.Key{Namespace: "ns", Name: "gw"}}, gateway.Ref{Kind: "HTTPRoute", Key: source.Key{Namespace: "ns", Name: "r"}}
	r.do(aListener(), anHTTPRoute("r"))
	if !r.served[route] || !r.served[gw] || r.ports[gw] != 1 {
		t.Errorf("told before it is served: %v, ports %v", r.served, r.ports)
	}
	r.do(gone(source.HTTPRoute, "r"))
	if r.served[route] || r.served[gw] {
		t.Errorf("told before it is gone: %v", r.served)
	}
	r.do(anHTTPRoute("r"), gone(source.Gateway, "gw"))
	if r.served[gw] || r.ports[gw] != 0 {
		t.Errorf("told before its port is closed: %v, ports %v", r.served, r.ports)
	}
}

// TestGatewayOwnWritesMakeNoTable: a status that was written comes back as an event, which makes no table and asks for no further write.
func TestGatewayOwnWritesMakeNoTable(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{})
	r.do(aListener(), anHTTPRoute("r"))
	gw, route := gateway.Ref{Kind: "Gateway", Key: source.Key{Namespace: "ns", Name: "gw"}}, gateway.Ref{Kind: "HTTPRoute", Key: source.Key{Namespace: "ns", Name: "r"}}
	before, table := r.status[route], r.store.Load().Generation()
	back := anHTTPRoute("r")
	o := back.Object.(*gatewayv1.HTTPRoute)
	o.ResourceVersion, o.Status.RouteStatus = "7", *r.status[route].(*gatewayv1.RouteStatus)
	listener := aListener()
	g := listener.Object.(*gatewayv1.Gateway)
	g.ResourceVersion, g.Status = "8", *r.status[gw].(*gatewayv1.GatewayStatus)
	r.do(back, listener)
	if now := r.store.Load().Generation(); now != table {
		t.Errorf("table %d, was %d", now, table)
	}
	if r.status[route] != before {
		t.Error("another status is wanted for a write of ours: it is no longer the one that was written")
	}
}

// TestGatewayEndpointsFollow: requests go to the pods that there are, without a change of the route.
func TestGatewayEndpointsFollow(t *testing.T) {
	r := newGatewayRig(t, GatewayOptions{})
	r.do(aListener(), anHTTPRoute("r"))
	servers := func() (list []string) {
		for pool := range r.arrives("any.test").Pools {
			for s := range pool.List {
				list = append(list, s.Addr.String())
			}
		}
		return list
	}
	for _, address := range []string{"10.0.0.2", "10.0.0.3"} {
		r.do(aSlice("s-1", "s", address))
		if got := servers(); !slices.Equal(got, []string{address + ":8080"}) {
			t.Errorf("servers %v, want %s", got, address)
		}
	}
}
