package source

import (
	"fmt"
	"net/netip"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateIngress returns why an API server would not take an Ingress.
func validateIngress(o *networkingv1.Ingress) []string {
	var errs []string
	spec := &o.Spec
	if spec.DefaultBackend == nil && len(spec.Rules) == 0 {
		errs = append(errs, "spec: defaultBackend or rules must be set")
	}
	if c := spec.IngressClassName; c != nil && !namePattern.MatchString(*c) {
		errs = append(errs, fmt.Sprintf("spec.ingressClassName: %q is not a lower-case DNS name", *c))
	}
	if b := spec.DefaultBackend; b != nil {
		errs = append(errs, validateBackend("spec.defaultBackend", b)...)
	}
	for i := range spec.Rules {
		rule, at := &spec.Rules[i], fmt.Sprintf("spec.rules[%d]", i)
		errs = append(errs, validateIngressHost(at+".host", rule.Host)...)
		if rule.HTTP == nil {
			continue
		}
		if len(rule.HTTP.Paths) == 0 {
			errs = append(errs, at+".http.paths: must be set")
		}
		for j := range rule.HTTP.Paths {
			errs = append(errs, validateIngressPath(fmt.Sprintf("%s.http.paths[%d]", at, j), &rule.HTTP.Paths[j])...)
		}
	}
	for i := range spec.TLS {
		for j, host := range spec.TLS[i].Hosts {
			errs = append(errs, validateIngressHost(fmt.Sprintf("spec.tls[%d].hosts[%d]", i, j), host)...)
		}
	}
	return errs
}

func validateIngressHost(at, host string) []string {
	switch {
	case host == "":
		return nil
	case strings.Contains(host, "*"):
		if len(validation.IsWildcardDNS1123Subdomain(host)) > 0 {
			return []string{fmt.Sprintf("%s: %q is not a lower-case DNS name behind one label *", at, host)}
		}
	case len(validation.IsDNS1123Subdomain(host)) > 0:
		return []string{fmt.Sprintf("%s: %q is not a lower-case DNS name", at, host)}
	default:
		if _, err := netip.ParseAddr(host); err == nil {
			return []string{fmt.Sprintf("%s: %q is an address, not a DNS name", at, host)}
		}
	}
	return nil
}

// notInPath are parts that paths of the types Exact and Prefix must not have, and notAtEnd what they must not end with.
var (
	notInPath = [...]string{"//", "/./", "/../", "%2f", "%2F"}
	notAtEnd  = [...]string{"/..", "/."}
)

func validateIngressPath(at string, p *networkingv1.HTTPIngressPath) []string {
	var errs []string
	errf := func(format string, args ...any) { errs = append(errs, at+fmt.Sprintf(format, args...)) }
	switch kind := value(p.PathType); kind {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		if !strings.HasPrefix(p.Path, "/") {
			errf(".path: must begin with /")
		}
		for _, part := range notInPath {
			if strings.Contains(p.Path, part) {
				errf(".path: must not contain %s", part)
			}
		}
		for _, end := range notAtEnd {
			if strings.HasSuffix(p.Path, end) {
				errf(".path: must not end with %s", end)
			}
		}
	case networkingv1.PathTypeImplementationSpecific:
		if p.Path != "" && !strings.HasPrefix(p.Path, "/") {
			errf(".path: must begin with /")
		}
	case "":
		errf(".pathType: must be set")
	default:
		errf(".pathType: must be Exact, Prefix or ImplementationSpecific, not %q", kind)
	}
	return append(errs, validateBackend(at+".backend", &p.Backend)...)
}

func validateBackend(at string, b *networkingv1.IngressBackend) []string {
	switch {
	case b.Service != nil && b.Resource != nil:
		return []string{at + ": service and resource cannot both be set"}
	case b.Resource != nil:
		return nil // the controller says that it serves none
	case b.Service == nil:
		return []string{at + ": service or resource must be set"}
	}
	var errs []string
	s := b.Service
	if len(validation.IsDNS1035Label(s.Name)) > 0 {
		errs = append(errs, fmt.Sprintf("%s.service.name: %q is not the name of a Service", at, s.Name))
	}
	switch port := s.Port; {
	case port.Name != "" && port.Number != 0:
		errs = append(errs, at+".service.port: name and number cannot both be set")
	case port.Name != "":
		if len(validation.IsValidPortName(port.Name)) > 0 {
			errs = append(errs, fmt.Sprintf("%s.service.port.name: %q is not the name of a port", at, port.Name))
		}
	case port.Number < 1 || port.Number > 65535:
		errs = append(errs, fmt.Sprintf("%s.service.port.number: %d is not in 1 to 65535", at, port.Number))
	}
	return errs
}

// validateIngressClass returns why an API server would not take an IngressClass.
func validateIngressClass(o *networkingv1.IngressClass) []string {
	c := o.Spec.Controller
	if c != "" && (len(c) > 250 || len(validation.IsDomainPrefixedPath(field.NewPath("spec", "controller"), c)) > 0) {
		return []string{fmt.Sprintf("spec.controller: %q is not a DNS name, a slash and a path, such as example.com/ingress", c)}
	}
	return nil
}

// value returns what p points to, the zero value for nil.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
