package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"turnout/controller/ingresscontroller"
	"turnout/controller/source"
)

// resourcesOf are the resources of kinds that configure the router.
var resourcesOf = map[source.Kind]schema.GroupVersionResource{
	source.IngressController: {Group: "operator.openshift.io", Version: "v1", Resource: "ingresscontrollers"},
	source.APIServer:         {Group: "config.openshift.io", Version: "v1", Resource: "apiservers"},
	source.IngressConfig:     {Group: "config.openshift.io", Version: "v1", Resource: "ingresses"},
	source.ConfigMap:         {Version: "v1", Resource: "configmaps"},
	source.Secret:            {Version: "v1", Resource: "secrets"},

	source.CustomResourceDefinition: {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
}

// Objects follows single objects of a cluster by their names: an IngressController and what it refers to. It is made by NewObjects.
type Objects struct {
	client dynamic.Interface
	put    func(ref ingresscontroller.Ref, object *unstructured.Unstructured, err string)

	mu      sync.Mutex
	ctx     context.Context // of what is followed; nil = Run has not been called
	wanted  []ingresscontroller.Ref
	stop    map[ingresscontroller.Ref]context.CancelFunc // of those that are followed
	running sync.WaitGroup
}

// NewObjects returns what follows no object yet. put is given each object as it is read, and when it changes; see Follower.Put.
func NewObjects(cfg Config, put func(ref ingresscontroller.Ref, object *unstructured.Unstructured, err string)) (*Objects, error) {
	config, err := cfg.API()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make API client: %w", err)
	}
	return &Objects{client: client, put: put, stop: map[ingresscontroller.Ref]context.CancelFunc{}}, nil
}

// Follow says which objects are followed from now on.
func (o *Objects) Follow(refs []ingresscontroller.Ref) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wanted = refs
	o.settle()
}

// settle starts and stops what is to be followed. The caller holds mu.
func (o *Objects) settle() {
	if o.ctx == nil {
		return
	}
	left := map[ingresscontroller.Ref]bool{}
	for _, ref := range o.wanted {
		left[ref] = true
		if o.stop[ref] == nil {
			ctx, stop := context.WithCancel(o.ctx)
			o.stop[ref] = stop
			o.running.Go(func() { o.follow(ctx, ref) })
		}
	}
	for ref, stop := range o.stop {
		if !left[ref] {
			stop()
			delete(o.stop, ref)
		}
	}
}

// Run follows objects until ctx is done. It returns nil then. It must be called once.
func (o *Objects) Run(ctx context.Context) error {
	o.mu.Lock()
	o.ctx = ctx
	o.settle()
	o.mu.Unlock()
	<-ctx.Done()
	o.running.Wait()
	return nil
}

// Pauses between attempts to read an object.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
)

// follow reads one object and what changes in it until ctx is done.
func (o *Objects) follow(ctx context.Context, ref ingresscontroller.Ref) {
	api := o.of(ref)
	only := fields.OneTermEqualSelector("metadata.name", ref.Key.Name).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			list, err := api.List(ctx, options)
			return list, o.heard(ctx, ref, err)
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			w, err := api.Watch(ctx, options)
			return w, o.heard(ctx, ref, err)
		},
	}
	silent := klog.Logger{}
	cache.NewReflectorWithOptions(lw, &unstructured.Unstructured{}, &single{o, ref}, cache.ReflectorOptions{
		Logger: &silent, Name: ref.Kind.String(), Backoff: &wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 1, Steps: 32, Cap: lastPause},
	}).RunWithContext(klog.NewContext(ctx, silent))
}

func (o *Objects) of(ref ingresscontroller.Ref) dynamic.ResourceInterface {
	all := o.client.Resource(resourcesOf[ref.Kind])
	if ref.Key.Namespace != "" {
		return all.Namespace(ref.Key.Namespace)
	}
	return all
}

// heard tells why an object cannot be read, if the API server says so: an outage leaves what there was. It returns err.
func (o *Objects) heard(ctx context.Context, ref ingresscontroller.Ref, err error) error {
	switch {
	case err == nil || ctx.Err() != nil || isOutage(err) || isExpired(err):
	case apierrors.IsNotFound(err): // the cluster does not know the kind
		o.put(ref, nil, "")
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		o.put(ref, nil, err.Error())
	}
	return err
}

// fieldManager is who writes conditions, for the API server.
const fieldManager = "turnout"

// PatchStatus changes the status of an object by a JSON patch (RFC 6902).
func (o *Objects) PatchStatus(ctx context.Context, ref ingresscontroller.Ref, patch []byte) error {
	_, err := o.of(ref).Patch(ctx, ref.Key.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	return err
}

// single is the store of a reflector of one object.
type single struct {
	of  *Objects
	ref ingresscontroller.Ref
}

func (s *single) pass(x any) error {
	if object, ok := x.(*unstructured.Unstructured); ok && object.GetName() == s.ref.Key.Name {
		s.of.put(s.ref, object, "")
	}
	return nil
}

// Add implements cache.ReflectorStore, as the others do.
func (s *single) Add(x any) error { return s.pass(x) }

// Update is Add.
func (s *single) Update(x any) error { return s.pass(x) }

// Delete passes on that there is no such object any more.
func (s *single) Delete(any) error {
	s.of.put(s.ref, nil, "")
	return nil
}

// Replace passes on what a reading has found.
func (s *single) Replace(list []any, _ string) error {
	if len(list) == 0 {
		s.of.put(s.ref, nil, "")
	}
	for _, x := range list {
		_ = s.pass(x) // never fails
	}
	return nil
}

// Resync does nothing.
func (s *single) Resync() error { return nil }
