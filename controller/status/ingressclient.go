package status

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// ingressClient is the API of a cluster for an IngressWriter.
type ingressClient struct{ networking, core rest.Interface }

// NewIngressClient returns the API of a cluster for an IngressWriter. networking speaks of networking.k8s.io/v1, core of v1, and both know the
// types. It needs patch on ingresses/status, and create on events.
func NewIngressClient(networking, core rest.Interface) IngressAPI {
	return &ingressClient{networking, core}
}

// ingressPatch is a merge patch (RFC 7396). Its list is never left out: null removes it.
type ingressPatch struct {
	Metadata struct {
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	} `json:"metadata"`
	Status struct {
		LoadBalancer struct {
			Ingress []networkingv1.IngressLoadBalancerIngress `json:"ingress"`
		} `json:"loadBalancer"`
	} `json:"status"`
}

func (c *ingressClient) WriteIngress(ctx context.Context, o *networkingv1.Ingress, list []networkingv1.IngressLoadBalancerIngress) (*networkingv1.Ingress, error) {
	var patch ingressPatch
	patch.Metadata.UID, patch.Metadata.ResourceVersion, patch.Status.LoadBalancer.Ingress = o.UID, o.ResourceVersion, list
	data, err := json.Marshal(&patch)
	if err != nil {
		return nil, fmt.Errorf("cannot encode status of an Ingress: %w", err)
	}
	out := new(networkingv1.Ingress)
	err = c.networking.Patch(types.MergePatchType).Namespace(o.Namespace).Resource("ingresses").Name(o.Name).SubResource("status").
		Param("fieldManager", IngressManager).Body(data).Do(ctx).Into(out)
	if err != nil {
		return nil, fmt.Errorf("cannot patch status of an Ingress: %w", err)
	}
	return out, nil
}

func (c *ingressClient) CreateEvent(ctx context.Context, event *corev1.Event) error {
	if err := c.core.Post().Namespace(event.Namespace).Resource("events").Body(event).Do(ctx).Error(); err != nil {
		return fmt.Errorf("cannot create an Event: %w", err)
	}
	return nil
}
