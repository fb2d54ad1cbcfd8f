// Package show reads Routers and what is bound to them from an API server, for people: what turnout routers and turnout bindings print, and what the
// page shows.
package show

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"turnout/controller/shard/api"
	"turnout/controller/source/cluster"
)

// Router is one Router.
type Router struct {
	Name              string   `json:"name"`
	Domain            string   `json:"domain,omitempty"`
	Phase             string   `json:"phase"`
	Ready             int32    `json:"readyReplicas"`
	Routes            int32    `json:"routes"`
	Capacity          int32    `json:"capacity,omitempty"` // routes; 0: no limit
	Moving            int32    `json:"moving"`
	RequestsPerSecond int32    `json:"requestsPerSecond"` // of all replicas, mean of the last minute
	RequestsCapacity  int32    `json:"requestsCapacity,omitempty"`
	Addresses         []string `json:"addresses,omitempty"`
	MoreAddresses     int      `json:"moreAddresses,omitempty"` // that a Board leaves out
	Taints            []string `json:"taints,omitempty"`        // KEY:EFFECT
	Problems          []string `json:"problems,omitempty"`      // conditions that are not as they should be
}

// Binding is a Route that is bound to a Router, or that waits for one.
type Binding struct {
	Namespace string `json:"namespace"`
	Route     string `json:"route"`
	Router    string `json:"router,omitempty"` // "": it waits
	Phase     string `json:"phase"`            // of the RouteBinding, or Waiting
	DNS       string `json:"dns,omitempty"`
	Target    string `json:"target,omitempty"`  // what a domain of the user's own points to
	Message   string `json:"message,omitempty"` // why it waits
}

// Waiting is the phase of a Route that no Router has yet.
const Waiting = "Waiting"

// page is how many objects are asked for at a time.
const page = 500

// Reader asks an API server. It is made by New.
type Reader struct {
	shards *api.Client
	routes rest.Interface
}

// New returns a Reader. The API server is not asked yet.
func New(cfg *cluster.Config) (*Reader, error) {
	reach, err := cfg.API()
	if err != nil {
		return nil, err
	}
	r := new(Reader)
	if r.shards, err = api.NewClient(reach); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := routev1.Install(scheme); err != nil {
		return nil, fmt.Errorf("BUG: cannot register API types: %w", err)
	}
	own := rest.CopyConfig(reach)
	own.GroupVersion, own.APIPath, own.NegotiatedSerializer = &routev1.GroupVersion, "/apis", serializer.NewCodecFactory(scheme).WithoutConversion()
	r.routes, err = rest.RESTClientFor(own)
	return r, err
}

// Routers returns all Routers, by name.
func (r *Reader) Routers(ctx context.Context) ([]Router, error) {
	list, err := r.shards.Routers().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := make([]Router, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, RouterOf(&list.Items[i]))
	}
	slices.SortFunc(all, func(a, b Router) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// RouterOf is a Router as people see it.
func RouterOf(o *api.Router) Router {
	r := Router{
		Name: o.Name, Phase: cmp.Or(string(o.Status.Phase), string(api.RouterPending)), Ready: o.Status.ReadyReplicas, Routes: o.Status.RoutesBound, Moving: o.Status.Moving,
		Addresses: o.Status.Addresses,
	}
	if o.Spec.DNS != nil {
		r.Domain = o.Spec.DNS.Domain
	}
	if o.Spec.Capacity != nil {
		r.Capacity, r.RequestsCapacity = o.Spec.Capacity.Routes, o.Spec.Capacity.RequestsPerSecond
	}
	for i := range o.Spec.Taints {
		r.Taints = append(r.Taints, taint(&o.Spec.Taints[i]))
	}
	for i := range o.Status.Replicas {
		r.RequestsPerSecond += o.Status.Replicas[i].RequestsPerSecond
	}
	for _, c := range o.Status.Conditions {
		if c.Status == metav1.ConditionFalse {
			r.Problems = append(r.Problems, c.Message)
		}
	}
	return r
}

// Bindings returns what is bound and what waits in a namespace, "" for all, by route and router.
func (r *Reader) Bindings(ctx context.Context, namespace string) ([]Binding, error) {
	var all []Binding
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := r.shards.Bindings(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			o := &list.Items[i]
			all = append(all, Binding{
				Namespace: o.Namespace, Route: o.Spec.RouteName, Router: o.Spec.Router, Phase: cmp.Or(string(o.Status.Phase), string(api.BindingPending)), DNS: o.Spec.DNS, Target: o.Spec.Target,
			})
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	waiting, err := r.waiting(ctx, namespace)
	if err != nil {
		return nil, err
	}
	all = append(all, waiting...)
	slices.SortFunc(all, func(a, b Binding) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Route, b.Route), cmp.Compare(a.Router, b.Router))
	})
	return all, nil
}

// onlyMetadata has an API server leave out what Routes say besides their metadata.
const onlyMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// waiting returns the Routes of a namespace that are not bound.
func (r *Reader) waiting(ctx context.Context, namespace string) (all []Binding, err error) {
	from := ""
	for {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		q := r.routes.Get().NamespaceIfScoped(namespace, namespace != "").Resource("routes").SetHeader("Accept", onlyMetadata).Param("limit", fmt.Sprint(page))
		if from != "" {
			q = q.Param("continue", from)
		}
		text, err := q.Do(ctx).Raw()
		cancel()
		if err != nil {
			return nil, fmt.Errorf("cannot list routes: %w", err)
		}
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("cannot read the list of routes: %w", err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; o.Annotations[api.AnnotationPhase] != api.RoutePhaseScheduled && !bound(o.Labels) {
				all = append(all, Binding{
					Namespace: o.Namespace, Route: o.Name, Phase: Waiting, Target: o.Annotations[api.AnnotationTarget], Message: o.Annotations[api.AnnotationMessage],
				})
			}
		}
		if from = list.Continue; from == "" {
			return all, nil
		}
	}
}

// bound reports whether labels of a Route name a Router.
func bound(labels map[string]string) bool {
	for key := range labels {
		if strings.HasPrefix(key, api.LabelPrefix) {
			return true
		}
	}
	return false
}
