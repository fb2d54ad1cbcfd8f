package controller

import (
	"fmt"
	"maps"
	"reflect"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"turnout/controller/admit"
	"turnout/controller/source"
)

// tlsState is what was found out about the TLS settings of a route. It is kept, because
// reading certificates is most of the work for a route.
type tlsState struct {
	in      *routev1.TLSConfig // as in the object
	secret  *corev1.Secret     // external certificate it was merged with
	done    bool
	verdict admit.Verdict
	out     *routev1.TLSConfig // as to be used; nil = plain HTTP
	notes   []string
	good    *routev1.TLSConfig // the last out that was admitted with a secret of that name
	goodIn  *routev1.TLSConfig // the in of good
	name    string             // of the secret
}

// tlsOf returns the TLS settings of a route as they are to be used; r.tls.verdict says
// whether they can be.
func (s *state) tlsOf(r *route) *routev1.TLSConfig {
	in := r.object.Spec.TLS
	name := s.externalName(in)
	var object *corev1.Secret
	if name == "" {
		s.useSecret(r, nil)
	} else {
		s.useSecret(r, s.secretOf(source.Key{Namespace: r.key.Namespace, Name: name}))
		object = r.secret.object
	}
	t := &r.tls
	if t.done && sameSecret(t.secret, object) && t.name == name && (t.in == in || reflect.DeepEqual(t.in, in)) {
		t.in, t.secret = in, object
		return t.out
	}
	if t.name != name {
		t.good = nil
	}
	t.in, t.secret, t.name, t.done, t.notes = in, object, name, true, nil
	merged := in
	if name != "" {
		if merged, t.verdict = withSecret(in, name, object); !t.verdict.Admitted {
			t.out, t.good = nil, nil
			return nil
		}
	}
	t.out, t.verdict = merged, admit.Verdict{Admitted: true}
	if !s.cfg.Options.SkipExtendedValidation {
		t.out, t.verdict = admit.TLS(merged, s.cfg.Clock())
	}
	if name == "" {
		return t.out
	}
	switch {
	case t.verdict.Admitted:
		t.good, t.goodIn = t.out, in
	case t.good != nil && reflect.DeepEqual(t.goodIn, in):
		// A secret that is written in parts is seen torn: what was good goes on.
		t.notes = []string{fmt.Sprintf("secret %s holds no usable certificate, the last good one is served: %s", name, t.verdict.Message)}
		t.out, t.verdict = t.good, admit.Verdict{Admitted: true}
	default:
		t.verdict.Reason = admit.ReasonExternalInvalid
	}
	return t.out
}

// externalName returns the name of the secret with the certificate, "" for none.
func (s *state) externalName(tls *routev1.TLSConfig) string {
	if tls == nil || tls.ExternalCertificate == nil || s.cfg.Options.SkipExternalCertificate {
		return ""
	}
	return tls.ExternalCertificate.Name
}

func sameSecret(a, b *corev1.Secret) bool {
	if a == b {
		return true
	}
	return a != nil && b != nil && a.Type == b.Type && maps.EqualFunc(a.Data, b.Data, func(x, y []byte) bool { return string(x) == string(y) })
}

// withSecret returns TLS settings with the certificate of a secret.
func withSecret(in *routev1.TLSConfig, name string, object *corev1.Secret) (*routev1.TLSConfig, admit.Verdict) {
	path := field.NewPath("spec", "tls", "externalCertificate")
	var err *field.Error
	switch {
	case object == nil:
		err = field.NotFound(path, fmt.Sprintf("secrets %q not found", name))
	case object.Type != corev1.SecretTypeTLS:
		err = field.Invalid(path, name, fmt.Sprintf("secret of type %q required", corev1.SecretTypeTLS))
	case len(object.Data[corev1.TLSCertKey]) == 0 || len(object.Data[corev1.TLSPrivateKeyKey]) == 0:
		// Not a refusal of its own: the examination of the settings says what is missing,
		// and a certificate that was good before goes on.
	}
	if err != nil {
		return nil, admit.Verdict{Reason: admit.ReasonExternalInvalid, Message: err.Error()}
	}
	out := in.DeepCopy()
	out.Certificate = string(object.Data[corev1.TLSCertKey])
	out.Key = string(object.Data[corev1.TLSPrivateKeyKey])
	return out, admit.Verdict{Admitted: true}
}
