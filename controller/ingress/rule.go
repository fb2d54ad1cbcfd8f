package ingress

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"turnout/controller/source"
	"turnout/routing"
)

// AnyHost is the host of rules for any host.
const AnyHost = "*"

// wildLabel is the first label of the host of a Route that stands for all hosts beside it, as conversions of OpenShift have it.
const wildLabel = "wildcard."

// Rule is one path of one host of an Ingress. It is read-only.
type Rule struct {
	Of    source.Key     // the Ingress
	Route *routev1.Route // as which it is admitted, translated and shown; its name is no name that a Route can have
	Host  string         // that of the Route, or AnyHost
	Path  routing.PathMatch
	// Default says that the rule comes after all others of the host, whatever its age.
	Default bool
	// Problem is why requests are answered with 503, or not at all; its zero value is that they are served.
	Problem Problem
}

// Key is the namespace and name of the rule's Route.
func (r *Rule) Key() source.Key {
	return source.Key{Namespace: r.Route.Namespace, Name: r.Route.Name}
}

// Called is the rule as messages name it: its host and path.
func (r *Rule) Called() string {
	host, path := r.Host, r.Path.Value
	switch {
	case host == AnyHost:
		host = "any host"
	case r.Route.Spec.WildcardPolicy == routev1.WildcardPolicySubdomain:
		host = "host *." + strings.TrimPrefix(host, wildLabel)
	default:
		host = "host " + host
	}
	switch {
	case r.Default:
		return host + ", default backend"
	case r.Path.Kind == routing.PathExact:
		return host + ", exact path " + path
	case path == "":
		return host
	}
	return host + ", path " + path
}

// Claim is what the rule claims of its host, as admit.Claim.Path: rules that claim the same take the same requests. What other than exact paths claim
// is what a Route with the path claims.
func (r *Rule) Claim() string {
	switch path := r.Path.Value; {
	case r.Default:
		return "default backend"
	case r.Path.Kind == routing.PathExact:
		return "exactly " + path
	default:
		return strings.TrimRight(path, "/")
	}
}

// youngest is when default backends were made, as far as the order among rules goes: after all others. It is in seconds of Unix, of the year 2200.
const youngest = 7258118400

// Complete gives a rule of the table, made of the Route, what Routes cannot say.
func (r *Rule) Complete(spec *routing.RuleSpec) {
	spec.Match.Path = r.Path
	if r.Host == AnyHost {
		spec.Wildcard, spec.Labels = true, true
	}
	// Routes have no age as far as the order goes, and come first; of several certificates of a host the oldest object has its served.
	if spec.Created = r.Route.CreationTimestamp.Time; spec.Created.IsZero() {
		spec.Created = time.Unix(0, 1)
	}
	if r.Default {
		spec.Created = time.Unix(youngest, 0)
	}
}

// name is that of the Route of an item: that of the Ingress, and a hash of what the rule takes, so that it stays the same however the Ingress and
// the router change. taken are those that there are.
func name(ingress string, it *item, taken map[string]bool) string {
	text := it.host + "\x00" + it.claim()
	for {
		sum := sha256.Sum256([]byte(text))
		n := ingress + source.OfIngress + hex.EncodeToString(sum[:])[:10]
		if !taken[n] {
			taken[n] = true
			return n
		}
		text += "\x00"
	}
}

// rule makes the rule of an item.
func (e *expander) rule(it *item) Rule {
	o := e.in.Ingress
	host, policy := it.host, routev1.WildcardPolicyNone
	if domain, wild := strings.CutPrefix(host, "*."); wild {
		host, policy = wildLabel+domain, routev1.WildcardPolicySubdomain
	}
	weight, controls := int32(100), true
	route := &routev1.Route{
		TypeMeta: metav1.TypeMeta{Kind: "Route", APIVersion: routev1.GroupVersion.String()},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: name(o.Name, it, e.names), UID: o.UID, CreationTimestamp: o.CreationTimestamp, Annotations: e.annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Name: o.Name, UID: o.UID, Controller: &controls}},
			ManagedFields:   slices.DeleteFunc(slices.Clone(o.ManagedFields), func(f metav1.ManagedFieldsEntry) bool { return f.Subresource != "" }),
		},
		Spec: routev1.RouteSpec{
			Host: host, Path: it.path.Value, WildcardPolicy: policy, TLS: e.tls(it.host),
			To: routev1.RouteTargetReference{Kind: "Service", Name: it.service, Weight: &weight},
		},
	}
	if it.port != "" {
		route.Spec.Port = &routev1.RoutePort{TargetPort: intstr.FromString(it.port)}
	}
	r := Rule{Of: source.Key{Namespace: o.Namespace, Name: o.Name}, Route: route, Host: host, Path: it.path, Default: it.isDefault, Problem: it.problem}
	if host == "" {
		r.Host = AnyHost
	}
	return r
}
