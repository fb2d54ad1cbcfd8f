package controller

import (
	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"turnout/controller/source"
)

// Routes that are not selected are put aside, and come in when they are: when their namespace is, their labels change, or
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
		s.views.dropAside(e.Key)
		return false
	}
	selected, why := s.selects(object)
	if selected {
		s.views.dropAside(e.Key)
		return false
	}
	var before *kept
	if a := s.views.outside[e.Key.Namespace][e.Key.Name]; a != nil && a.kept.uid == object.UID {
		before = a.kept
	}
	now, _, err := s.keeper.keep(object, before)
	if err != nil {
		s.cfg.Log.Error("BUG: a route that is not selected cannot be kept", zap.Stringer("route", e.Key), zap.Error(err))
		return true
	}
	s.views.setAside(&aside{kept: now, host: object.Spec.Host, order: e.Order, origin: e.Origin, why: why})
	return true
}

// aside is a route that is not selected, and why. It is immutable, and kept as those that are: a router of some namespaces has the routes of all others aside.
type aside struct {
	kept          *kept
	host          string // that it asks for
	order, origin string // as its event had them
	why           ClaimState
}

// event makes the event again that the route came with.
func (a *aside) event() source.Event {
	return source.Event{Kind: source.Route, Key: a.kept.key, Object: a.kept.object(), Order: a.order, Origin: a.origin}
}

// setAside puts a route aside.
func (v *views) setAside(a *aside) {
	v.mu.Lock()
	defer v.mu.Unlock()
	of := v.outside[a.kept.key.Namespace]
	if of == nil {
		of = make(map[string]*aside)
		v.outside[a.kept.key.Namespace] = of
	}
	of[a.kept.key.Name] = a
}

// dropAside forgets a route that was put aside, if it was.
func (v *views) dropAside(key source.Key) {
	of := v.outside[key.Namespace]
	if of[key.Name] == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if delete(of, key.Name); len(of) == 0 {
		delete(v.outside, key.Namespace)
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
	for r := range s.routes.All() {
		if namespace == "" || r.key.Namespace == namespace {
			o := r.kept.object()
			if selected, _ := s.selects(o); !selected {
				out = append(out, source.Event{Kind: source.Route, Key: r.key, Object: o, Order: r.order, Origin: r.origin})
			}
		}
	}
	for of, asides := range s.views.outside {
		if namespace == "" || of == namespace {
			for _, a := range asides {
				e := a.event()
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
