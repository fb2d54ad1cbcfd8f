package controller

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway"
	"turnout/controller/source"
)

// GatewayReport is what became of an object of the Gateway API.
type GatewayReport struct {
	Kind       string             `json:"kind"`
	Namespace  string             `json:"namespace,omitempty"`
	Name       string             `json:"name"`
	UID        string             `json:"uid,omitempty"`
	Hosts      []string           `json:"hosts,omitempty"`     // that it asks for; of a Gateway those of its listeners
	Listeners  []string           `json:"listeners,omitempty"` // of a Gateway or ListenerSet: name, protocol, port, host name
	Parents    []string           `json:"parents,omitempty"`   // of a route
	Addresses  []string           `json:"addresses,omitempty"` // of a Gateway
	Accepted   bool               `json:"accepted"`            // by at least one parent of ours; a Gateway is programmed, too
	Reason     string             `json:"reason,omitempty"`    // why it is not
	Message    string             `json:"message,omitempty"`
	Conditions []GatewayCondition `json:"conditions,omitempty"`
	Created    time.Time          `json:"created,omitzero"`
	Origin     string             `json:"origin,omitempty"` // file and document
	wrong      int                // conditions besides Reason that say what is wrong
}

// mostHosts is how many host names of an object are listed.
const mostHosts = 1024

// ofListener describes one.
func ofListener(l *gatewayv1.Listener) (host, text string) {
	host = "*"
	if l.Hostname != nil && *l.Hostname != "" {
		host = string(*l.Hostname)
	}
	text = fmt.Sprintf("%s: %s, port %d", l.Name, l.Protocol, l.Port)
	if l.Protocol != gatewayv1.TCPProtocolType && l.Protocol != gatewayv1.UDPProtocolType {
		text += ", " + host
	}
	return host, text
}

// report is what is known of the object; its conditions are left out.
func (v *gatewayView) report() GatewayReport {
	r := GatewayReport{Kind: v.ref.Kind, Namespace: v.ref.Namespace, Name: v.ref.Name, UID: string(v.object.GetUID()), Created: v.object.GetCreationTimestamp().Time, Origin: v.origin}
	hosts := func(list []gatewayv1.Hostname) {
		for _, h := range list[:min(len(list), mostHosts)] {
			r.Hosts = append(r.Hosts, strings.ToLower(string(h)))
		}
	}
	listener := func(l *gatewayv1.Listener) {
		host, text := ofListener(l)
		if r.Listeners = append(r.Listeners, text); len(r.Hosts) < mostHosts && !slices.Contains(r.Hosts, host) {
			r.Hosts = append(r.Hosts, host)
		}
	}
	var parents []gatewayv1.ParentReference
	switch o := v.object.(type) {
	case *gatewayv1.Gateway:
		for i := range o.Spec.Listeners {
			listener(&o.Spec.Listeners[i])
		}
	case *gatewayv1.ListenerSet:
		parents = []gatewayv1.ParentReference{{Namespace: o.Spec.ParentRef.Namespace, Name: o.Spec.ParentRef.Name}}
		for i := range o.Spec.Listeners {
			l := gatewayv1.Listener(o.Spec.Listeners[i])
			listener(&l)
		}
	case *gatewayv1.HTTPRoute:
		parents = o.Spec.ParentRefs
		hosts(o.Spec.Hostnames)
	case *gatewayv1.GRPCRoute:
		parents = o.Spec.ParentRefs
		hosts(o.Spec.Hostnames)
	case *gatewayv1.TLSRoute:
		parents = o.Spec.ParentRefs
		hosts(o.Spec.Hostnames)
	case *gatewayv1.TCPRoute:
		parents = o.Spec.ParentRefs
	case *gatewayv1.UDPRoute:
		parents = o.Spec.ParentRefs
	}
	for i := range parents {
		r.Parents = append(r.Parents, v.parentName(&parents[i]))
	}
	if status, ok := v.status.(*gatewayv1.GatewayStatus); ok {
		for _, a := range status.Addresses {
			r.Addresses = append(r.Addresses, a.Value)
		}
	}
	v.judge(&r)
	return r
}

// judge says whether the object is served. A route is when one of its parents takes it.
func (v *gatewayView) judge(r *GatewayReport) {
	all := v.conditions()
	wrong := v.wrong()
	whole := func(c *GatewayCondition) bool {
		_, route := v.status.(*gatewayv1.RouteStatus)
		return route || c.Of == ""
	}
	accepted, first := false, -1
	for i := range all {
		c := &all[i]
		if whole(c) && c.Type == string(gatewayv1.GatewayConditionAccepted) && c.Status == string(metav1.ConditionTrue) {
			accepted = true
		}
	}
	for i := range wrong {
		if c := &wrong[i]; whole(c) && c.Refuses() && first < 0 {
			first = i
		}
	}
	_, route := v.status.(*gatewayv1.RouteStatus)
	r.Accepted, r.wrong = accepted && (first < 0 || route), len(wrong)
	if !r.Accepted && first >= 0 {
		r.Reason, r.Message, r.wrong = wrong[first].Reason, wrong[first].Message, len(wrong)-1
	}
}

// listed reports that the object stands in lists of routes: GatewayClasses and policies do not.
func (v *gatewayView) listed() bool {
	switch v.object.(type) {
	case *gatewayv1.GatewayClass, *gatewayv1.BackendTLSPolicy:
		return false
	}
	return true
}

// summary is what a list says of the object.
func (v *gatewayView) summary() Summary {
	r := v.report()
	s := Summary{
		Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: r.UID, Hosts: r.Hosts, Termination: v.termination(), Admitted: r.Accepted, Reason: r.Reason, Message: r.Message, Notes: r.wrong,
	}
	if len(r.Hosts) > 0 {
		s.Host = r.Hosts[0]
	}
	return s
}

// termination is what a list has for an object that nothing is served of: the protocols of a Gateway, or the kind of route.
func (v *gatewayView) termination() string {
	add := func(list []string, p gatewayv1.ProtocolType) []string {
		if slices.Contains(list, string(p)) {
			return list
		}
		return append(list, string(p))
	}
	var words []string
	switch o := v.object.(type) {
	case *gatewayv1.Gateway:
		for i := range o.Spec.Listeners {
			words = add(words, o.Spec.Listeners[i].Protocol)
		}
	case *gatewayv1.ListenerSet:
		for i := range o.Spec.Listeners {
			words = add(words, o.Spec.Listeners[i].Protocol)
		}
	}
	return strings.Join(words, "+")
}

// GatewayReport returns what became of an object of the Gateway API. The bool is false if there is none. Any goroutine may call it.
func (c *Controller) GatewayReport(kind, namespace, name string) (*GatewayReport, bool) {
	v, ok := c.views.gateways.view(gateway.Ref{Kind: kind, Key: source.Key{Namespace: namespace, Name: name}})
	if !ok || v.status == nil {
		return nil, false
	}
	r := v.report()
	r.Conditions = v.conditions()
	return &r, true
}

// gatewayKey is where an object stands in lists: behind all Routes, whose keys have one slash.
func (v *gatewayView) gatewayKey() string { return v.ref.Key.String() + "/" + v.ref.Kind }

// ListObjects is ListRoutes, behind whose Routes the Gateways, ListenerSets and routes of the Gateway API follow that are ours. Their keys are
// NAMESPACE/NAME/KIND.
func (c *Controller) ListObjects(after string, limit int) (list iter.Seq[any], next string) {
	var routes iter.Seq[*routev1.Route] = func(func(*routev1.Route) bool) {}
	left := limit
	behind := strings.Count(after, "/") > 1
	if !behind {
		if routes, next = c.ListRoutes(after, limit); next != "" {
			return asAny(routes), next
		}
		namespace, name, _ := strings.Cut(after, "/")
		left = limit - len(c.views.keys(source.Key{Namespace: namespace, Name: name}))
	}
	objects := slices.DeleteFunc(c.views.gateways.ours(), func(v gatewayView) bool { return !v.listed() })
	if behind {
		at, _ := slices.BinarySearchFunc(objects, after, func(v gatewayView, after string) int { return compareGatewayKeys(v.gatewayKey(), after) })
		if at < len(objects) && objects[at].gatewayKey() == after {
			at++
		}
		objects = objects[at:]
	}
	switch {
	case limit == 0 || left >= len(objects):
	case left > 0:
		objects = objects[:left]
		next = objects[left-1].gatewayKey()
	case len(objects) > 0: // Routes fill the page, and there is more
		objects = nil
		next = c.lastRoute()
	}
	return func(yield func(any) bool) {
		for r := range routes {
			if !yield(r) {
				return
			}
		}
		for i := range objects {
			if !yield(objects[i].shown()) {
				return
			}
		}
	}, next
}

// lastRoute is the key of the last Route.
func (c *Controller) lastRoute() string {
	keys := c.views.keys(source.Key{})
	if len(keys) == 0 {
		return ""
	}
	return keys[len(keys)-1].String()
}

// compareGatewayKeys orders keys of lists as lists are.
func compareGatewayKeys(a, b string) int {
	one, other := strings.SplitN(a, "/", 3), strings.SplitN(b, "/", 3)
	return cmp.Or(cmp.Compare(one[0], other[0]), cmp.Compare(one[1], other[1]), cmp.Compare(one[2], other[2]))
}

func asAny[T any](of iter.Seq[T]) iter.Seq[any] {
	return func(yield func(any) bool) {
		for v := range of {
			if !yield(v) {
				return
			}
		}
	}
}

// shownObject is an object of the Gateway API as lists show it.
type shownObject struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       any      `json:"spec"`
	Status     any      `json:"status"`
}

// metadata is what is shown of that of an object.
type metadata struct {
	Namespace         string      `json:"namespace,omitempty"`
	Name              string      `json:"name"`
	UID               string      `json:"uid"`
	Generation        int64       `json:"generation,omitempty"`
	CreationTimestamp metav1.Time `json:"creationTimestamp,omitzero"`
}

// shown is the object with the status that it has or will have. Its annotations, of which kubectl fills one with a copy of the object, are left out.
func (v *gatewayView) shown() shownObject {
	o := shownObject{APIVersion: gatewayv1.GroupVersion.String(), Kind: v.ref.Kind, Status: v.status, Metadata: metadata{
		Namespace: v.ref.Namespace, Name: v.ref.Name, UID: string(v.object.GetUID()), Generation: v.object.GetGeneration(), CreationTimestamp: v.object.GetCreationTimestamp(),
	}}
	switch of := v.object.(type) {
	case *gatewayv1.Gateway:
		o.Spec = &of.Spec
	case *gatewayv1.ListenerSet:
		o.Spec = &of.Spec
	case *gatewayv1.HTTPRoute:
		o.Spec = withoutFilterSecrets(&of.Spec)
	case *gatewayv1.GRPCRoute:
		o.Spec = withoutGRPCSecrets(&of.Spec)
	case *gatewayv1.TLSRoute:
		o.Spec = &of.Spec
	case *gatewayv1.TCPRoute:
		o.Spec = &of.Spec
	case *gatewayv1.UDPRoute:
		o.Spec = &of.Spec
	}
	return o
}

// ExplainObject is Explain, and for another kind than Route GatewayReport. Any goroutine may call it.
func (c *Controller) ExplainObject(kind, namespace, name string) (any, bool) {
	if kind == "" || kind == source.Route.String() {
		return c.Explain(namespace, name)
	}
	return c.GatewayReport(kind, namespace, name)
}
