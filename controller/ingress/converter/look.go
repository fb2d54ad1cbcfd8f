package converter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/controller/ingress/convert"
	"turnout/controller/source"
)

// look converts an Ingress, if it can be now. Otherwise it returns after how long to look again, 0 if something that happens will have it looked at.
func (c *converting) look(ctx context.Context, key source.Key, now time.Time) time.Duration {
	in := c.all[key]
	switch {
	case in.busy:
		return 0 // it is looked at when its writes have ended
	case in.due.After(now):
		return in.due.Sub(now)
	case in.waits(now):
		return unseenAgain
	}
	if !convert.Managed(in.object, c.classes) {
		c.useSecrets(key, in, nil)
		delete(c.dirty, key)
		return 0 // what there is of it stays
	}
	c.useSecrets(key, in, convert.Secrets(in.object))
	for _, of := range in.secrets {
		switch s := c.secretOf[of]; {
		case !s.known:
			return 0
		case s.err != nil: // that it is not there is another thing, by which Routes are deleted
			c.failed(key, in, fmt.Errorf("cannot read Secret %s: %w", of.Name, s.err), now)
			c.secrets.Again(of)
			return in.due.Sub(now)
		}
	}
	delete(c.dirty, key)
	plan := convert.Make(convert.Input{
		Ingress: in.object, Owned: c.ownedBy(key),
		Service: func(name string) *corev1.Service { return c.services[source.Key{Namespace: key.Namespace, Name: name}] },
		Secret: func(name string) *corev1.Secret {
			return c.secretOf[source.Key{Namespace: key.Namespace, Name: name}].object
		},
	})
	if plan.BadLabels {
		c.say(key, in, reasonAnnotation, fmt.Sprintf("Invalid value on annotation %q", convert.AnnotationLabels), now)
	}
	if len(plan.Create)+len(plan.Update)+len(plan.Delete) == 0 && plan.Status == nil {
		c.finish(&result{key: key, in: in, incomplete: plan.Incomplete}, now)
		return 0
	}
	in.busy = true
	c.running++
	r := result{key: key, in: in, incomplete: plan.Incomplete, wrote: true}
	object := in.object
	c.writing.Go(func() {
		c.write(ctx, &plan, &r)
		if plan.Status != nil {
			err := within(ctx, func(ctx context.Context) error {
				_, err := c.api.WriteIngress(ctx, object, plan.Status)
				return err
			})
			if err != nil && !apierrors.IsNotFound(err) {
				r.err = errors.Join(r.err, err)
			}
		}
		c.inbox.done(r)
	})
	return 0
}

// waits reports whether Routes of an Ingress were made that have not been seen.
func (in *anIngress) waits(now time.Time) bool {
	for key, since := range in.unseen {
		if now.Sub(since) >= unseenMost {
			delete(in.unseen, key)
		}
	}
	return len(in.unseen) > 0
}

// result is what became of a conversion.
type result struct {
	key                       source.Key
	in                        *anIngress
	wrote                     bool
	made                      []source.Key
	created, updated, deleted uint64
	incomplete                string
	err                       error
}

// write does to Routes what a plan says. What fails keeps nothing else from being done.
func (c *converting) write(ctx context.Context, plan *convert.Plan, r *result) {
	var errs []error
	for _, route := range plan.Create {
		if err := c.create(ctx, r.key.Name, route); err != nil {
			errs = append(errs, err)
			continue
		}
		r.created++
		r.made = append(r.made, source.Key{Namespace: route.Namespace, Name: route.Name})
	}
	for _, u := range plan.Update {
		switch err := within(ctx, func(ctx context.Context) error { return c.api.UpdateRoute(ctx, u.New) }); {
		case err == nil:
			r.updated++
		case apierrors.IsNotFound(err):
		default:
			errs = append(errs, err)
		}
	}
	for _, route := range plan.Delete {
		switch err := within(ctx, func(ctx context.Context) error { return c.api.DeleteRoute(ctx, route) }); {
		case err == nil:
			r.deleted++
		case apierrors.IsNotFound(err):
		default:
			errs = append(errs, err)
		}
	}
	r.err = errors.Join(errs...)
}

// callTime bounds one call to the API.
const callTime = 15 * time.Second

// within makes a call to the API.
func within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return do(ctx)
}

// nameTries is how many names are tried for a Route.
const nameTries = 3

// create makes a Route of an Ingress, under a name that is free.
func (c *converting) create(ctx context.Context, ingressName string, route *routev1.Route) (err error) {
	for range nameTries {
		route.Name = convert.NameOf(ingressName, utilrand.String(convert.SuffixLength))
		if err = within(ctx, func(ctx context.Context) error { return c.api.CreateRoute(ctx, route) }); !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return err
}

// finish takes over what became of a conversion.
func (c *converting) finish(r *result, now time.Time) {
	in := r.in
	if r.wrote {
		in.busy = false
		c.running--
		c.stats.Created, c.stats.Updated, c.stats.Deleted = c.stats.Created+r.created, c.stats.Updated+r.updated, c.stats.Deleted+r.deleted
	}
	if c.all[r.key] != in {
		return
	}
	for _, key := range r.made {
		if c.routes[key] == nil {
			in.unseen[key] = now
		}
	}
	if r.err != nil {
		c.dirty[r.key] = struct{}{}
		c.failed(r.key, in, r.err, now)
		return
	}
	in.failures, in.due = 0, time.Time{}
	if r.incomplete != "" {
		c.say(r.key, in, reasonIncomplete, r.incomplete, now)
	}
}

// failed has a conversion tried again later. A conflict is nobody's business: somebody else was first, and what came of it will be seen.
func (c *converting) failed(key source.Key, in *anIngress, err error, now time.Time) {
	c.stats.Failed++
	in.failures++
	pause := min(retryFirst<<min(in.failures-1, 20), retryMost)
	in.due = now.Add(pause/2 + rand.N(pause))
	if !apierrors.IsConflict(err) {
		c.say(key, in, reasonFailed, fmt.Sprintf("Error in converting Ingress to Route: %v", err), now)
	}
}
