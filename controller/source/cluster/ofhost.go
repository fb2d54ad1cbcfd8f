package cluster

import (
	"context"
	"fmt"
	"slices"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	shards "turnout/controller/shard/api"
	"turnout/controller/source"
)

// How many routes, and how many bindings, of a host are read, and how many single objects that these name.
const (
	mostOfHost  = "100"
	mostNamedBy = 32
)

// OfHost reads the routes of a host, in all namespaces and whatever their labels: also those that this feeder does not deliver. Where routes are bound to
// Routers, it reads those too whose name this is by a RouteBinding, and these bindings and Routers. An API server that cannot select by host says so in the
// error.
func (f *Feeder) OfHost(ctx context.Context, host string) (events []source.Event, err error) {
	var list routev1.RouteList
	err = f.clients.route.Get().Resource("routes").Param("fieldSelector", fields.OneTermEqualSelector("spec.host", host).String()).
		Param("limit", mostOfHost).Do(ctx).Into(&list)
	if err != nil {
		err = fmt.Errorf("cannot list the routes of host %s: %w", host, err)
	}
	for i := range list.Items {
		events = append(events, eventOf(source.Route, list.Items[i].Namespace, list.Items[i].Name, &list.Items[i]))
	}
	bindings := f.bindingsOf(ctx, host)
	if len(bindings) == 0 {
		return events, err
	}
	asked := 0
	// Who cannot be read is left out: what the others say is true all the same.
	add := func(kind source.Kind, client rest.Interface, plural, namespace, name string, o runtime.Object) {
		key := source.Key{Namespace: namespace, Name: name}
		if asked == mostNamedBy || slices.ContainsFunc(events, func(e source.Event) bool { return e.Kind == kind && e.Key == key }) {
			return
		}
		asked++
		if client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(plural).Name(name).Do(ctx).Into(o) == nil {
			events = append(events, eventOf(kind, namespace, name, o))
		}
	}
	for i := range bindings {
		b := &bindings[i]
		events = append(events, eventOf(source.RouteBinding, b.Namespace, b.Name, b))
		add(source.Route, f.clients.route, "routes", b.Spec.RouteNamespace, b.Spec.RouteName, new(routev1.Route))
		add(source.Router, f.clients.shards, "routers", "", b.Spec.Router, new(shards.Router))
	}
	return events, nil
}

// bindingsOf are the RouteBindings by which a name is that of a route; none where there are no such objects, or nobody may read them.
func (f *Feeder) bindingsOf(ctx context.Context, name string) (all []shards.RouteBinding) {
	for _, field := range []string{"spec.dns", "spec.target"} {
		var list shards.RouteBindingList
		err := f.clients.shards.Get().Resource("routebindings").Param("fieldSelector", fields.OneTermEqualSelector(field, name).String()).Param("limit", mostOfHost).Do(ctx).Into(&list)
		if err != nil {
			continue
		}
		for i := range list.Items {
			if !slices.ContainsFunc(all, func(b shards.RouteBinding) bool {
				return b.Namespace == list.Items[i].Namespace && b.Name == list.Items[i].Name
			}) {
				all = append(all, list.Items[i])
			}
		}
	}
	return all
}

func eventOf(kind source.Kind, namespace, name string, o runtime.Object) source.Event {
	return source.Event{Kind: kind, Key: source.Key{Namespace: namespace, Name: name}, Object: o, Origin: "cluster"}
}
