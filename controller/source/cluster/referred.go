package cluster

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"turnout/controller/ingresscontroller"
	"turnout/controller/source"
)

// definition is the CustomResourceDefinition whose annotations say which release of the Gateway API there is.
var definition = ingresscontroller.Ref{Kind: source.CustomResourceDefinition, Key: source.Key{Name: "gatewayclasses.gateway.networking.k8s.io"}}

// Referred delivers single ConfigMaps for as long as somebody wants them, and, to who writes status, which release of the Gateway API there is. It is made by NewReferred.
type Referred struct {
	objects *Objects
	sink    source.Sink             // of Run
	always  []ingresscontroller.Ref // what is delivered in any case
}

// NewReferred returns what delivers nothing before Run.
func NewReferred(cfg Config) (*Referred, error) {
	r := new(Referred)
	if cfg.Gateway == (source.Key{}) {
		r.always = []ingresscontroller.Ref{definition}
	}
	var err error
	if r.objects, err = NewObjects(cfg, r.put); err != nil {
		return nil, err
	}
	r.Follow(nil)
	return r, nil
}

// Follow says which ConfigMaps are delivered from now on. Of those that are not, nothing is said.
func (r *Referred) Follow(keys []source.Key) {
	refs := slices.Clone(r.always)
	for _, key := range keys {
		refs = append(refs, ingresscontroller.Ref{Kind: source.ConfigMap, Key: key})
	}
	r.objects.Follow(refs)
}

// Run delivers to sink until ctx is done. It returns nil then. It must be called once.
func (r *Referred) Run(ctx context.Context, sink source.Sink) error {
	r.sink = sink
	return r.objects.Run(ctx)
}

// put delivers one object. One that may not be read is as one that is not there.
func (r *Referred) put(ref ingresscontroller.Ref, object *unstructured.Unstructured, _ string) {
	e := source.Event{Kind: ref.Kind, Key: ref.Key}
	switch {
	case object == nil:
	case ref.Kind == source.ConfigMap:
		o := new(corev1.ConfigMap)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, o); err == nil {
			o.ObjectMeta = metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}
			e.Object = o
		}
	default:
		lean := new(unstructured.Unstructured)
		lean.SetName(object.GetName())
		lean.SetAnnotations(object.GetAnnotations())
		e.Object = lean
	}
	r.sink.Event(e)
}
