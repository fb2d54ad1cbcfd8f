package translate

import (
	"fmt"
	"strings"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/balancer"
	"turnout/internal/wire/field"
	"turnout/routing"
	"turnout/tlsmux/clientcert"
)

// The annotations about certificates that are shown by clients and to endpoints. Secrets are always those of the route's namespace.
const (
	annotationClientCA   = "turnout.router/client-ca"
	annotationClientAuth = "turnout.router/client-auth"
	annotationPodCert    = "turnout.router/backend-client-certificate"
	annotationPodNames   = "turnout.router/backend-names"
)

// Secrets are the names of Secrets that annotations refer to; "" = none.
type Secrets struct {
	ClientCA string // what certificates of clients are judged by
	PodCert  string // what is shown to endpoints
}

// SecretsOf returns the Secrets that annotations name, as they are written: see IsSecretName.
func SecretsOf(annotations map[string]string) Secrets {
	return Secrets{ClientCA: annotations[annotationClientCA], PodCert: annotations[annotationPodCert]}
}

// IsSecretName reports what can be the name of a Secret (RFC 1123): it leads to no other namespace.
func IsSecretName(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		for i := range len(label) {
			if c := label[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && (c != '-' || i == 0 || i == len(label)-1) {
				return false
			}
		}
		if label == "" {
			return false
		}
	}
	return len(name) <= 253
}

// Terminates reports that TLS of clients ends at the router, so that it sees their certificates.
func Terminates(tls *routev1.TLSConfig) bool {
	term, _ := termination(tls)
	return term == routing.TermEdge || term == routing.TermReencrypt
}

// clientAuth returns what clients have to show, nil = what the router asks of all. Without a certificate nobody may come by plain HTTP where one
// is required.
func (a *annotations) clientAuth(in *Input, spec *routing.RouteSpec) *routing.ClientAuthSpec {
	mode := clientcert.Required
	switch value, ok := a.values[annotationClientAuth]; {
	case !ok || value == "required":
	case value == "optional":
		mode = clientcert.Optional
	default:
		a.invalid(annotationClientAuth, value, "is not required or optional", "required")
	}
	if a.values[annotationClientCA] == "" {
		a.without(annotationClientCA, annotationClientAuth)
		return nil
	}
	if mode == clientcert.Required && spec.Insecure == routing.InsecureAllow {
		spec.Insecure = routing.InsecureNone
		a.notes = append(a.notes, fmt.Sprintf("annotation %s: plain requests, which bring no certificate, are not served although the policy is Allow", annotationClientCA))
	}
	if in.ClientCA == "" {
		return nil // Secrets are not looked at
	}
	return &routing.ClientAuthSpec{Mode: mode, CA: in.ClientCA}
}

// podIdentity is how endpoints of a re-encrypt route are recognised, and recognise the router, besides their authorities.
type podIdentity struct {
	names     []balancer.SubjectAltName
	cert, key string
	problem   string // why they cannot be reached
}

// podIdentity reads annotations for endpoints.
func (a *annotations) podIdentity(in *Input, term routing.Termination) (id podIdentity) {
	if term != routing.TermReencrypt {
		a.unused(term.String(), annotationPodCert, annotationPodNames)
		return id
	}
	if a.values[annotationPodCert] != "" {
		id.cert, id.key, id.problem = in.PodCert.Certificate, in.PodCert.Key, in.PodCertProblem
		if id.problem != "" {
			id.problem = "annotation " + annotationPodCert + ": " + id.problem
		}
	}
	if a.values[annotationPodNames] == "" {
		return id
	}
	for _, word := range a.words(annotationPodNames, "a host name or an address such as spiffe://a.example/b", isPodName) {
		name := balancer.SubjectAltName{DNS: strings.ToLower(word)}
		if strings.Contains(word, ":") {
			name = balancer.SubjectAltName{URI: word}
		}
		id.names = append(id.names, name)
	}
	if len(id.names) == 0 && id.problem == "" {
		id.problem = "annotation " + annotationPodNames + ": no valid entry"
	}
	return id
}

// isPodName reports a name that a certificate may be for: that of a host, perhaps with a first label of "*", or a URI.
func isPodName(s string) bool {
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		return field.IsToken(scheme) && rest != "" && len(s) <= maxRedirect && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
	}
	host := strings.TrimPrefix(s, "*.")
	return isAuthority(host) && !strings.ContainsAny(host, ":[_")
}

// apply completes the way that TLS is done to endpoints.
func (id *podIdentity) apply(a *annotations, config *balancer.TLSConfig) {
	config.CertPEM, config.KeyPEM = id.cert, id.key
	if len(id.names) == 0 {
		return
	}
	if !config.Verify {
		a.once("annotation " + annotationPodNames + ": has no effect: without a destinationCACertificate endpoints are not verified")
		return
	}
	config.SubjectAltNames = id.names
	for _, name := range id.names {
		if name.DNS != "" && !strings.HasPrefix(name.DNS, "*") {
			config.SNI = name.DNS
			return
		}
	}
}
