package converter

import (
	"context"
	"encoding/json"
	"fmt"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"turnout/controller/status"
)

// api is the cluster as conversions write to it. Errors are those of the Kubernetes client.
type api interface {
	status.IngressAPI
	// CreateRoute makes a Route that has a name.
	CreateRoute(ctx context.Context, route *routev1.Route) error
	// UpdateRoute gives a Route the spec, annotations, labels and owners of next. It fails with a conflict when it has another resourceVersion than next.
	UpdateRoute(ctx context.Context, next *routev1.Route) error
	// DeleteRoute deletes the Route of exactly this UID.
	DeleteRoute(ctx context.Context, route *routev1.Route) error
}

// client is the api of a cluster.
type client struct {
	status.IngressAPI

	routes rest.Interface
}

func (c *client) CreateRoute(ctx context.Context, route *routev1.Route) error {
	if err := c.routes.Post().Namespace(route.Namespace).Resource("routes").Body(route).Do(ctx).Error(); err != nil {
		return fmt.Errorf("cannot create route: %w", err)
	}
	return nil
}

// operation is one of a JSON patch (RFC 6902). Each is "add", which replaces what is there and does not mind if nothing is.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func (c *client) UpdateRoute(ctx context.Context, next *routev1.Route) error {
	patch, err := json.Marshal([]operation{
		{"add", "/metadata/resourceVersion", next.ResourceVersion},
		{"add", "/metadata/annotations", next.Annotations},
		{"add", "/metadata/labels", next.Labels},
		{"add", "/metadata/ownerReferences", next.OwnerReferences},
		{"add", "/spec", &next.Spec},
	})
	if err != nil {
		return fmt.Errorf("cannot encode route: %w", err)
	}
	if err := c.routes.Patch(types.JSONPatchType).Namespace(next.Namespace).Resource("routes").Name(next.Name).Body(patch).Do(ctx).Error(); err != nil {
		return fmt.Errorf("cannot update route: %w", err)
	}
	return nil
}

func (c *client) DeleteRoute(ctx context.Context, route *routev1.Route) error {
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &route.UID}}
	if err := c.routes.Delete().Namespace(route.Namespace).Resource("routes").Name(route.Name).Body(options).Do(ctx).Error(); err != nil {
		return fmt.Errorf("cannot delete route: %w", err)
	}
	return nil
}
