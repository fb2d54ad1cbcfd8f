package api

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// GroupVersion is that of the resources.
var GroupVersion = schema.GroupVersion{Group: "turnout.router", Version: "v1alpha1"}

// AddToScheme makes the types known.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Router{}, &RouterList{}, &RouteBinding{}, &RouteBindingList{}, &RouteScheduler{}, &RouteSchedulerList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Client reads and writes the resources. It is used by several goroutines.
//
// +kubebuilder:object:generate=false
type Client struct {
	rest  *rest.RESTClient
	codec runtime.ParameterCodec
}

// NewClient makes a client of an API server.
func NewClient(reach *rest.Config) (*Client, error) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		return nil, fmt.Errorf("cannot make a client of %s: %w", GroupVersion, err)
	}
	own := rest.CopyConfig(reach)
	own.GroupVersion, own.APIPath = &GroupVersion, "/apis"
	own.NegotiatedSerializer = serializer.NewCodecFactory(s).WithoutConversion()
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON // custom resources have no protobuf
	c, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client of %s: %w", GroupVersion, err)
	}
	return &Client{rest: c, codec: runtime.NewParameterCodec(s)}, nil
}

// Routers are those of the cluster.
func (c *Client) Routers() *Resource[Router, RouterList] {
	return &Resource[Router, RouterList]{c, "routers", ""}
}

// Bindings are those of a namespace, of all for "".
func (c *Client) Bindings(namespace string) *Resource[RouteBinding, RouteBindingList] {
	return &Resource[RouteBinding, RouteBindingList]{c, "routebindings", namespace}
}

// Schedulers are those of the cluster.
func (c *Client) Schedulers() *Resource[RouteScheduler, RouteSchedulerList] {
	return &Resource[RouteScheduler, RouteSchedulerList]{c, "routeschedulers", ""}
}

// Resource reads and writes one kind of objects, with the methods that client-go has for kinds of its own. The clients that client-go generates
// would bring all kinds of Kubernetes with them into the program.
//
// +kubebuilder:object:generate=false
type Resource[T, L any] struct {
	client    *Client
	resource  string
	namespace string // "" for cluster-scoped resources and for all namespaces
}

// object is a pointer to a T or an L.
func object[T any](of *T) runtime.Object { return any(of).(runtime.Object) }

// done names what was asked in an error. Errors of the API server keep their kind.
func (r *Resource[T, L]) done(verb, name string, err error) error {
	if err != nil {
		return fmt.Errorf("cannot %s %s %s: %w", verb, r.resource, types.NamespacedName{Namespace: r.namespace, Name: name}, err)
	}
	return nil
}

func (r *Resource[T, L]) request(q *rest.Request) *rest.Request {
	return q.NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.resource)
}

// Get returns one object.
func (r *Resource[T, L]) Get(ctx context.Context, name string, options metav1.GetOptions) (*T, error) {
	out := new(T)
	err := r.request(r.client.rest.Get()).Name(name).VersionedParams(&options, r.client.codec).Do(ctx).Into(object(out))
	return out, r.done("get", name, err)
}

// List returns a list.
func (r *Resource[T, L]) List(ctx context.Context, options metav1.ListOptions) (*L, error) {
	out := new(L)
	err := r.request(r.client.rest.Get()).VersionedParams(&options, r.client.codec).Do(ctx).Into(object(out))
	return out, r.done("list", "", err)
}

// Watch watches until ctx ends or the server ends it.
func (r *Resource[T, L]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	q := r.request(r.client.rest.Get()).VersionedParams(&options, r.client.codec)
	if options.TimeoutSeconds != nil {
		q = q.Timeout(time.Duration(*options.TimeoutSeconds) * time.Second)
	}
	w, err := q.Watch(ctx)
	return w, r.done("watch", "", err)
}

// Create makes an object.
func (r *Resource[T, L]) Create(ctx context.Context, obj *T, options metav1.CreateOptions) (*T, error) {
	out := new(T)
	err := r.request(r.client.rest.Post()).VersionedParams(&options, r.client.codec).Body(object(obj)).Do(ctx).Into(object(out))
	return out, r.done("create", any(obj).(metav1.Object).GetName(), err)
}

// Update writes an object but for its status.
func (r *Resource[T, L]) Update(ctx context.Context, obj *T, options metav1.UpdateOptions) (*T, error) {
	return r.write(ctx, obj, options)
}

// UpdateStatus writes the status of an object.
func (r *Resource[T, L]) UpdateStatus(ctx context.Context, obj *T, options metav1.UpdateOptions) (*T, error) {
	return r.write(ctx, obj, options, "status")
}

func (r *Resource[T, L]) write(ctx context.Context, obj *T, options metav1.UpdateOptions, subresource ...string) (*T, error) {
	out, name := new(T), any(obj).(metav1.Object).GetName()
	err := r.request(r.client.rest.Put()).Name(name).SubResource(subresource...).VersionedParams(&options, r.client.codec).Body(object(obj)).Do(ctx).Into(object(out))
	return out, r.done("update", name, err)
}

// Patch changes an object, or its subresource.
func (r *Resource[T, L]) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresource ...string) (*T, error) {
	out := new(T)
	err := r.request(r.client.rest.Patch(kind)).Name(name).SubResource(subresource...).VersionedParams(&options, r.client.codec).Body(data).Do(ctx).Into(object(out))
	return out, r.done("patch", name, err)
}

// Delete deletes an object.
func (r *Resource[T, L]) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return r.done("delete", name, r.request(r.client.rest.Delete()).Name(name).Body(&options).Do(ctx).Error())
}
