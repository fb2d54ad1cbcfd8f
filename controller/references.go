package controller

import (
	"errors"
	"fmt"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"

	"turnout/controller/admit"
	"turnout/controller/source"
	"turnout/controller/translate"
	"turnout/internal/keypair"
	"turnout/routing"
	"turnout/tlsmux/clientcert"
)

// references are the Secrets that annotations of a route refer to.
type references struct {
	clients reference // authorities of clients
	pods    reference // the certificate that endpoints are shown
}

// reference is one of them.
type reference struct {
	secret *secret        // nil = there is none
	good   *corev1.Secret // what it was when it could last be used
}

// clientCAKey is the key of a Secret that has authorities.
const clientCAKey = corev1.ServiceAccountRootCAKey

// maxClientCA bounds the authorities of a route in bytes.
const maxClientCA = 256 << 10

// referAlso makes a route the user of the Secrets that its annotations name, if it is admitted, and of no others.
func (s *state) referAlso(r *route) {
	var names translate.Secrets
	if r.refused == nil {
		names = translate.SecretsOf(s.objectOf(r).Annotations)
	}
	if r.refs == nil {
		if names == (translate.Secrets{}) {
			return
		}
		r.refs = &references{}
	}
	s.useReference(r, &r.refs.clients, names.ClientCA)
	s.useReference(r, &r.refs.pods, names.PodCert)
	if r.refs.clients.secret == nil && r.refs.pods.secret == nil {
		r.refs = nil
	}
}

// useReference makes a reference of a route one to a Secret, "" for none. A name that can be none is the translator's business.
func (s *state) useReference(r *route, ref *reference, name string) {
	var v *secret
	if name != "" && translate.IsSecretName(name) {
		v = s.secretOf(source.Key{Namespace: r.key.Namespace, Name: name})
	}
	before := ref.secret
	if v == before {
		return
	}
	*ref = reference{secret: v}
	s.enterUser(r, v)
	s.leaveUser(r, before)
}

// enterUser makes a route a user of a secret, nil for none.
func (s *state) enterUser(r *route, v *secret) {
	if v == nil {
		return
	}
	if v.users == nil {
		v.users = make(map[*route]struct{})
	}
	v.users[r] = struct{}{}
	s.askAgain(v)
}

// leaveUser ends that, unless the route refers to the secret in another way.
func (s *state) leaveUser(r *route, v *secret) {
	if v == nil || r.secret == v || r.refs != nil && (r.refs.clients.secret == v || r.refs.pods.secret == v) {
		return
	}
	delete(v.users, r)
	s.unused[v] = struct{}{}
}

// found is what became of the references of a route.
type found struct {
	in      translate.Input // what of it the translator needs
	verdict admit.Verdict
	waiting bool // for a Secret that is not known yet
	late    bool // and did not come in time
}

// resolve looks at what the annotations of an admitted route refer to. Nobody is let in without the certificate that the owner of the route asks for: if it
// is not known what certificates of clients are judged by, the route is rejected. Without the certificate for endpoints these are not reached.
func (s *state) resolve(r *route, tls *routev1.TLSConfig) (f found) {
	f.verdict = admit.Verdict{Admitted: true}
	names := translate.SecretsOf(s.objectOf(r).Annotations)
	if names.ClientCA != "" {
		s.resolveClients(r, tls, names.ClientCA, &f)
	}
	if names.PodCert == "" || !f.verdict.Admitted || tls == nil || tls.Termination != routev1.TLSTerminationReencrypt {
		return f
	}
	if !translate.IsSecretName(names.PodCert) {
		f.in.PodCertProblem = fmt.Sprintf("%q is not the name of a Secret of the namespace", translate.Shown(names.PodCert))
		return f
	}
	object, why := s.look(&r.refs.pods, &f, checkPodCert)
	if f.in.PodCertProblem = why; f.waiting && !f.late {
		f.verdict = admit.Verdict{Reason: admit.ReasonExternalGetFailed, Message: why}
	}
	if object != nil {
		f.in.PodCert = routing.CertificateSpec{Certificate: string(object.Data[corev1.TLSCertKey]), Key: string(object.Data[corev1.TLSPrivateKeyKey])}
	}
	return f
}

// resolveClients finds what certificates of clients are judged by.
func (s *state) resolveClients(r *route, tls *routev1.TLSConfig, name string, f *found) {
	reject := func(format string, args ...any) {
		f.verdict = admit.Verdict{Reason: routing.ReasonClientAuth, Message: "annotation turnout.router/client-ca: " + fmt.Sprintf(format, args...)}
	}
	switch {
	case s.cfg.Options.AsksClients:
		reject("the router asks clients of all hosts for a certificate (--mutual-tls-auth), which no route may change")
		return
	case !translate.Terminates(tls):
		reject("clients can be asked for a certificate only where TLS ends at the router: with termination edge or reencrypt")
		return
	case !translate.IsSecretName(name):
		reject("%q is not the name of a Secret of the namespace", translate.Shown(name))
		return
	}
	object, why := s.look(&r.refs.clients, f, checkClientCA)
	switch {
	case object != nil:
		f.in.ClientCA = string(object.Data[clientCAKey])
	case s.cfg.Options.KeepWithoutSecret && r.refs.clients.secret.object == nil:
		f.waiting = false
		f.in.Notes = append(f.in.Notes, fmt.Sprintf("secret %q cannot be read, so that the authorities of clients are not checked: %s", name, why))
	default:
		reject("%s", why)
	}
}

// look returns what a reference leads to, or why that cannot be used. What makes it unusable for a moment leaves in use what was good, with a
// note; what is not there, or not allowed, does not.
func (s *state) look(ref *reference, f *found, check func(*corev1.Secret) error) (object *corev1.Secret, why string) {
	v := ref.secret
	var denied *source.DeniedError
	var problem error
	switch {
	case !v.known:
		f.waiting, f.late = true, f.late || v.late
		return nil, fmt.Sprintf("secret %q could not be read yet", v.key.Name)
	case errors.As(v.err, &denied):
		ref.good = nil
		return nil, fmt.Sprintf("the router's service account may not %s secret %q", strings.Join(denied.Verbs, ", "), v.key.Name)
	case v.err != nil:
		problem = v.err
	case v.object == nil:
		ref.good = nil
		return nil, fmt.Sprintf("secret %q does not exist", v.key.Name)
	default:
		if problem = check(v.object); problem == nil {
			ref.good = v.object
			return v.object, ""
		}
	}
	why = fmt.Sprintf("secret %q: %v", v.key.Name, problem)
	if ref.good == nil {
		return nil, why
	}
	f.in.Notes = append(f.in.Notes, "what was last good is used: "+why)
	return ref.good, ""
}

// checkClientCA fails for a Secret without authorities that can be used.
func checkClientCA(object *corev1.Secret) error {
	text := object.Data[clientCAKey]
	if len(text) > maxClientCA {
		return fmt.Errorf("%s is longer than %d bytes", clientCAKey, maxClientCA)
	}
	if _, err := clientcert.ParseBundle(text); err != nil {
		return fmt.Errorf("%s: %w", clientCAKey, err)
	}
	return nil
}

// checkPodCert fails for a Secret that is no certificate with its key.
func checkPodCert(object *corev1.Secret) error {
	if object.Type != corev1.SecretTypeTLS {
		return fmt.Errorf("it is of type %s, and not %s", object.Type, corev1.SecretTypeTLS)
	}
	_, err := keypair.Parse(object.Data[corev1.TLSCertKey], object.Data[corev1.TLSPrivateKeyKey])
	return err
}
