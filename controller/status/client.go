package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	routev1 "github.com/openshift/api/route/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

const pageSize = 500

// client is the API of a cluster.
type client struct {
	rest      rest.Interface
	namespace string
	noPatch   atomic.Bool
}

// NewClient returns the API of a cluster for a Writer. routes speaks of the group
// route.openshift.io/v1 and knows its types; namespace is where routes are listed, "" for
// everywhere. The Writer has its own rate limit: that of the client should be off (QPS
// -1), lest status waits for what others ask.
//
// It needs list on routes, and patch or update on routes/status. A status is written as
// a merge patch that names the resourceVersion it is made for: it is small, and the
// parts of the object that are not status, of which the sources keep only what they
// use, do not travel. A role that allows no patch, as older ones for routers, gets the
// whole object read and updated.
func NewClient(routes rest.Interface, namespace string) API {
	return &client{rest: routes, namespace: namespace}
}

// GetRoute lists one name, because a router may list routes but not get them.
func (c *client) GetRoute(ctx context.Context, namespace, name string) (*routev1.Route, error) {
	var list routev1.RouteList
	err := c.rest.Get().Namespace(namespace).Resource("routes").
		Param("fieldSelector", fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()).Do(ctx).Into(&list)
	if err != nil {
		return nil, fmt.Errorf("cannot get route: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Name == name {
			return &list.Items[i], nil
		}
	}
	return nil, apierrors.NewNotFound(routev1.Resource("routes"), name)
}

func (c *client) List(ctx context.Context, token string) ([]routev1.Route, string, error) {
	var list routev1.RouteList
	request := c.rest.Get().NamespaceIfScoped(c.namespace, c.namespace != "").Resource("routes").Param("limit", strconv.Itoa(pageSize))
	if token != "" {
		request.Param("continue", token)
	}
	err := request.Do(ctx).Into(&list)
	if next := expired(err); next != "" {
		return nil, next, nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("cannot list routes: %w", err)
	}
	return list.Items, list.Continue, nil
}

// expired returns the token that the server gives for one that is too old, which goes on at the same place in what there is now; "" for other errors.
func expired(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

func (c *client) WriteStatus(ctx context.Context, route *routev1.Route) (*routev1.Route, error) {
	if !c.noPatch.Load() {
		out, err := c.patch(ctx, route)
		if !apierrors.IsForbidden(err) {
			return out, err
		}
		if out, err = c.update(ctx, route); err == nil {
			c.noPatch.Store(true)
		}
		return out, err
	}
	return c.update(ctx, route)
}

// statusPatch is a merge patch. Its list is never left out: that would change nothing.
type statusPatch struct {
	Metadata struct {
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	} `json:"metadata"`
	Status struct {
		Ingress []routev1.RouteIngress `json:"ingress"`
	} `json:"status"`
}

func (c *client) patch(ctx context.Context, route *routev1.Route) (*routev1.Route, error) {
	var patch statusPatch
	patch.Metadata.UID, patch.Metadata.ResourceVersion = route.UID, route.ResourceVersion
	if patch.Status.Ingress = route.Status.Ingress; patch.Status.Ingress == nil {
		patch.Status.Ingress = []routev1.RouteIngress{}
	}
	data, err := json.Marshal(&patch)
	if err != nil {
		return nil, fmt.Errorf("cannot encode route status: %w", err)
	}
	out := new(routev1.Route)
	err = c.rest.Patch(types.MergePatchType).Namespace(route.Namespace).Resource("routes").Name(route.Name).SubResource("status").
		Body(data).Do(ctx).Into(out)
	if err != nil {
		return nil, fmt.Errorf("cannot patch route status: %w", err)
	}
	return out, nil
}

func (c *client) update(ctx context.Context, route *routev1.Route) (*routev1.Route, error) {
	live, err := c.GetRoute(ctx, route.Namespace, route.Name)
	if err != nil {
		return nil, err
	}
	if live.UID != route.UID || live.ResourceVersion != route.ResourceVersion {
		return nil, apierrors.NewConflict(routev1.Resource("routes"), route.Name, fmt.Errorf("the route has changed"))
	}
	live.Status.Ingress = route.Status.Ingress
	out := new(routev1.Route)
	err = c.rest.Put().Namespace(route.Namespace).Resource("routes").Name(route.Name).SubResource("status").Body(live).Do(ctx).Into(out)
	if err != nil {
		return nil, fmt.Errorf("cannot update route status: %w", err)
	}
	return out, nil
}
