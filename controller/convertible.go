package controller

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/endpoints"
	"turnout/controller/gateway/convert"
	"turnout/controller/ingress"
	"turnout/controller/source"
	"turnout/controller/source/folder"
	"turnout/controller/translate"
	"turnout/routing"
)

// Convertible says what of manifests, or of a cluster's objects, can be converted into objects of the Gateway API: what a router with these options would serve, Ingresses
// of all classes included, or of the one class that is not "". The report says what is not served. It fails when options cannot be used.
func Convertible(options Options, content *folder.Content, class string) (*Report, *convert.Input, error) {
	options.KeepWithoutSecret, options.Ingress = true, true
	relaxed := *content
	relaxed.Events = convert.Relaxed(content.Events, options.IngressController, class)
	report, c, err := validate(options, &relaxed)
	if err != nil {
		return nil, nil, err
	}
	in := &convert.Input{Services: make(map[source.Key]*corev1.Service)}
	from := make(map[object]convert.Source)
	for i := range content.Events {
		e := &content.Events[i]
		if meta, ok := e.Object.(metav1.Object); ok && (e.Kind == source.Route || e.Kind == source.Ingress) {
			from[object{e.Kind, e.Key}] = convert.Source{Kind: e.Kind, Key: e.Key, Origin: e.Origin, Labels: meta.GetLabels(), Annotations: meta.GetAnnotations()}
		}
	}
	for v := range c.state.services.All() {
		if v.object != nil {
			in.Services[v.key] = v.object
		}
	}
	for r := range c.state.routes.All() {
		if r.served {
			in.Items = append(in.Items, c.state.convertible(r, from))
		}
	}
	slices.SortFunc(in.Items, func(a, b convert.Item) int {
		return cmp.Or(order(a.Of.Key, b.Of.Key), cmp.Compare(a.Of.Kind, b.Of.Kind), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path.Value, b.Path.Value), cmp.Compare(a.Path.Kind, b.Path.Kind))
	})
	return report, in, nil
}

// convertible is a route that is served, for its conversion. from are the objects as they were read.
func (s *state) convertible(r *route, from map[object]convert.Source) convert.Item {
	o := s.objectOf(r)
	made := s.translator.Route(translate.Input{
		Route: o, Host: r.host, TLS: r.tls.out, Leaf: r.tls.leaf, Service: func(string) *endpoints.Set { return new(endpoints.Set) },
	})
	it := convert.Item{
		Of: from[object{source.Route, r.key}], Route: o, Spec: made.Spec, Rules: made.Rules(), TLS: r.tls.out, Host: r.host, Path: routing.PathMatch{Value: o.Spec.Path},
	}
	if r.rule == nil {
		return it
	}
	it.Of, it.Path, it.Default, it.Problem = from[object{source.Ingress, r.rule.Of}], r.rule.Path, r.rule.Default, r.rule.Problem.Message
	if r.rule.Host == ingress.AnyHost {
		it.Host = ""
	}
	return it
}
