package convert

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"turnout/controller/ingress"
)

// Controller is what spec.controller of an IngressClass says whose Ingresses are converted.
const Controller = "openshift.io/ingress-to-route"

// AnnotationLabels, if true, has the labels of Routes follow those of the Ingress.
const AnnotationLabels = "route.openshift.io/reconcile-labels"

// Managed reports whether an Ingress is converted: it asks for a class of this controller, or for none.
func Managed(o *networkingv1.Ingress, classes *ingress.Classes) bool {
	if _, asked := ingress.Class(o); !asked {
		return true
	}
	ours, _ := classes.Serves(o)
	return ours
}

// OwnerOf returns the name of the Ingress that controls a Route. The bool is false when none does.
func OwnerOf(r *routev1.Route) (string, bool) {
	if i := slices.IndexFunc(r.OwnerReferences, isOwner); i >= 0 {
		return r.OwnerReferences[i].Name, true
	}
	return "", false
}

// isOwner reports whether a reference is one to the Ingress that controls a Route, whichever version of the API it was made by.
func isOwner(ref metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	known := group == "networking.k8s.io" || group == "extensions.k8s.io" || group == "extensions"
	return known && ref.Kind == "Ingress" && ref.Controller != nil && *ref.Controller
}

// Secrets returns the names of the Secrets that the conversion of an Ingress depends on, sorted, each once.
func Secrets(o *networkingv1.Ingress) (names []string) {
	for i := range o.Spec.TLS {
		if t := &o.Spec.TLS[i]; len(t.Hosts) > 0 && t.SecretName != "" {
			names = append(names, t.SecretName)
		}
	}
	if name := o.Annotations[ingress.AnnotationPodCA]; name != "" {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// route returns the Route of a path. The error says for people what keeps it from being made.
func (in *Input) route(rule *networkingv1.IngressRule, path *networkingv1.HTTPIngressPath) (*routev1.Route, error) {
	o, backend := in.Ingress, path.Backend.Service
	service := in.Service(backend.Name)
	if service == nil {
		return nil, fmt.Errorf("Backend service %q not found", backend.Name) //nolint:staticcheck // the words of OpenShift
	}
	port, err := targetPort(service, &backend.Port)
	if err != nil {
		return nil, fmt.Errorf("No valid target port for backend service %q", backend.Name) //nolint:staticcheck // the words of OpenShift
	}
	tls, err := in.tls(rule.Host)
	if err != nil {
		return nil, err
	}
	controls := true
	r := &routev1.Route{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Labels: o.Labels, Annotations: o.Annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Controller: &controls, Name: o.Name, UID: o.UID}},
		},
		Spec: routev1.RouteSpec{Host: rule.Host, Path: path.Path, To: routev1.RouteTargetReference{Kind: "Service", Name: backend.Name}, Port: port, TLS: tls},
	}
	if domain, wild := strings.CutPrefix(rule.Host, "*."); wild {
		r.Spec.Host, r.Spec.WildcardPolicy = "wildcard."+domain, routev1.WildcardPolicySubdomain
	}
	return r, nil
}

// errNoPort is a port that a Service has not.
var errNoPort = errors.New("no port found")

// targetPort returns the port of a Route for a port of a Service: its name, by which endpoints have it too. A port without a name is the only one,
// and the Route needs none.
func targetPort(s *corev1.Service, wanted *networkingv1.ServiceBackendPort) (*routev1.RoutePort, error) {
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		switch {
		case wanted.Name != "" && p.Name != wanted.Name, wanted.Name == "" && p.Port != wanted.Number:
		case p.Name == "":
			return nil, nil //nolint:nilnil // it is no mistake, and there is none
		default:
			return &routev1.RoutePort{TargetPort: intstr.FromString(p.Name)}, nil
		}
	}
	return nil, errNoPort
}

// tls returns the TLS settings of a host, as the rule writes it; nil without TLS.
func (in *Input) tls(host string) (*routev1.TLSConfig, error) {
	o := in.Ingress
	secret, named := in.secret(host)
	if named && !usable(secret) {
		return nil, fmt.Errorf("Invalid or missing TLS secret for rule host %q", host) //nolint:staticcheck // the words of OpenShift
	}
	termination, enabled := routev1.TLSTerminationEdge, named
	switch t := routev1.TLSTerminationType(o.Annotations[ingress.AnnotationTermination]); t {
	case routev1.TLSTerminationEdge, routev1.TLSTerminationReencrypt, routev1.TLSTerminationPassthrough:
		termination, enabled = t, true
	}
	for i := range o.Spec.TLS {
		enabled = enabled || len(o.Spec.TLS[i].Hosts) == 0 && o.Spec.TLS[i].SecretName == ""
	}
	if !enabled {
		return nil, nil //nolint:nilnil // there is none
	}
	out := &routev1.TLSConfig{Termination: termination, InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyRedirect}
	if secret != nil && termination != routev1.TLSTerminationPassthrough {
		out.Certificate, out.Key = string(secret.Data[corev1.TLSCertKey]), string(secret.Data[corev1.TLSPrivateKeyKey])
	}
	if termination == routev1.TLSTerminationReencrypt {
		out.DestinationCACertificate = in.podCA()
	}
	return out, nil
}

// secret returns the Secret of the first entry of spec.tls that names a host, nil if it is not there. The bool is false when none does.
func (in *Input) secret(host string) (*corev1.Secret, bool) {
	for i := range in.Ingress.Spec.TLS {
		t := &in.Ingress.Spec.TLS[i]
		if !slices.Contains(t.Hosts, host) {
			continue
		}
		if t.SecretName == "" {
			return nil, true
		}
		return in.Secret(t.SecretName), true
	}
	return nil, false
}

func usable(s *corev1.Secret) bool {
	if s == nil || s.Type != corev1.SecretTypeTLS {
		return false
	}
	_, cert := s.Data[corev1.TLSCertKey]
	_, key := s.Data[corev1.TLSPrivateKeyKey]
	return cert && key
}

// podCA returns the authorities that the Ingress names for its pods, "" for none.
func (in *Input) podCA() string {
	name := in.Ingress.Annotations[ingress.AnnotationPodCA]
	if name == "" {
		return ""
	}
	if s := in.Secret(name); s != nil && (s.Type == corev1.SecretTypeTLS || s.Type == corev1.SecretTypeOpaque) {
		return string(s.Data[corev1.TLSCertKey])
	}
	return ""
}
