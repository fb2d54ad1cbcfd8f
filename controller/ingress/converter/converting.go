package converter

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"turnout/controller/ingress"
	"turnout/controller/ingress/convert"
	"turnout/controller/source"
)

const (
	mostWriting = 8               // Ingresses that are written for at a time
	unseenAgain = 2 * time.Second // between two looks whether Routes that were made have been seen
	unseenMost  = time.Minute     // after which they are not waited for any more
	retryFirst  = time.Second     // after a conversion that failed; doubled each time
	retryMost   = 5 * time.Minute
	showPause   = time.Second      // between two times that Stats are made
	idle        = time.Hour        // to the next look when nothing is due
	sayAgain    = 45 * time.Minute // between two Events that say the same
)

// work is what converting needs.
type work struct {
	api        api
	secrets    source.Secrets
	controller string // of classes
	identity   string
	log        *zap.Logger
	show       func(*Stats)
}

// converting is one time that this process leads. Its fields belong to the goroutine of run.
type converting struct {
	work
	inbox   *inbox
	classes *ingress.Classes
	synced  bool

	all      map[source.Key]*anIngress
	services map[source.Key]*corev1.Service
	secretOf map[source.Key]*secret
	routes   map[source.Key]*routev1.Route                // of Ingresses
	owned    map[source.Key]map[source.Key]*routev1.Route // by the Ingress
	dirty    map[source.Key]struct{}                      // to be looked at, when they are due

	writing  sync.WaitGroup
	running  int // Ingresses that are written for
	pending  map[toSay]struct{}
	speaking bool // an Event is being made
	stats    Stats
	stale    bool // stats are not shown yet
	shownAt  time.Time
}

// anIngress is one Ingress.
type anIngress struct {
	object   *networkingv1.Ingress
	secrets  []source.Key
	unseen   map[source.Key]time.Time // Routes that were made and have not been seen, and when
	busy     bool                     // it is being written for
	due      time.Time                // not before
	failures int                      // in a row
	said     map[string]said          // by reason
}

// secret is one Secret that Ingresses name.
type secret struct {
	object *corev1.Secret // nil = there is none
	err    error          // why it cannot be had
	known  bool
	users  map[source.Key]struct{}
}

func newConverting(w work) *converting {
	return &converting{
		work: w, inbox: newInbox(), classes: ingress.NewClasses(w.controller), all: make(map[source.Key]*anIngress), services: make(map[source.Key]*corev1.Service),
		secretOf: make(map[source.Key]*secret), routes: make(map[source.Key]*routev1.Route), owned: make(map[source.Key]map[source.Key]*routev1.Route),
		dirty: make(map[source.Key]struct{}), pending: make(map[toSay]struct{}), stats: Stats{Leading: true}, stale: true,
	}
}

// run converts until ctx is done, and waits for the writes that have begun.
func (c *converting) run(ctx context.Context) {
	defer c.writing.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.inbox.wake:
		case <-timer.C:
		}
		timer.Reset(c.turn(ctx, time.Now()))
	}
}

// turn takes over what has happened, begins what is due, and returns how long there is nothing to do.
func (c *converting) turn(ctx context.Context, now time.Time) (pause time.Duration) {
	events, results, synced, spoken := c.inbox.takeAll()
	c.speaking = c.speaking && !spoken
	for _, e := range events {
		c.change(&e)
		c.stale = true
	}
	for i := range results {
		c.finish(&results[i], now)
		c.stale = true
	}
	if synced && !c.synced {
		c.synced = true
		c.log.Info("objects have been read", zap.Int("ingresses", len(c.all)), zap.Int("routes of Ingresses", len(c.routes)))
	}
	pause = idle
	if c.synced {
		for key := range c.dirty {
			if c.running == mostWriting {
				break
			}
			if wait := c.look(ctx, key, now); wait > 0 {
				pause = min(pause, wait)
			}
		}
	}
	c.speak(ctx, now)
	switch wait := showPause - now.Sub(c.shownAt); {
	case !c.stale:
	case wait > 0:
		pause = min(pause, wait)
	default:
		c.tell()
		c.stale, c.shownAt = false, now
	}
	return pause
}

// change takes a change of an object over.
func (c *converting) change(e *source.Event) {
	switch e.Kind {
	case source.Ingress:
		object, _ := e.Object.(*networkingv1.Ingress)
		c.setIngress(e.Key, object)
	case source.IngressClass:
		object, _ := e.Object.(*networkingv1.IngressClass)
		c.classes.SetClass(e.Key.Name, object)
		for key := range c.all {
			c.dirty[key] = struct{}{}
		}
	case source.Service:
		if object, _ := e.Object.(*corev1.Service); object != nil {
			c.services[e.Key] = object
		} else {
			delete(c.services, e.Key)
		}
		for key, in := range c.all {
			if key.Namespace == e.Key.Namespace && names(in.object, e.Key.Name) {
				c.dirty[key] = struct{}{}
			}
		}
	case source.Secret:
		c.setSecret(e)
	case source.Route:
		object, _ := e.Object.(*routev1.Route)
		c.setRoute(e.Key, object)
	default:
	}
}

// names reports whether an Ingress names a Service in its rules.
func names(o *networkingv1.Ingress, service string) bool {
	return slices.ContainsFunc(o.Spec.Rules, func(r networkingv1.IngressRule) bool {
		return r.HTTP != nil && slices.ContainsFunc(r.HTTP.Paths, func(p networkingv1.HTTPIngressPath) bool {
			return p.Backend.Service != nil && p.Backend.Service.Name == service
		})
	})
}

func (c *converting) setIngress(key source.Key, object *networkingv1.Ingress) {
	in := c.all[key]
	if object == nil {
		if in != nil {
			c.useSecrets(key, in, nil)
		}
		delete(c.all, key)
		delete(c.dirty, key)
		return // its Routes are deleted by the API server, which owns them with it
	}
	if in == nil {
		in = &anIngress{unseen: make(map[source.Key]time.Time), said: make(map[string]said)}
		c.all[key] = in
	}
	if in.object == nil || in.object.UID != object.UID || in.object.Generation != object.Generation {
		in.failures, in.due = 0, time.Time{}
		clear(in.unseen)
	}
	in.object = object
	c.dirty[key] = struct{}{}
}

// setSecret takes a Secret over that was asked for.
func (c *converting) setSecret(e *source.Event) {
	s := c.secretOf[e.Key]
	if s == nil {
		return
	}
	s.object, _ = e.Object.(*corev1.Secret)
	s.err, s.known = e.Err, true
	for key := range s.users {
		c.dirty[key] = struct{}{}
	}
}

// useSecrets makes an Ingress the user of Secrets, and of no others.
func (c *converting) useSecrets(key source.Key, in *anIngress, wanted []string) {
	before := in.secrets
	in.secrets = make([]source.Key, len(wanted))
	for i, name := range wanted {
		of := source.Key{Namespace: key.Namespace, Name: name}
		in.secrets[i] = of
		s := c.secretOf[of]
		if s == nil {
			s = &secret{users: make(map[source.Key]struct{})}
			c.secretOf[of] = s
			c.secrets.Watch(of)
		}
		s.users[key] = struct{}{}
	}
	for _, of := range before {
		if slices.Contains(in.secrets, of) {
			continue
		}
		s := c.secretOf[of]
		if delete(s.users, key); len(s.users) == 0 {
			delete(c.secretOf, of)
			c.secrets.Forget(of)
		}
	}
}

// setRoute takes a Route over; those that no Ingress owns are nothing to conversions.
func (c *converting) setRoute(key source.Key, object *routev1.Route) {
	if old := c.routes[key]; old != nil {
		owner, _ := convert.OwnerOf(old)
		of := source.Key{Namespace: key.Namespace, Name: owner}
		if delete(c.owned[of], key); len(c.owned[of]) == 0 {
			delete(c.owned, of)
		}
		delete(c.routes, key)
		c.seen(of, key)
	}
	if object == nil {
		return
	}
	owner, ok := convert.OwnerOf(object)
	if !ok {
		return
	}
	of := source.Key{Namespace: key.Namespace, Name: owner}
	if c.owned[of] == nil {
		c.owned[of] = make(map[source.Key]*routev1.Route)
	}
	c.owned[of][key], c.routes[key] = object, object
	c.seen(of, key)
}

// seen has the Ingress of a Route looked at.
func (c *converting) seen(of, route source.Key) {
	if in := c.all[of]; in != nil {
		delete(in.unseen, route)
		c.dirty[of] = struct{}{}
	}
}

// tell makes Stats of what there is.
func (c *converting) tell() {
	s := c.stats
	s.Routes = len(c.routes)
	managed := make(map[source.Key]bool, len(c.all))
	for key, in := range c.all {
		if _, asked := ingress.Class(in.object); !asked {
			s.Classless = append(s.Classless, Object{Namespace: key.Namespace, Name: key.Name})
		}
		if managed[key] = convert.Managed(in.object, c.classes); managed[key] {
			s.Ingresses++
		}
		if in.failures > 0 {
			s.Failing++
		}
	}
	if c.synced {
		for of, routes := range c.owned {
			for key, r := range routes {
				if !managed[of] {
					s.Unmanaged = append(s.Unmanaged, Object{Namespace: key.Namespace, Name: key.Name, Host: r.Spec.Host})
				}
			}
		}
	}
	c.show(&s)
}

// ownedBy returns the Routes of an Ingress by name.
func (c *converting) ownedBy(key source.Key) []*routev1.Route {
	return slices.Collect(maps.Values(c.owned[key]))
}
