package controller

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"turnout/controller/gateway"
	"turnout/controller/source"
)

// events are all objects that only the Gateway API needs, as they are, for who judges them anew.
func (g *gateways) events() (events []source.Event) {
	if !g.serves() {
		return nil
	}
	kinds := make(map[string]source.Kind)
	for kind := source.GatewayClass; kind <= source.BackendTLSPolicy; kind++ {
		kinds[kind.String()] = kind
	}
	for ref, object := range g.all {
		events = append(events, source.Event{Kind: kinds[ref.Kind], Key: ref.Key, Object: object, Origin: g.origins[ref]})
	}
	for key, grant := range g.objects.Grants.All() {
		events = append(events, source.Event{Kind: source.ReferenceGrant, Key: key, Object: grant})
	}
	for key, object := range g.objects.ConfigMaps.All() {
		events = append(events, source.Event{Kind: source.ConfigMap, Key: key, Object: object})
	}
	if g.objects.Installed != (gateway.Installed{}) {
		events = append(events, source.Event{Kind: source.CustomResourceDefinition, Object: definition(g.objects.Installed)})
	}
	return events
}

// definition is what installed reads.
func definition(of gateway.Installed) runtime.Object {
	o := new(unstructured.Unstructured)
	o.SetAnnotations(map[string]string{annotationVersion: of.Version, annotationChannel: of.Channel})
	return o
}
