package convert

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/ingress"
	"turnout/controller/source"
)

// unclassed is the class of Ingresses that name none.
const unclassed = "of-those-that-name-none"

// Relaxed returns events as they are to be judged for a conversion: Ingresses are served whatever their classes, or those of one class if that is not ""; annotations that have
// them answered with 503 are taken out, as they are said elsewhere; and Services that are not there have the ports that Ingresses name. controller is what
// classes of the router say. events stay as they are.
func Relaxed(events []source.Event, controller, class string) []source.Event {
	out := make([]source.Event, 0, len(events))
	services := make(map[source.Key]bool)
	for i := range events {
		if events[i].Kind == source.Service && events[i].Object != nil {
			services[events[i].Key] = true
		}
	}
	classes := make(map[string]bool)
	missing := make(map[source.Key]map[int32]bool)
	for _, e := range events {
		o, ok := e.Object.(*networkingv1.Ingress)
		switch {
		case e.Kind == source.IngressClass:
			continue
		case !ok:
			out = append(out, e)
			continue
		}
		name, asked := ingress.Class(o)
		if class != "" && name != class {
			continue
		}
		o = o.DeepCopy()
		maps.DeleteFunc(o.Annotations, func(key, _ string) bool { return ingress.Guards(key) })
		if !asked || name == "" {
			name = unclassed
			o.Spec.IngressClassName = &name
			delete(o.Annotations, ingress.AnnotationClass)
		}
		classes[name] = true
		for key, numbers := range named(o) {
			if services[key] {
				continue
			}
			if missing[key] == nil {
				missing[key] = make(map[int32]bool)
			}
			maps.Copy(missing[key], numbers)
		}
		e.Object = o
		out = append(out, e)
	}
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		if controller == "" {
			controller = ingress.Controller
		}
		out = append(out, source.Event{Kind: source.IngressClass, Key: source.Key{Name: name}, Object: &networkingv1.IngressClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: controller},
		}})
	}
	for key, numbers := range missing {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{standIn: ""}}}
		for _, n := range slices.Sorted(maps.Keys(numbers)) {
			service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("port-%d", n), Port: n})
		}
		if len(numbers) > 0 {
			out = append(out, source.Event{Kind: source.Service, Key: key, Object: service})
		}
	}
	return out
}

// standIn is a label of Services that are not there.
const standIn = "turnout.router/stand-in"

// isStandIn reports whether a Service was made by Relaxed.
func isStandIn(s *corev1.Service) bool {
	_, is := s.Labels[standIn]
	return is
}

// named are the Services that an Ingress names, with the ports that it names by number.
func named(o *networkingv1.Ingress) map[source.Key]map[int32]bool {
	all := make(map[source.Key]map[int32]bool)
	add := func(b *networkingv1.IngressBackend) {
		if b == nil || b.Service == nil {
			return
		}
		key := source.Key{Namespace: o.Namespace, Name: b.Service.Name}
		if all[key] == nil {
			all[key] = make(map[int32]bool)
		}
		if b.Service.Port.Number > 0 {
			all[key][b.Service.Port.Number] = true
		}
	}
	add(o.Spec.DefaultBackend)
	for i := range o.Spec.Rules {
		if http := o.Spec.Rules[i].HTTP; http != nil {
			for j := range http.Paths {
				add(&http.Paths[j].Backend)
			}
		}
	}
	return all
}
