package controller

import "turnout/controller/source"

// With Options.SelectNamespaces the routes of namespaces that are not selected are put
// aside as events, and come in when their namespace does. Services and endpoints are
// kept as they are: without routes they have no effect.

// isOutside puts the event of a route aside whose namespace is not selected, and
// reports whether it did.
func (s *state) isOutside(e *source.Event) bool {
	if !s.cfg.Options.SelectNamespaces {
		return false
	}
	namespace := e.Key.Namespace
	if _, selected := s.selected[namespace]; selected {
		return false
	}
	s.views.setOutside(e)
	if e.Object == nil {
		delete(s.outside[namespace], e.Key.Name)
		if len(s.outside[namespace]) == 0 {
			delete(s.outside, namespace)
		}
		return true
	}
	if s.outside[namespace] == nil {
		s.outside[namespace] = make(map[string]source.Event)
	}
	s.outside[namespace][e.Key.Name] = *e
	return true
}

// namespaceEvent selects the namespace of an object, and no longer one without.
func (s *state) namespaceEvent(e *source.Event) {
	if !s.cfg.Options.SelectNamespaces {
		return
	}
	name := e.Key.Name
	_, selected := s.selected[name]
	switch {
	case e.Object != nil && !selected:
		s.selected[name] = struct{}{}
		events := s.outside[name]
		delete(s.outside, name)
		for _, e := range events {
			s.views.setOutside(&source.Event{Key: e.Key})
			s.routeEvent(&e)
		}
	case e.Object == nil && selected:
		delete(s.selected, name)
		for key, r := range s.routes {
			if key.Namespace == name {
				s.forget(r)
				s.isOutside(&source.Event{Kind: source.Route, Key: key, Object: r.object, Order: r.order, Origin: r.origin})
			}
		}
	}
}
