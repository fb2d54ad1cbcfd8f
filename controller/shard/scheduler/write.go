package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"turnout/controller/shard"
	"turnout/controller/shard/api"
)

// manager is who writes, for the API server.
const manager = "turnout-scheduler"

// writeTimeout bounds one write.
const writeTimeout = 15 * time.Second

// prepare returns what does an action. It is called by the owner of the Planner; what it returns may run beside it.
func (l *leader) prepare(a *shard.Action) func(context.Context) shard.Result {
	do := l.write(a)
	return func(ctx context.Context) shard.Result {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return do(ctx)
	}
}

// write returns what carries an action out.
func (l *leader) write(a *shard.Action) func(context.Context) shard.Result {
	switch a.Kind {
	case shard.CreateBinding:
		return func(ctx context.Context) shard.Result { return l.createBinding(ctx, &a.Binding) }
	case shard.MarkLeaving:
		return func(ctx context.Context) shard.Result {
			return l.patchBinding(ctx, &a.Binding, map[string]any{"spec": map[string]any{"leaving": true}})
		}
	case shard.DeleteBinding:
		return func(ctx context.Context) shard.Result { return l.deleteBinding(ctx, &a.Binding) }
	case shard.UpdateBinding:
		status := map[string]any{"phase": a.Phase.String(), "conditions": []metav1.Condition{servedCondition(a.Phase)}}
		return func(ctx context.Context) shard.Result {
			return l.patchBinding(ctx, &a.Binding, map[string]any{"status": status}, "status")
		}
	case shard.UpdateRoute:
		patch := routePatch(a, l.bound[a.Key])
		return func(ctx context.Context) shard.Result { return l.patchRoute(ctx, a.Key, patch) }
	case shard.UpdateRouter:
		apply := routerStatus(a, l.routers[a.Router])
		return func(ctx context.Context) shard.Result { return l.applyRouter(ctx, a.Router, apply) }
	case shard.Report:
		event := l.eventOf(a, time.Now())
		return func(ctx context.Context) shard.Result {
			err := l.clients.core.Post().Namespace(event.Namespace).Resource("events").Body(event).Do(ctx).Error()
			return outcome("", err)
		}
	case shard.Ask:
		strategy := l.config.Strategy
		return func(context.Context) shard.Result { return ask(strategy, a) }
	}
	return func(context.Context) shard.Result {
		return shard.Result{Outcome: shard.Refused, Err: fmt.Errorf("BUG: unknown action %d", a.Kind)}
	}
}

// outcome is what became of a write that the API server has answered with err.
func outcome(version string, err error) shard.Result {
	switch {
	case err == nil:
		return shard.Result{Outcome: shard.Written, Version: parseVersion(version)}
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), isOther(err):
		return shard.Result{Outcome: shard.Conflict, Err: err}
	case apierrors.IsNotFound(err):
		return shard.Result{Outcome: shard.NotFound, Err: err}
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err), apierrors.IsMethodNotSupported(err):
		return shard.Result{Outcome: shard.Refused, Err: err}
	}
	return shard.Result{Outcome: shard.Failed, Err: err}
}

// isOther reports whether a patch was for another object of the same name: its UID, which the patch names, cannot be changed.
func isOther(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	if !ok || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

func (l *leader) createBinding(ctx context.Context, b *shard.Binding) shard.Result {
	yes := true
	o, err := l.clients.shards.Bindings(b.Namespace).Create(ctx, &api.RouteBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "RouteBinding"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.Namespace, Name: b.Name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: routev1.GroupVersion.String(), Kind: "Route", Name: b.Route, UID: types.UID(b.RouteUID), Controller: &yes,
			}},
		},
		Spec: api.RouteBindingSpec{
			RouteNamespace: b.Namespace, RouteName: b.Route, RouteUID: b.RouteUID, Router: b.Router, DNS: b.DNS, Target: b.Target, Leaving: b.Leaving,
		},
	}, metav1.CreateOptions{FieldManager: manager})
	return outcome(o.ResourceVersion, err)
}

// patchBinding changes a binding that still has its version.
func (l *leader) patchBinding(ctx context.Context, b *shard.Binding, change map[string]any, subresource ...string) shard.Result {
	change["metadata"] = map[string]any{"resourceVersion": strconv.FormatUint(b.Version, 10)}
	patch, err := json.Marshal(change)
	if err != nil {
		return shard.Result{Outcome: shard.Refused, Err: err}
	}
	o, err := l.clients.shards.Bindings(b.Namespace).Patch(ctx, b.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager}, subresource...)
	return outcome(o.ResourceVersion, err)
}

func (l *leader) deleteBinding(ctx context.Context, b *shard.Binding) shard.Result {
	version := strconv.FormatUint(b.Version, 10)
	err := l.clients.shards.Bindings(b.Namespace).Delete(ctx, b.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
	return outcome("", err)
}

// servedCondition says what a phase means, for kubectl wait.
func servedCondition(phase shard.BindingPhase) metav1.Condition {
	c := metav1.Condition{Type: api.ConditionServed, Status: metav1.ConditionFalse, LastTransitionTime: metav1.Now()}
	switch phase {
	case shard.BindingServing:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Serving", "all ready replicas of the router serve the route"
	case shard.BindingLeaving:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Leaving", "the route has moved; the router serves it until nobody asks for it here any more"
	default:
		c.Reason, c.Message = "Pending", "not all ready replicas of the router serve the route yet"
	}
	return c
}

// routePatch is the merge patch (RFC 7396) that has a Route say a view. labels are those of the scheduler that it has.
func routePatch(a *shard.Action, labels []string) map[string]any {
	v := &a.View
	annotations := make(map[string]any, 5)
	for key, value := range map[string]string{
		api.AnnotationPhase: string(v.Phase), api.AnnotationDNS: v.DNS, api.AnnotationTarget: v.Target,
		api.AnnotationRouters: strings.Join(v.Routers, ","), api.AnnotationMessage: v.Message,
	} {
		if annotations[key] = value; value == "" {
			annotations[key] = nil
		}
	}
	set := make(map[string]any, len(labels)+len(v.Bound))
	for _, name := range labels {
		set[api.LabelPrefix+name] = nil
	}
	for _, name := range v.Bound {
		set[api.LabelPrefix+name] = ""
	}
	return map[string]any{"metadata": map[string]any{"uid": a.RouteUID, "annotations": annotations, "labels": set}}
}

func (l *leader) patchRoute(ctx context.Context, key shard.Key, change map[string]any) shard.Result {
	patch, err := json.Marshal(change)
	if err != nil {
		return shard.Result{Outcome: shard.Refused, Err: err}
	}
	o := new(routev1.Route)
	err = l.clients.routes.Patch(types.MergePatchType).Namespace(key.Namespace).Resource("routes").Name(key.Name).
		Param("fieldManager", manager).Body(patch).Do(ctx).Into(o)
	return outcome(o.ResourceVersion, err)
}

// routerStatus is what is applied to the status of a Router, as it was seen last.
func routerStatus(a *shard.Action, seen *api.Router) map[string]any {
	s := &a.Status
	var conditions []metav1.Condition
	for _, c := range s.Conditions {
		conditions = append(conditions, condition(c, seen))
	}
	status := map[string]any{
		"phase": s.Phase, "readyReplicas": s.ReadyReplicas, "routesBound": s.RoutesBound, "moving": s.Moving, "conditions": conditions,
	}
	if len(s.Addresses) > 0 {
		status["addresses"] = s.Addresses
	}
	if seen != nil {
		status["observedGeneration"] = seen.Generation
	}
	return map[string]any{
		"apiVersion": api.GroupVersion.String(), "kind": "Router", "metadata": map[string]any{"name": a.Router, "uid": a.RouterUID}, "status": status,
	}
}

// condition is a condition as objects have it: since when it is so is taken from the object if it was so before.
func condition(c shard.Condition, seen *api.Router) metav1.Condition {
	o := metav1.Condition{Type: c.Type, Status: metav1.ConditionFalse, Reason: c.Reason, Message: c.Message, LastTransitionTime: metav1.Now()}
	if c.True {
		o.Status = metav1.ConditionTrue
	}
	if seen != nil {
		o.ObservedGeneration = seen.Generation
		for _, before := range seen.Status.Conditions {
			if before.Type == c.Type && before.Status == o.Status {
				o.LastTransitionTime = before.LastTransitionTime
			}
		}
	}
	return o
}

func (l *leader) applyRouter(ctx context.Context, name string, apply map[string]any) shard.Result {
	body, err := json.Marshal(apply)
	if err != nil {
		return shard.Result{Outcome: shard.Refused, Err: err}
	}
	force := true
	o, err := l.clients.shards.Routers().Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: manager, Force: &force}, "status")
	return outcome(o.ResourceVersion, err)
}

// eventNamespace is where events about objects without a namespace are, as Kubernetes has it.
const eventNamespace = "default"

// eventOf makes the Event of a report.
func (l *leader) eventOf(a *shard.Action, now time.Time) *corev1.Event {
	about := corev1.ObjectReference{APIVersion: routev1.GroupVersion.String(), Kind: "Route", Namespace: a.Key.Namespace, Name: a.Key.Name, UID: types.UID(a.RouteUID)}
	if a.Router != "" {
		about = corev1.ObjectReference{APIVersion: api.GroupVersion.String(), Kind: "Router", Name: a.Router}
		if seen := l.routers[a.Router]; seen != nil {
			about.UID = seen.UID
		}
	}
	kind, at := corev1.EventTypeNormal, metav1.NewTime(now)
	if a.Event.Warning {
		kind = corev1.EventTypeWarning
	}
	namespace := about.Namespace
	if namespace == "" {
		namespace = eventNamespace
	}
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, GenerateName: about.Name + "."},
		InvolvedObject: about, Reason: a.Event.Reason, Message: a.Event.Message, Type: kind, Count: 1, FirstTimestamp: at, LastTimestamp: at,
		Source: corev1.EventSource{Component: manager}, ReportingController: "turnout.router/scheduler", ReportingInstance: l.cfg.Identity,
	}
}
