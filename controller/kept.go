package controller

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unique"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"turnout/controller/source"
)

// kept is a Route at rest: what was made of it is made, and few are looked at. What it asks for stands in the encoding of the API's protocol buffers, which
// takes some 100 bytes where the object takes 700. It is immutable.
type kept struct {
	key     source.Key
	uid     types.UID
	version string
	writer  string // who wrote it last, "" = nobody knows
	path    string // of the spec, as policy
	policy  routev1.WildcardPolicyType
	labels  string // "" = none; packed as asks is
	asks    string // annotations, when it was created, and the spec but for its TLS
	// tls has the certificates, which are not packed: what was made of the route holds on to their texts, and there is no second copy.
	tls     *routev1.TLSConfig
	ingress []routev1.RouteIngress // the status
}

// keeper makes routes into what is kept of them. The zero value is valid.
type keeper struct {
	said map[condition][]routev1.RouteIngressCondition
}

// condition is one that many routes may have: most are admitted, and many at the same time.
type condition struct {
	routev1.RouteIngressCondition // without its time
	timed                         bool
	at                            int64 // its time, ns since 1970
}

// mostSaid is how many conditions are known, so that routes can share them.
const mostSaid = 1 << 10

// keep returns what is kept of an object, which is not changed and shares its status and TLS settings. before is what was kept of it until now, nil for
// nothing: what stays the same is shared with it. The bool says that it asks for the same as before.
func (k *keeper) keep(object *routev1.Route, before *kept) (*kept, bool, error) {
	packed := routev1.Route{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: object.CreationTimestamp, Annotations: object.Annotations},
		Spec:       object.Spec,
	}
	packed.Spec.TLS = nil
	data, err := packed.Marshal()
	var labels []byte
	if err == nil && len(object.Labels) > 0 {
		labels, err = (&metav1.ObjectMeta{Labels: object.Labels}).Marshal()
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot encode route %s/%s: %w", object.Namespace, object.Name, err)
	}
	next := &kept{
		key: source.Key{Namespace: object.Namespace, Name: object.Name}, uid: object.UID, version: object.ResourceVersion, tls: shareAuthorities(object.Spec.TLS),
		path: object.Spec.Path, policy: object.Spec.WildcardPolicy, ingress: k.share(object.Status.Ingress),
		labels: string(labels),
	}
	if f := object.ManagedFields; len(f) > 0 {
		next.writer = f[len(f)-1].Manager
	}
	if before == nil || before.asks != string(data) || before.tls != next.tls && !reflect.DeepEqual(before.tls, next.tls) {
		next.asks = string(data)
		return next, false, nil
	}
	next.key, next.uid, next.path, next.policy, next.asks, next.tls = before.key, before.uid, before.path, before.policy, before.asks, before.tls
	return next, true, nil
}

// shareAuthorities returns TLS settings whose authorities are one text for all routes that have the same: most have those of few issuers.
func shareAuthorities(tls *routev1.TLSConfig) *routev1.TLSConfig {
	if tls == nil || tls.CACertificate == "" && tls.DestinationCACertificate == "" {
		return tls
	}
	shared := *tls
	shared.CACertificate, shared.DestinationCACertificate = unique.Make(tls.CACertificate).Value(), unique.Make(tls.DestinationCACertificate).Value()
	return &shared
}

// share returns a status whose conditions are those of other routes that say the same.
func (k *keeper) share(all []routev1.RouteIngress) []routev1.RouteIngress {
	all = slices.Clone(all)
	for i := range all {
		if len(all[i].Conditions) != 1 {
			continue
		}
		c := condition{RouteIngressCondition: all[i].Conditions[0]}
		if at := c.LastTransitionTime; at != nil {
			c.timed, c.at, c.LastTransitionTime = true, at.UnixNano(), nil
		}
		known := k.said[c]
		if known == nil {
			if k.said == nil || len(k.said) >= mostSaid {
				k.said = make(map[condition][]routev1.RouteIngressCondition)
			}
			known = all[i].Conditions
			k.said[c] = known
		}
		all[i].Conditions = known
	}
	return all
}

// object returns the Route. Its status and its TLS settings are shared and read-only.
func (k *kept) object() *routev1.Route {
	o, meta := new(routev1.Route), new(metav1.ObjectMeta)
	if err := errors.Join(o.Unmarshal([]byte(k.asks)), meta.Unmarshal([]byte(k.labels))); err != nil { // keep has encoded them
		panic(fmt.Sprintf("BUG: cannot decode route %s: %v", k.key, err))
	}
	o.TypeMeta = metav1.TypeMeta{Kind: "Route", APIVersion: routev1.GroupVersion.String()}
	o.Labels = meta.Labels
	o.Namespace, o.Name, o.UID, o.ResourceVersion = k.key.Namespace, k.key.Name, k.uid, k.version
	if k.writer != "" {
		o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: k.writer}}
	}
	o.Spec.TLS, o.Status.Ingress = k.tls, k.ingress
	return o
}

// objectOf returns the object of a route. It is the same until the batch that is handled is over.
func (s *state) objectOf(r *route) *routev1.Route {
	if r.object == nil {
		s.open(r, r.kept.object())
	}
	return r.object
}

// open gives a route its object until the batch that is handled is over.
func (s *state) open(r *route, object *routev1.Route) {
	r.object = object
	s.opened = append(s.opened, r)
}

// closeRoutes ends the batch.
func (s *state) closeRoutes() {
	for _, r := range s.opened {
		r.object = nil
	}
	s.opened = nil
}
