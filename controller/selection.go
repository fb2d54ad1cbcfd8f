package controller

import (
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"turnout/controller/source"
)

// Routes that are not selected are put aside as events, and come in when they are: when their namespace is, their labels change, or
// another selection is made. Services and endpoints are kept as they are: without routes they have no effect.

// selection is which routes are served, of those that sources deliver.
type selection struct {
	byNamespace        bool // Options.SelectNamespaces
	namespaces, routes labels.Selector
	bound              bool // Options.Router: only routes that are bound
}

func (o *Options) selection() (selection, error) {
	namespaces, err := labels.Parse(o.NamespaceLabels)
	if err != nil {
		return selection{}, err
	}
	routes, err := labels.Parse(o.RouteLabels)
	return selection{o.SelectNamespaces, namespaces, routes, o.Router != ""}, err
}

// selects reports whether the route of an event is served as far as its namespace and labels go.
func (s *state) selects(o *routev1.Route) (bool, ClaimState) {
	if s.selection.byNamespace {
		of, there := s.namespaces[o.Namespace]
		if !there || !s.selection.namespaces.Matches(of) {
			return false, ClaimNotSelected
		}
	}
	if isRule(o) {
		return true, ClaimServed // which Ingresses are served their classes say
	}
	if !s.selection.routes.Matches(labels.Set(o.Labels)) {
		return false, ClaimOtherShard
	}
	if s.selection.bound && s.bindings.find(o) == nil {
		return false, ClaimUnbound
	}
	return true, ClaimServed
}

// isOutside puts the event of a route aside that is not selected, and reports whether it did.
func (s *state) isOutside(e *source.Event) bool {
	object, _ := e.Object.(*routev1.Route)
	if object == nil {
		s.bringIn(e.Key)
		return false
	}
	selected, why := s.selects(object)
	if selected {
		s.bringIn(e.Key)
		return false
	}
	s.views.setOutside(e, why)
	if s.outside[e.Key.Namespace] == nil {
		s.outside[e.Key.Namespace] = make(map[string]source.Event)
	}
	s.outside[e.Key.Namespace][e.Key.Name] = *e
	return true
}

// bringIn forgets that a route was put aside.
func (s *state) bringIn(key source.Key) {
	of := s.outside[key.Namespace]
	if _, aside := of[key.Name]; !aside {
		return
	}
	s.views.setOutside(&source.Event{Key: key}, ClaimServed)
	if delete(of, key.Name); len(of) == 0 {
		delete(s.outside, key.Namespace)
	}
}

// namespaceEvent notes which labels a namespace has, and that it is gone.
func (s *state) namespaceEvent(e *source.Event) {
	name := e.Key.Name
	if o, ok := e.Object.(*corev1.Namespace); ok && o != nil {
		s.namespaces[name] = labels.Set(o.Labels)
	} else {
		delete(s.namespaces, name)
	}
	if s.selection.byNamespace {
		s.reselect(name)
	}
}

// reselect looks which routes of a namespace, "" = of all, are selected now.
func (s *state) reselect(namespace string) {
	var out, in []source.Event
	for key, r := range s.routes {
		if namespace == "" || key.Namespace == namespace {
			o := r.kept.object()
			if selected, _ := s.selects(o); !selected {
				out = append(out, source.Event{Kind: source.Route, Key: key, Object: o, Order: r.order, Origin: r.origin})
			}
		}
	}
	for of, events := range s.outside {
		if namespace == "" || of == namespace {
			for _, e := range events {
				if selected, _ := s.selects(e.Object.(*routev1.Route)); selected {
					in = append(in, e)
				}
			}
		}
	}
	for i := range out {
		s.routeEvent(&out[i])
	}
	for i := range in {
		s.routeEvent(&in[i])
	}
}
