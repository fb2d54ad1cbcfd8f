package cluster

import (
	"maps"
	"slices"
	"unique"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/ingress"
	shards "turnout/controller/shard/api"
	"turnout/controller/status"
	"turnout/controller/translate"
)

// trim takes from an object what the router does not read. There are ten thousands of
// them, and most of their size is bookkeeping of others. The object is changed; it
// must not be shared yet. Trimming twice changes nothing more. ports says that those of Services are read.
func trim(object runtime.Object, ports bool) {
	switch o := object.(type) {
	case *routev1.Route:
		o.TypeMeta = metav1.TypeMeta{Kind: "Route", APIVersion: "route.openshift.io/v1"}
		writer := lastWrite(o.ManagedFields)
		o.ObjectMeta = identity(&o.ObjectMeta, translate.Kept(o.Annotations))
		o.ManagedFields = writer
		shareWords(o)
	case *corev1.Service:
		trimService(o, ports)
	case *discoveryv1.EndpointSlice:
		trimSlice(o)
	case *networkingv1.Ingress:
		writers := append(status.IngressManaged(o), lastWrite(o.ManagedFields)...)
		o.ObjectMeta = identity(&o.ObjectMeta, ingress.Kept(o.Annotations))
		o.ManagedFields = writers
	case *networkingv1.IngressClass:
		o.ObjectMeta = identity(&o.ObjectMeta, only(o.Annotations, func(key string) bool { return key == networkingv1.AnnotationIsDefaultIngressClass }))
		o.Spec.Parameters = nil
	case *corev1.Namespace:
		o.ObjectMeta = identity(&o.ObjectMeta, nil)
		o.Spec, o.Status = corev1.NamespaceSpec{}, corev1.NamespaceStatus{}
	case *shards.RouteBinding:
		o.ObjectMeta, o.Status = identity(&o.ObjectMeta, nil), shards.RouteBindingStatus{}
	case *gatewayv1.GatewayClass, *gatewayv1.Gateway, *gatewayv1.ListenerSet, *gatewayv1.HTTPRoute, *gatewayv1.GRPCRoute, *gatewayv1.TLSRoute,
		*gatewayv1.TCPRoute, *gatewayv1.UDPRoute, *gatewayv1.ReferenceGrant, *gatewayv1.BackendTLSPolicy:
		if m, ok := object.(metav1.Object); ok {
			trimManagedObject(m)
		}
	case *corev1.Secret:
		o.ObjectMeta = identity(&o.ObjectMeta, nil)
		o.Immutable, o.StringData = nil, nil
		data := make(map[string][]byte, 3)
		for _, name := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, corev1.ServiceAccountRootCAKey} {
			if content, ok := o.Data[name]; ok {
				data[name] = content
			}
		}
		o.Data = data
	}
}

// Trim returns what takes from an object of a folder what the router does not read, as is done with those of a cluster, and returns the object to be delivered. Labels
// stay, by which routes and namespaces may be selected, and Secrets, which may hold more than a certificate. ports says that those of Services are read.
func Trim(ports bool) func(object runtime.Object) runtime.Object {
	s := newStore(0)
	s.keepLabels, s.keepPorts = true, ports
	return func(object runtime.Object) runtime.Object {
		switch o := object.(type) {
		case *corev1.Secret, *corev1.ConfigMap:
			return object
		case *corev1.Service, *discoveryv1.EndpointSlice:
			trim(object, ports)
		default:
			s.trim(o)
		}
		return s.leaving(object)
	}
}

// trimBound is trim for a replica of a Router, which gives routes their names whose host the API server has made up.
func trimBound(object runtime.Object, ports bool) {
	o, ok := object.(*routev1.Route)
	generated := ok && o.Annotations[shards.HostGenerated] == "true"
	trim(object, ports)
	if generated {
		o.Annotations = maps.Clone(o.Annotations)
		if o.Annotations == nil {
			o.Annotations = make(map[string]string, 1)
		}
		o.Annotations[shards.HostGenerated] = "true"
	}
}

// trimScheduled is trim for the scheduler: of routes it reads what they are selected by, where they want to be, and what it has said of them.
func trimScheduled(object runtime.Object, _ bool) {
	switch o := object.(type) {
	case *routev1.Route:
		trimUnscheduled(o)
	case *corev1.Namespace:
		kept := o.Labels
		trim(o, false)
		o.Labels = kept
	case *shards.RouteBinding:
		o.ObjectMeta, o.Status.Conditions = identity(&o.ObjectMeta, nil), nil
	case *shards.Router:
		o.ManagedFields = nil
	case *shards.RouteScheduler:
		o.ManagedFields = nil
	}
}

// trimNamed is trim for turnout dns.
func trimNamed(object runtime.Object, _ bool) {
	switch o := object.(type) {
	case *shards.RouteBinding:
		o.ObjectMeta, o.Status.Conditions = identity(&o.ObjectMeta, nil), nil
		o.Spec = shards.RouteBindingSpec{DNS: o.Spec.DNS, Target: o.Spec.Target, Router: unique.Make(o.Spec.Router).Value(), Leaving: o.Spec.Leaving}
	case *shards.Router:
		o.ManagedFields, o.Status.Conditions = nil, nil
		o.Spec.RouteSelector, o.Spec.NamespaceSelector = nil, nil
	}
}

// trimUnscheduled leaves of a route nothing that only routers read.
func trimUnscheduled(o *routev1.Route) {
	labels := o.Labels
	o.TypeMeta = metav1.TypeMeta{}
	o.ObjectMeta = identity(&o.ObjectMeta, only(o.Annotations, func(key string) bool {
		return key == shards.HostGenerated || slices.Contains(shards.Annotations(), key)
	}))
	o.Labels = labels
	spec := routev1.RouteSpec{Host: o.Spec.Host, Path: o.Spec.Path, WildcardPolicy: o.Spec.WildcardPolicy}
	if o.Spec.TLS != nil {
		spec.TLS = &routev1.TLSConfig{Termination: o.Spec.TLS.Termination}
	}
	o.Spec = spec
	for i := range o.Status.Ingress {
		in := &o.Status.Ingress[i]
		*in = routev1.RouteIngress{RouterName: in.RouterName, Conditions: in.Conditions}
	}
}

// trimConverted is trim for who converts Ingresses into Routes: of both, what people see of them is kept.
func trimConverted(object runtime.Object, ports bool) {
	switch o := object.(type) {
	case *routev1.Route:
		o.ManagedFields = nil
	case *networkingv1.Ingress:
		o.ManagedFields = nil
	default:
		trim(object, ports)
	}
}

// identity returns who an object is, and when and as which version it came to be.
func identity(m *metav1.ObjectMeta, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: word(m.Namespace), Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, Annotations: annotations,
	}
}

// word is one text for all that are equal, for those that many objects have in common.
func word[T ~string](s T) T { return T(unique.Make(string(s)).Value()) }

// shareWords has the route hold no copies of its own of what most routes say.
func shareWords(o *routev1.Route) {
	s := &o.Spec
	s.WildcardPolicy, s.To.Kind = word(s.WildcardPolicy), word(s.To.Kind)
	if s.To.Name == o.Name {
		s.To.Name = o.Name
	}
	if s.TLS != nil {
		s.TLS.Termination, s.TLS.InsecureEdgeTerminationPolicy = word(s.TLS.Termination), word(s.TLS.InsecureEdgeTerminationPolicy)
		s.TLS.CACertificate, s.TLS.DestinationCACertificate = word(s.TLS.CACertificate), word(s.TLS.DestinationCACertificate)
	}
	for i := range o.Status.Ingress {
		in := &o.Status.Ingress[i]
		in.RouterName, in.RouterCanonicalHostname, in.WildcardPolicy = word(in.RouterName), word(in.RouterCanonicalHostname), word(in.WildcardPolicy)
		if in.Host == s.Host {
			in.Host = s.Host
		}
		for j := range in.Conditions {
			c := &in.Conditions[j]
			c.Type, c.Status, c.Reason = word(c.Type), word(c.Status), word(c.Reason)
		}
	}
}

// lastWrite returns who wrote an object last, nil if nobody knows. Writes of the status are not meant.
func lastWrite(all []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var last *metav1.ManagedFieldsEntry
	for i := range all {
		if f := &all[i]; f.Subresource == "" && (last == nil || !f.Time.Before(last.Time)) {
			last = f
		}
	}
	if last == nil || last.Manager == "" {
		return nil
	}
	return []metav1.ManagedFieldsEntry{{Manager: word(last.Manager)}}
}

// only returns the entries of a map whose key is wanted, nil for none.
func only(all map[string]string, wanted func(key string) bool) map[string]string {
	n := 0
	for key := range all {
		if wanted(key) {
			n++
		}
	}
	switch n {
	case 0:
		return nil
	case len(all):
		return all
	}
	kept := make(map[string]string, n)
	for key, value := range all {
		if wanted(key) {
			kept[key] = value
		}
	}
	return kept
}

// idledAt is the annotation of a service whose pods were stopped until it is used.
const idledAt = "idling.alpha.openshift.io/idled-at"

// trimService keeps the addresses and node ports of a Service. It keeps the ports if the Service is
// idled or has other than cluster addresses. If ports is set, it always keeps the type and the
// ports.
func trimService(o *corev1.Service, ports bool) {
	if o.Labels[gatewayv1.GatewayNameLabelKey] != "" { // somebody's own, whose addresses and ports are read
		trimManaged(&o.ObjectMeta)
		return
	}
	o.ObjectMeta = identity(&o.ObjectMeta, only(o.Annotations, func(key string) bool { return key == idledAt }))
	o.Status = corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: o.Status.LoadBalancer.Ingress}}
	spec := corev1.ServiceSpec{ClusterIPs: o.Spec.ClusterIPs, ExternalIPs: o.Spec.ExternalIPs}
	if len(spec.ClusterIPs) > 0 && spec.ClusterIPs[0] == corev1.ClusterIPNone {
		spec.ClusterIPs = nil
	}
	if len(o.Annotations) > 0 {
		spec.ClusterIP = o.Spec.ClusterIP
	}
	if ports {
		spec.Type = o.Spec.Type
	}
	hasNodePort := slices.ContainsFunc(o.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort != 0 })
	if ports || hasNodePort || len(o.Annotations)+len(spec.ExternalIPs)+len(o.Status.LoadBalancer.Ingress) > 0 {
		spec.Ports = o.Spec.Ports
	}
	o.Spec = spec
}

// trimSlice leaves of a slice its service, and of its endpoints where and who they are.
func trimSlice(o *discoveryv1.EndpointSlice) {
	labels := only(o.Labels, func(key string) bool { return key == discoveryv1.LabelServiceName })
	o.ObjectMeta = identity(&o.ObjectMeta, nil)
	o.Labels = labels
	for i := range o.Endpoints {
		e := &o.Endpoints[i]
		e.DeprecatedTopology, e.NodeName, e.Zone, e.Hints = nil, nil, nil, nil
		e.Conditions = conditions(e.Conditions)
		switch {
		case e.TargetRef == nil:
		case e.TargetRef.Kind == "Pod":
			*e.TargetRef = corev1.ObjectReference{Kind: "Pod", Name: e.TargetRef.Name} // one text for all
		default:
			e.TargetRef = nil
		}
	}
}

// trimManaged leaves all metadata that is read by people.
func trimManaged(m *metav1.ObjectMeta) {
	m.ManagedFields, m.Annotations = nil, only(m.Annotations, unlessApplied)
}

// unlessApplied is false for the copy of an object that kubectl keeps in it.
func unlessApplied(key string) bool { return key != corev1.LastAppliedConfigAnnotation }

// conditions leaves those that say something: endpoints are ready and not terminating
// unless they say otherwise.
func conditions(c discoveryv1.EndpointConditions) discoveryv1.EndpointConditions {
	c.Serving = nil
	if c.Ready != nil && *c.Ready {
		c.Ready = nil
	}
	if c.Terminating != nil && !*c.Terminating {
		c.Terminating = nil
	}
	return c
}

// wanted reports whether an object is of any use: slices without a service, and those
// whose addresses are names, are not.
func wanted(object runtime.Object) bool {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok {
		return true
	}
	return slice.Labels[discoveryv1.LabelServiceName] != "" &&
		(slice.AddressType == discoveryv1.AddressTypeIPv4 || slice.AddressType == discoveryv1.AddressTypeIPv6)
}
