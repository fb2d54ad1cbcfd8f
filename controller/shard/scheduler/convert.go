package scheduler

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/shard"
	"turnout/controller/shard/api"
)

// parseVersion reads a resource version, which Kubernetes promises to be a number that grows. 0 is none.
func parseVersion(text string) uint64 {
	n, _ := strconv.ParseUint(text, 10, 64) // 0 if it is none
	return n
}

// routeOf is what the Planner is given of a Route: as it is, what it says of the scheduler's last write, and which routers have admitted it.
func routeOf(o *routev1.Route) (r shard.Route, seen shard.View, admitted []string) {
	r = shard.Route{
		Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), Host: o.Spec.Host, Path: o.Spec.Path, Created: o.CreationTimestamp.Unix(),
		Labels: shard.MakeLabels(plainLabels(o.Labels)), Wildcard: o.Spec.WildcardPolicy == routev1.WildcardPolicySubdomain,
		TLS: o.Spec.TLS != nil, Passthrough: o.Spec.TLS != nil && o.Spec.TLS.Termination == routev1.TLSTerminationPassthrough,
	}
	if o.Annotations[api.HostGenerated] == "true" {
		r.Host = ""
	}
	for i := range o.Status.Ingress {
		in := &o.Status.Ingress[i]
		for _, c := range in.Conditions {
			if c.Type == routev1.RouteAdmitted && c.Status == corev1.ConditionTrue {
				admitted = append(admitted, in.RouterName)
			}
		}
	}
	return r, viewOf(o), admitted
}

// viewOf is what a Route says of what the scheduler wrote last.
func viewOf(o *routev1.Route) shard.View {
	return shard.View{
		Phase: shard.RoutePhase(o.Annotations[api.AnnotationPhase]), DNS: o.Annotations[api.AnnotationDNS], Target: o.Annotations[api.AnnotationTarget],
		Routers: splitList(o.Annotations[api.AnnotationRouters]), Bound: boundLabels(o.Labels), Message: o.Annotations[api.AnnotationMessage],
		Version: parseVersion(o.ResourceVersion),
	}
}

func splitList(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// plainLabels are labels without those of the scheduler, by which nothing is selected.
func plainLabels(all map[string]string) map[string]string {
	if len(boundLabels(all)) == 0 {
		return all
	}
	kept := make(map[string]string, len(all))
	for key, value := range all {
		if !strings.HasPrefix(key, api.LabelPrefix) {
			kept[key] = value
		}
	}
	return kept
}

// boundLabels are the Routers that labels of a Route name, by name.
func boundLabels(all map[string]string) (routers []string) {
	for key := range all {
		if name, is := strings.CutPrefix(key, api.LabelPrefix); is {
			routers = append(routers, name)
		}
	}
	slices.Sort(routers)
	return routers
}

// routerOf is what the Planner is given of a Router: as it is, and what it says of the scheduler's last write.
func routerOf(o *api.Router) (shard.Router, shard.RouterStatus) {
	r := shard.Router{
		Name: o.Name, UID: string(o.UID), Created: o.CreationTimestamp.Unix(), Labels: shard.MakeLabels(o.Labels),
		RouteSelector: o.Spec.RouteSelector, NamespaceSelector: o.Spec.NamespaceSelector, Addresses: o.Spec.Addresses,
	}
	if dns := o.Spec.DNS; dns != nil {
		r.Domain, r.TTL = dns.Domain, time.Duration(dns.TTLSeconds)*time.Second
	}
	if c := o.Spec.Capacity; c != nil {
		r.Capacity, r.RequestsCapacity = int(c.Routes), int(c.RequestsPerSecond)
	}
	for _, t := range o.Spec.Taints {
		if t.Effect == api.TaintDrain {
			r.Taints = append(r.Taints, shard.Drain)
		} else {
			r.Taints = append(r.Taints, shard.NoSchedule)
		}
	}
	for i := range o.Status.Replicas {
		r.Replicas = append(r.Replicas, replicaOf(&o.Status.Replicas[i]))
	}
	return r, statusOf(o)
}

func replicaOf(o *api.ReplicaStatus) shard.Replica {
	r := shard.Replica{
		Name: o.Name, Ready: o.Ready, Addresses: o.Addresses, Observed: parseVersion(o.ObservedBindings),
		RequestsPerSecond: int(o.RequestsPerSecond), Renewed: o.Renewed.Time,
	}
	for _, key := range o.Leaving {
		namespace, name, _ := strings.Cut(key, "/")
		r.Leaving = append(r.Leaving, shard.Key{Namespace: namespace, Name: name})
	}
	return r
}

// statusOf is what a Router says of what the scheduler wrote last.
func statusOf(o *api.Router) shard.RouterStatus {
	s := shard.RouterStatus{
		Phase: shard.RouterPhase(o.Status.Phase), ReadyReplicas: int(o.Status.ReadyReplicas), RoutesBound: int(o.Status.RoutesBound),
		Moving: int(o.Status.Moving), Addresses: slices.Sorted(slices.Values(o.Status.Addresses)), Version: parseVersion(o.ResourceVersion),
	}
	for _, c := range o.Status.Conditions {
		if c.Type == api.ConditionAvailable || c.Type == api.ConditionValid {
			s.Conditions = append(s.Conditions, shard.Condition{Type: c.Type, True: c.Status == metav1.ConditionTrue, Reason: c.Reason, Message: c.Message})
		}
	}
	slices.SortFunc(s.Conditions, func(a, b shard.Condition) int { return cmp.Compare(a.Type, b.Type) })
	return s
}

// bindingOf is what the Planner is given of a RouteBinding.
func bindingOf(o *api.RouteBinding) shard.Binding {
	b := shard.Binding{
		Namespace: o.Namespace, Name: o.Name, Route: o.Spec.RouteName, RouteUID: o.Spec.RouteUID, Router: o.Spec.Router, DNS: o.Spec.DNS,
		Target: o.Spec.Target, Leaving: o.Spec.Leaving, Version: parseVersion(o.ResourceVersion), Created: o.CreationTimestamp.Unix(),
	}
	switch o.Status.Phase {
	case api.BindingPending:
		b.Phase = shard.BindingPending
	case api.BindingServing:
		b.Phase = shard.BindingServing
	case api.BindingLeaving:
		b.Phase = shard.BindingLeaving
	}
	return b
}
