package source

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setDefaults fills in what an API server fills in.
func setDefaults(kind Kind, obj object) {
	if kind.Namespaced() {
		if obj.GetNamespace() == "" {
			obj.SetNamespace(metav1.NamespaceDefault)
		}
	} else {
		obj.SetNamespace("")
	}
	if obj.GetUID() == "" {
		obj.SetUID(manifestUID(kind, Key{obj.GetNamespace(), obj.GetName()}))
	}
	switch o := obj.(type) {
	case *routev1.Route:
		o.APIVersion, o.Kind = "route.openshift.io/v1", "Route"
		routeDefaults(o)
	case *corev1.Secret:
		secretDefaults(o)
	case *discoveryv1.EndpointSlice:
		for i := range o.Ports {
			p := &o.Ports[i]
			if p.Protocol == nil {
				tcp := corev1.ProtocolTCP
				p.Protocol = &tcp
			}
			if p.Name == nil {
				p.Name = new(string)
			}
		}
	case *corev1.Service:
		for i := range o.Spec.Ports {
			if o.Spec.Ports[i].Protocol == "" {
				o.Spec.Ports[i].Protocol = corev1.ProtocolTCP
			}
		}
	}
}

func routeDefaults(r *routev1.Route) {
	if r.Spec.WildcardPolicy == "" {
		r.Spec.WildcardPolicy = routev1.WildcardPolicyNone
	}
	reference := func(t *routev1.RouteTargetReference) {
		if t.Kind == "" {
			t.Kind = "Service"
		}
		if t.Weight == nil {
			weight := int32(100)
			t.Weight = &weight
		}
	}
	reference(&r.Spec.To)
	for i := range r.Spec.AlternateBackends {
		reference(&r.Spec.AlternateBackends[i])
	}
}

func secretDefaults(s *corev1.Secret) {
	if s.Type == "" {
		s.Type = corev1.SecretTypeOpaque
	}
	for name, text := range s.StringData {
		if s.Data == nil {
			s.Data = make(map[string][]byte, len(s.StringData))
		}
		s.Data[name] = []byte(text)
	}
	s.StringData = nil
}

// The patterns of names and of hosts as the API server checks them.
var (
	namePattern  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	labelPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	hostPattern  = regexp.MustCompile(`^([a-zA-Z0-9]|[a-zA-Z0-9][-a-zA-Z0-9]{0,61}[a-zA-Z0-9])(\.([a-zA-Z0-9]|[a-zA-Z0-9][-a-zA-Z0-9]{0,61}[a-zA-Z0-9]))*$`)
)

// validate returns why an API server would not take the object. What the router judges
// itself, such as terminations and certificates, is left to it: such a route is known
// and its status says what is wrong.
func validate(kind Kind, obj object) []string {
	var errs []string
	name, ns := obj.GetName(), obj.GetNamespace()
	switch {
	case name == "":
		return []string{"metadata.name must be set"}
	case len(name) > 253 || !namePattern.MatchString(name):
		errs = append(errs, fmt.Sprintf("metadata.name: %q is not a lower-case DNS name", name))
	}
	if kind.Namespaced() && (len(ns) > 63 || !labelPattern.MatchString(ns)) {
		errs = append(errs, fmt.Sprintf("metadata.namespace: %q is not a lower-case DNS label", ns))
	}
	switch o := obj.(type) {
	case *routev1.Route:
		errs = append(errs, validateRoute(o)...)
	case *discoveryv1.EndpointSlice:
		errs = append(errs, validateSlice(o)...)
	case *networkingv1.Ingress:
		errs = append(errs, validateIngress(o)...)
	case *networkingv1.IngressClass:
		errs = append(errs, validateIngressClass(o)...)
	}
	return errs
}

func validateRoute(r *routev1.Route) []string {
	var errs []string
	spec := &r.Spec
	if len(spec.Subdomain) > 253 || spec.Subdomain != "" && !hostPattern.MatchString(spec.Subdomain) {
		errs = append(errs, fmt.Sprintf("spec.subdomain: %q is not a DNS name", spec.Subdomain))
	}
	if spec.Path != "" && !strings.HasPrefix(spec.Path, "/") {
		errs = append(errs, "spec.path: must begin with /")
	}
	errs = append(errs, validateTarget("spec.to", &spec.To)...)
	if len(spec.AlternateBackends) > 3 {
		errs = append(errs, "spec.alternateBackends: at most 3 are allowed")
	}
	type service struct{ kind, name string }
	var seen []service
	for i := range spec.AlternateBackends {
		t := &spec.AlternateBackends[i]
		field := fmt.Sprintf("spec.alternateBackends[%d]", i)
		errs = append(errs, validateTarget(field, t)...)
		s := service{t.Kind, t.Name}
		if slices.Contains(seen, s) {
			errs = append(errs, fmt.Sprintf("%s: %s %s is named twice", field, t.Kind, t.Name))
		}
		seen = append(seen, s)
	}
	if tls := spec.TLS; tls != nil {
		if tls.Termination == routev1.TLSTerminationPassthrough {
			if spec.Path != "" {
				errs = append(errs, "spec.path: not possible with passthrough termination")
			}
			if spec.HTTPHeaders != nil {
				errs = append(errs, "spec.httpHeaders: not possible with passthrough termination")
			}
		}
		if tls.Certificate != "" && tls.ExternalCertificate != nil && tls.ExternalCertificate.Name != "" {
			errs = append(errs, "spec.tls: certificate and externalCertificate cannot both be set")
		}
	}
	return errs
}

func validateTarget(field string, t *routev1.RouteTargetReference) []string {
	var errs []string
	if t.Kind != "Service" {
		errs = append(errs, fmt.Sprintf("%s.kind: must be Service, not %q", field, t.Kind))
	}
	if t.Name == "" {
		errs = append(errs, field+".name: must be set")
	}
	if t.Weight != nil && (*t.Weight < 0 || *t.Weight > 256) {
		errs = append(errs, fmt.Sprintf("%s.weight: %d is not in 0 to 256", field, *t.Weight))
	}
	return errs
}

func validateSlice(s *discoveryv1.EndpointSlice) []string {
	var errs []string
	switch s.AddressType {
	case discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN:
	default:
		errs = append(errs, fmt.Sprintf("addressType: must be IPv4, IPv6 or FQDN, not %q", s.AddressType))
	}
	for i, p := range s.Ports {
		if p.Port != nil && (*p.Port < 1 || *p.Port > 65535) {
			errs = append(errs, fmt.Sprintf("ports[%d].port: %d is not in 1 to 65535", i, *p.Port))
		}
	}
	return errs
}
