package cluster

import (
	"context"
	"fmt"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/fields"

	"turnout/controller/source"
)

// mostOfHost is how many routes of a host are read.
const mostOfHost = "100"

// OfHost reads the routes of a host, in all namespaces and whatever their labels: also those that this feeder does not deliver. An API
// server that cannot select by host says so in the error.
func (f *Feeder) OfHost(ctx context.Context, host string) ([]source.Event, error) {
	var list routev1.RouteList
	err := f.clients.route.Get().Resource("routes").Param("fieldSelector", fields.OneTermEqualSelector("spec.host", host).String()).
		Param("limit", mostOfHost).Do(ctx).Into(&list)
	if err != nil {
		return nil, fmt.Errorf("cannot list the routes of host %s: %w", host, err)
	}
	events := make([]source.Event, len(list.Items))
	for i := range list.Items {
		o := &list.Items[i]
		events[i] = source.Event{Kind: source.Route, Key: source.Key{Namespace: o.Namespace, Name: o.Name}, Object: o, Origin: "cluster"}
	}
	return events, nil
}
