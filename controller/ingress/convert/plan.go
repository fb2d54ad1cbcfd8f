package convert

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"turnout/controller/ingress"
	shards "turnout/controller/shard/api"
)

// Input is an Ingress that is managed, and what belongs to it. It is not changed.
type Input struct {
	Ingress *networkingv1.Ingress
	Owned   []*routev1.Route                  // whose controller is an Ingress of its name
	Service func(name string) *corev1.Service // of the namespace; nil = there is none
	Secret  func(name string) *corev1.Secret  // of the namespace, one that Secrets names; nil = there is none
}

// Plan is what is to be done for an Ingress. Its objects share parts with those of the Input.
type Plan struct {
	Create []*routev1.Route // without names: NameOf makes one
	Update []Update
	Delete []*routev1.Route
	// Status is the addresses that the Ingress is to have; nil = those that it has.
	Status []networkingv1.IngressLoadBalancerIngress
	// Incomplete says what was left out, for people; "" = nothing was.
	Incomplete string
	// BadLabels says that AnnotationLabels is neither true nor false.
	BadLabels bool
}

// Update is a Route as it is and as it is to be.
type Update struct{ Old, New *routev1.Route }

// Make returns what is to be done.
func Make(in Input) Plan {
	m := maker{in: &in, left: slices.Clone(in.Owned), taken: make(map[place]bool)}
	slices.SortFunc(m.left, func(a, b *routev1.Route) int { return strings.Compare(a.Name, b.Name) })
	if text := strings.TrimSpace(in.Ingress.Annotations[AnnotationLabels]); text != "" {
		var err error
		m.labels, err = strconv.ParseBool(strings.ToLower(text))
		m.out.BadLabels = err != nil
	}
	for i := range in.Ingress.Spec.Rules {
		m.rule(i, &in.Ingress.Spec.Rules[i])
	}
	m.out.Delete = m.left
	m.status()
	if len(m.missing) > 0 {
		m.out.Incomplete = "Incomplete ingress to route rules detected: " + strings.Join(m.missing, "; ")
	}
	return m.out
}

// maker is one call of Make.
type maker struct {
	in      *Input
	labels  bool             // of Routes follow those of the Ingress
	left    []*routev1.Route // owned, and not wanted by a path yet
	matches []*routev1.Route // as they should be
	taken   map[place]bool   // by paths before
	missing []string
	out     Plan
}

// place is what tells Routes of an Ingress apart.
type place struct{ host, path string }

func (m *maker) missf(format string, args ...any) {
	m.missing = append(m.missing, fmt.Sprintf(format, args...))
}

func (m *maker) rule(i int, rule *networkingv1.IngressRule) {
	switch {
	case rule.HTTP == nil:
		m.missf("Missing http field in rule at index %d", i)
		return
	case rule.Host == "":
		m.missf("Missing host field in rule at index %d", i)
		return
	}
	for j := range rule.HTTP.Paths {
		path := &rule.HTTP.Paths[j]
		at := place{rule.Host, path.Path}
		switch {
		case path.Backend.Service == nil:
			m.missf("Missing backend service field in rule at index %d, path index %d", i, j)
		case path.Backend.Service.Name == "":
			m.missf("Missing backend service name in rule at index %d, path index %d", i, j)
		case path.PathType != nil && *path.PathType == networkingv1.PathTypeExact:
			m.missf("Unsupported exact path type in rule at index %d, path index %d", i, j)
		case m.taken[at]:
			m.missf("Duplicate host and path in rule at index %d, path index %d", i, j)
		default:
			m.taken[at] = true
			m.path(i, j, rule, path)
		}
	}
}

// path decides about the Route of one path.
func (m *maker) path(i, j int, rule *networkingv1.IngressRule, path *networkingv1.HTTPIngressPath) {
	wanted, err := m.in.route(rule, path)
	if err != nil {
		m.missf("%s at index %d, path index %d", err, i, j)
		return // what there is of it is deleted
	}
	at := slices.IndexFunc(m.left, func(r *routev1.Route) bool { return r.Spec.Host == wanted.Spec.Host && r.Spec.Path == wanted.Spec.Path })
	if at < 0 {
		m.out.Create = append(m.out.Create, wanted)
		return
	}
	old := m.left[at]
	m.left = slices.Delete(m.left, at, at+1)
	m.keep(wanted, old)
	if m.same(wanted, old) {
		m.matches = append(m.matches, old)
		return
	}
	m.out.Update = append(m.out.Update, Update{old, wanted})
}

// keep leaves what people may change in a Route as they have changed it, and what the scheduler of routers has written to it.
func (m *maker) keep(wanted, old *routev1.Route) {
	wanted.Name, wanted.UID, wanted.ResourceVersion = old.Name, old.UID, old.ResourceVersion
	wanted.Spec.To.Weight, wanted.Spec.HTTPHeaders = old.Spec.To.Weight, old.Spec.HTTPHeaders
	if wanted.Spec.WildcardPolicy == "" && old.Spec.WildcardPolicy == routev1.WildcardPolicyNone {
		wanted.Spec.WildcardPolicy = routev1.WildcardPolicyNone // the default of the API
	}
	refs := slices.Clone(old.OwnerReferences)
	if i := slices.IndexFunc(refs, isOwner); i >= 0 {
		mine := wanted.OwnerReferences[0]
		mine.BlockOwnerDeletion = refs[i].BlockOwnerDeletion
		refs[i] = mine
		wanted.OwnerReferences = refs
	}
	wanted.Annotations = withOurs(wanted.Annotations, old.Annotations, func(key string) bool { return slices.Contains(scheduled, key) })
	if m.labels {
		wanted.Labels = withOurs(wanted.Labels, old.Labels, func(key string) bool { return strings.HasPrefix(key, shards.LabelPrefix) })
	} else {
		wanted.Labels = old.Labels
	}
	tls, before := wanted.Spec.TLS, old.Spec.TLS
	if tls == nil || before == nil {
		return
	}
	tls.CACertificate, tls.InsecureEdgeTerminationPolicy = before.CACertificate, before.InsecureEdgeTerminationPolicy
	if _, named := wanted.Annotations[ingress.AnnotationPodCA]; !named && tls.Termination == routev1.TLSTerminationReencrypt {
		tls.DestinationCACertificate = before.DestinationCACertificate
	}
}

// scheduled are annotations that the scheduler of routers writes to Routes.
var scheduled = []string{shards.AnnotationPhase, shards.AnnotationDNS, shards.AnnotationTarget, shards.AnnotationRouters, shards.AnnotationMessage}

// withOurs returns all with the entries of old that are ours. all is not changed.
func withOurs(all, old map[string]string, ours func(key string) bool) map[string]string {
	out := all
	for key, value := range old {
		if _, there := all[key]; there || !ours(key) {
			continue
		}
		if len(out) == len(all) {
			if out = maps.Clone(all); out == nil {
				out = make(map[string]string)
			}
		}
		out[key] = value
	}
	return out
}

// same reports whether a Route is as it is wanted.
func (m *maker) same(wanted, old *routev1.Route) bool {
	a, b := &wanted.Spec, &old.Spec
	return a.To.Name == b.To.Name && len(b.AlternateBackends) == 0 && a.WildcardPolicy == b.WildcardPolicy &&
		reflect.DeepEqual(a.Port, b.Port) && reflect.DeepEqual(a.TLS, b.TLS) &&
		maps.Equal(wanted.Annotations, old.Annotations) && maps.Equal(wanted.Labels, old.Labels) && reflect.DeepEqual(wanted.OwnerReferences, old.OwnerReferences)
}

// status decides about the addresses of the Ingress: those that it has, without the canonical host names of Routes that go and with those of Routes that are
// admitted. Nobody else's are touched.
func (m *maker) status() {
	before := m.in.Ingress.Status.LoadBalancer.Ingress
	var others []networkingv1.IngressLoadBalancerIngress
	names := make(map[string]bool)
	for _, entry := range before {
		if entry.Hostname == "" || entry.IP != "" || len(entry.Ports) > 0 {
			others = append(others, entry)
		} else {
			names[entry.Hostname] = true
		}
	}
	had := maps.Clone(names)
	for _, r := range m.out.Delete {
		for _, name := range canonical(r) {
			delete(names, name)
		}
	}
	for _, r := range m.matches {
		for _, name := range canonical(r) {
			names[name] = true
		}
	}
	if maps.Equal(names, had) {
		return
	}
	m.out.Status = append([]networkingv1.IngressLoadBalancerIngress{}, others...)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		m.out.Status = append(m.out.Status, networkingv1.IngressLoadBalancerIngress{Hostname: name})
	}
}

// canonical returns the host names of the routers that admit a Route.
func canonical(r *routev1.Route) (names []string) {
	for i := range r.Status.Ingress {
		entry := &r.Status.Ingress[i]
		for _, c := range entry.Conditions {
			if c.Type == routev1.RouteAdmitted {
				if c.Status == corev1.ConditionTrue && entry.RouterCanonicalHostname != "" {
					names = append(names, entry.RouterCanonicalHostname)
				}
				break
			}
		}
	}
	return names
}

// What the name of a Route is made of.
const (
	nameLength = 63
	// SuffixLength is how many characters chosen by chance a name ends with.
	SuffixLength = 5
)

// NameOf returns the name of a Route of an Ingress, which ends with suffix.
func NameOf(ingressName, suffix string) string {
	base := ingressName + "-"
	return base[:min(len(base), nameLength-len(suffix))] + suffix
}
