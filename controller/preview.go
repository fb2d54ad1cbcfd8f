package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/balancer"
	"turnout/controller/source"
	"turnout/internal/ratelimit"
	"turnout/internal/target"
	"turnout/routing"
)

// Offline returns a controller that has made a table of objects, and serves nobody: its store and its pools are its own, and Run is not to be
// called. It is for finding out what becomes of the objects.
func Offline(options Options, defaults routing.Options, events []source.Event) (*Controller, *routing.Table, error) {
	return offline(options, defaults, nil, events)
}

func offline(options Options, defaults routing.Options, own *target.Own, events []source.Event) (*Controller, *routing.Table, error) {
	defaults.Registry, defaults.Rates = balancer.NewRegistry(), ratelimit.NewMemory(0)
	c, err := New(Config{Store: routing.NewStore(), Routing: defaults, Options: options})
	if err != nil {
		return nil, nil, err
	}
	c.state.setOwn(own)
	c.state.apply(events)
	return c, c.cfg.Store.Load(), nil
}

// Preview returns what Offline makes of the objects that c has, with those of a manifest in their place or besides them. Nothing of c changes.
// The error says what of the manifest cannot be used.
func (c *Controller) Preview(ctx context.Context, manifest []byte) (*Controller, *routing.Table, error) {
	var events []source.Event
	var own *target.Own
	var defaults routing.Options
	var options Options
	err := c.ask(ctx, func(s *state) { events, own, defaults, options = s.objects(), s.own, s.cfg.Routing, s.cfg.Options })
	if err != nil {
		return nil, nil, err
	}
	if events, err = Changed(events, manifest, c.cfg.Clock()); err != nil {
		return nil, nil, err
	}
	return offline(options, defaults, own, events)
}

// Objects returns all objects that there are. Run must have been called.
func (c *Controller) Objects(ctx context.Context) (events []source.Event, err error) {
	err = c.ask(ctx, func(s *state) { events = s.objects() })
	return events, err
}

// ask has the owner call look. The error is that of ctx when that ends first.
func (c *Controller) ask(ctx context.Context, look func(*state)) error {
	done := make(chan struct{})
	select {
	case c.asks <- func(s *state) {
		look(s)
		close(done)
	}:
		<-done
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// youngest is the Order of objects that a manifest adds.
const youngest = "\xff"

// Changed returns events with the objects of a manifest in the place of those of the same name, or behind them. Objects that are there keep their age, others
// are made now.
func Changed(events []source.Event, manifest []byte, now time.Time) ([]source.Event, error) {
	at := make(map[object]int, len(events))
	for i := range events {
		at[object{events[i].Kind, events[i].Key}] = i
	}
	isJSON := bytes.HasPrefix(bytes.TrimSpace(manifest), []byte("{"))
	found := 0
	for _, doc := range source.Split(manifest, isJSON) {
		objects, findings := source.Decode(doc)
		for _, f := range findings {
			if f.Severity == source.Error {
				return nil, fmt.Errorf("document %d: %s %s", doc.Number, f.Object, f.Reason)
			}
		}
		for _, o := range objects {
			found++
			next := source.Event{Kind: o.Kind, Key: o.Key, Object: o.Object, Order: youngest, Origin: "the change"}
			meta, _ := o.Object.(metav1.Object)
			i, there := at[object{o.Kind, o.Key}]
			if there && events[i].Object != nil {
				if old, ok := events[i].Object.(metav1.Object); ok {
					next.Order = events[i].Order
					meta.SetUID(old.GetUID())
					meta.SetCreationTimestamp(old.GetCreationTimestamp())
				}
				events[i] = next
				continue
			}
			if created := meta.GetCreationTimestamp(); created.IsZero() {
				meta.SetCreationTimestamp(metav1.NewTime(now))
			}
			events = append(events, next)
		}
	}
	if found == 0 {
		return nil, errors.New("the manifest has no object")
	}
	return events, nil
}

// objects are all that there are, as events.
func (s *state) objects() []source.Event {
	events := make([]source.Event, 0, s.routes.Len()+s.services.Len()+s.slices.Len()+len(s.secrets)+len(s.namespaces))
	for name, labels := range s.namespaces {
		events = append(events, source.Event{Kind: source.Namespace, Key: source.Key{Name: name}, Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}})
	}
	for class := range s.ingress.classes.All {
		events = append(events, source.Event{Kind: source.IngressClass, Key: source.Key{Name: class.Name}, Object: class})
	}
	for _, in := range s.ingress.all { // their rules follow from them
		events = append(events, source.Event{Kind: source.Ingress, Key: in.key, Object: in.object, Order: in.order, Origin: in.origin})
	}
	for r := range s.routes.All() {
		if r.rule != nil {
			continue
		}
		lean := r.kept.object()
		lean.Status = routev1.RouteStatus{} // what was said before has no part in it
		events = append(events, source.Event{Kind: source.Route, Key: r.key, Object: lean, Order: r.order, Origin: r.origin})
	}
	for _, of := range s.views.outside {
		for _, a := range of {
			if e := a.event(); !isRule(e.Object.(*routev1.Route)) {
				events = append(events, e)
			}
		}
	}
	for v := range s.services.All() {
		if v.object != nil {
			events = append(events, source.Event{Kind: source.Service, Key: v.key, Object: s.stated(v)})
		}
		for _, slice := range v.slices {
			object, err := slice.Object(v.key.Namespace, v.key.Name)
			if err != nil {
				s.cfg.Log.Error("BUG: an endpoint slice is left out of a preview", zap.Stringer("service", v.key), zap.Error(err))
				continue
			}
			events = append(events, source.Event{Kind: source.EndpointSlice, Key: source.Key{Namespace: v.key.Namespace, Name: slice.Name}, Object: object})
		}
	}
	for _, v := range s.secrets {
		events = append(events, source.Event{Kind: source.Secret, Key: v.key, Err: v.err})
		if v.object != nil {
			events[len(events)-1].Object = v.object
		}
	}
	return append(events, s.gateways.events()...)
}
