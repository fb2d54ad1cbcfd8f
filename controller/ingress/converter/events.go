package converter

import (
	"context"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"turnout/controller/source"
	"turnout/controller/status"
)

// The reasons of Events, as those of OpenShift's controller.
const (
	reasonIncomplete = "IncompleteIngressToRouteRules"
	reasonFailed     = "FailedIngressToRouteConversion"
	reasonAnnotation = "InvalidAnnotationValue"
)

// component is who makes Events.
const component = "ingress-to-route-controller"

// said is the last Event of a reason about an Ingress.
type said struct {
	message string
	at      time.Time
}

// toSay names an Event that is to be made.
type toSay struct {
	key    source.Key
	reason string
}

// say has an Event made, unless the same was made a short time ago.
func (c *converting) say(key source.Key, in *anIngress, reason, message string, now time.Time) {
	if last := in.said[reason]; last.message == message && now.Sub(last.at) < sayAgain {
		return
	}
	in.said[reason] = said{message, now}
	c.pending[toSay{key, reason}] = struct{}{}
}

// speak makes one of the Events that are to be made; they are made one after the other.
func (c *converting) speak(ctx context.Context, now time.Time) {
	if c.speaking {
		return
	}
	for next := range c.pending {
		delete(c.pending, next)
		in := c.all[next.key]
		if in == nil {
			continue
		}
		c.speaking = true
		e := c.event(in.object, next.reason, in.said[next.reason].message, now)
		c.writing.Go(func() {
			if err := within(ctx, func(ctx context.Context) error { return c.api.CreateEvent(ctx, e) }); err != nil && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
				c.log.Warn("cannot say what became of an Ingress", zap.Stringer("ingress", next.key), zap.String("reason", e.Reason), zap.String("message", e.Message), zap.Error(err))
			}
			c.inbox.said()
		})
		return
	}
}

// event returns the Event of a reason.
func (c *converting) event(o *networkingv1.Ingress, reason, message string, now time.Time) *corev1.Event {
	e := status.EventOf(o, reason, message, component, c.identity, now)
	if reason != reasonFailed {
		e.Type = corev1.EventTypeNormal
	}
	return e
}
