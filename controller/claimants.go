package controller

import (
	"cmp"
	"slices"
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"

	"turnout/controller/admit"
	"turnout/controller/ingress"
	shards "turnout/controller/shard/api"
	"turnout/controller/source"
	"turnout/controller/status"
	"turnout/routing"
)

// ClaimState is what became of a route that wants a host.
type ClaimState uint8

// The states.
const (
	ClaimServed      ClaimState = iota // it is in the table
	ClaimOlder                         // another route has the host, or host and path, and is older
	ClaimRejected                      // it is not admitted for another reason
	ClaimWaiting                       // nothing is decided yet
	ClaimNotSelected                   // its namespace is not one that is served
	ClaimOtherShard                    // it has not the labels of routes that are served
	ClaimUnbound                       // no RouteBinding binds it to the Router that this is a replica of
)

// Claimant is a route that wants a host.
type Claimant struct {
	Namespace, Name, Host, Path string
	Termination                 string // as RouteReport has it
	Wildcard                    bool
	Created                     time.Time // zero = not known
	State                       ClaimState
	Message                     string   // why it does not have the host, for people
	Notes                       []string // what of it has no effect
	Origin                      string   // file and document
}

// Claimants returns the routes that want a host, in lower case, or a wildcard that covers it: those that are served and those that are not, the
// oldest first. Any goroutine may call it.
func (c *Controller) Claimants(host string) []Claimant {
	wildcard := "*."
	if _, parent, ok := strings.Cut(host, "."); ok {
		wildcard += parent
	}
	wants := func(of string, policy routev1.WildcardPolicyType) bool {
		of = claimed(of, policy)
		return of == host || of == wildcard || of == ingress.AnyHost
	}
	now := c.cfg.Clock()
	var all []Claimant
	c.views.mu.RLock()
	for v := range c.views.routes.All() {
		if wants(v.host(), v.kept.policy) {
			all = append(all, v.claimant(now))
		}
	}
	for _, of := range c.views.outside {
		for _, a := range of {
			if wants(a.host, a.kept.policy) {
				all = append(all, ClaimantOf(a.event(), a.why, outsideFor[a.why]))
			}
		}
	}
	c.views.mu.RUnlock()
	slices.SortFunc(all, func(a, b Claimant) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// ClaimantOf is a route that is not served for what its source says of it.
func ClaimantOf(e source.Event, state ClaimState, message string) Claimant {
	o, _ := e.Object.(*routev1.Route)
	c := claimantOf(o, o.Spec.Host)
	c.State, c.Message, c.Origin = state, message, e.Origin
	return c
}

// Elsewhere says of a route what the scheduler has written on it: which Routers serve it, by which name, or why none does; "" if it has written nothing.
func Elsewhere(e *source.Event) string {
	o, ok := e.Object.(*routev1.Route)
	if !ok {
		return ""
	}
	routers, dns, target, message := o.Annotations[shards.AnnotationRouters], o.Annotations[shards.AnnotationDNS], o.Annotations[shards.AnnotationTarget], o.Annotations[shards.AnnotationMessage]
	var text []string
	if routers != "" {
		text = append(text, "it is served by Router "+strings.ReplaceAll(routers, ",", ", "))
	} else if o.Annotations[shards.AnnotationPhase] == shards.RoutePhaseNew {
		text = append(text, "it waits for a Router")
	}
	if dns != "" {
		name := "DNS name " + dns
		if target != "" && target != dns {
			name += ", which has to be a CNAME of " + target
		}
		text = append(text, name)
	}
	if message != "" {
		text = append(text, message)
	}
	return strings.Join(text, "; ")
}

func claimantOf(o *routev1.Route, host string) Claimant {
	c := Claimant{
		Namespace: o.Namespace, Name: o.Name, Host: host, Path: o.Spec.Path, Termination: routing.TermNone.String(),
		Wildcard: o.Spec.WildcardPolicy == routev1.WildcardPolicySubdomain, Created: o.CreationTimestamp.Time,
	}
	if o.Spec.TLS != nil {
		c.Termination = string(o.Spec.TLS.Termination)
	}
	return c
}

// claimant is the route of a view.
func (v *view) claimant(now time.Time) Claimant {
	c := claimantOf(v.kept.object(), v.host())
	c.Notes, c.Origin = slices.Clone(v.explain(now)), v.origin
	if v.rule != nil {
		c.Origin = "Ingress " + v.rule.Of.String() + ", " + v.origin
	}
	admitted := status.Admitted(v.status)
	switch {
	case admitted == nil:
		c.State, c.Message = ClaimWaiting, "nothing is decided yet: it waits for its Secret"
	case admitted.Status == corev1.ConditionTrue:
		c.State = ClaimServed
	case admitted.Reason == admit.ReasonClaimed:
		c.State, c.Message = ClaimOlder, admitted.Message
	default:
		c.State, c.Message = ClaimRejected, admitted.Reason+": "+admitted.Message
	}
	return c
}

// claimed is what a route wants: a host, or all of a domain.
func claimed(host string, policy routev1.WildcardPolicyType) string {
	if policy == routev1.WildcardPolicySubdomain {
		if _, parent, ok := strings.Cut(host, "."); ok {
			return "*." + parent
		}
	}
	return host
}

// host is what the route wants to be reached by.
func (v *view) host() string {
	if v.status != nil {
		return v.status.Host
	}
	return v.kept.object().Spec.Host
}

// outsideFor is why routes are not selected, for people.
var outsideFor = map[ClaimState]string{
	ClaimNotSelected: "its namespace is not one that this router serves: it has not the labels of --namespace-labels",
	ClaimOtherShard:  "it has not the labels of routes that this router serves: those of --labels",
	ClaimUnbound:     "it is not bound to the Router that this is a replica of: see its annotations turnout.router/phase and turnout.router/routers",
}
