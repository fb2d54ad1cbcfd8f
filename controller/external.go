package controller

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"turnout/controller/admit"
	"turnout/controller/source"
	"turnout/internal/bound"
	"turnout/internal/keypair"
)

// tlsState is what was found out about the TLS settings of a route. It is kept, because
// reading certificates is most of the work for a route.
type tlsState struct {
	done    bool
	in      *routev1.TLSConfig // as in the object
	from    external           // what it was merged with
	waiting bool               // the secret is not known yet; the rest is nothing then
	verdict admit.Verdict
	out     *routev1.TLSConfig // as to be used; nil = plain HTTP
	leaf    *keypair.Leaf      // of the certificate in out, until a table has it; nil = who needs it reads it
	notes   []string
	// good is what the secret in from was when it last gave a certificate that can be
	// used; nil = it did not since it was there.
	good *corev1.Secret
}

// external is what is known about the secret with the certificate of a route.
type external struct {
	name        string // "" = the route refers to none
	object      *corev1.Secret
	err         error
	known, late bool
}

func (a *external) equal(b *external) bool {
	return a.name == b.name && a.known == b.known && a.late == b.late && sameSecret(a.object, b.object) && sameError(a.err, b.err)
}

// tlsOf returns the TLS settings of a route as they are to be used; r.tls says whether
// they can be. The route uses its secret already, see refer.
func (s *state) tlsOf(r *route) *routev1.TLSConfig {
	in := r.kept.tls
	if in == nil && r.secret == nil {
		r.tls = &s.plain
		return nil
	}
	var from external
	if v := r.secret; v != nil {
		from = external{name: v.key.Name, object: v.object, err: v.err, known: v.known, late: v.late}
	}
	if r.tls == &s.plain {
		r.tls = new(tlsState)
	}
	t := r.tls
	if t.done && t.from.equal(&from) && (t.in == in || reflect.DeepEqual(t.in, in)) {
		t.in, t.from = in, from
		return t.out
	}
	good := t.good
	*t = tlsState{done: true, in: in, from: from}
	switch {
	case from.name == "":
		t.out, t.leaf, t.verdict = s.checkTLS(in)
	case !from.known:
		t.waiting, t.good = true, good
		t.verdict = admit.Verdict{Reason: admit.ReasonExternalGetFailed, Message: fmt.Sprintf("secret %q could not be read yet", from.name)}
	default:
		s.useExternal(t, good)
	}
	if r.rule != nil && !t.verdict.Admitted && (!t.waiting || from.late) {
		s.useDefault(t)
	}
	return t.out
}

// useDefault has the host of an Ingress served with the default certificate, because its own cannot be used.
func (s *state) useDefault(t *tlsState) {
	why := t.verdict.Message
	var denied *source.DeniedError
	switch from := &t.from; {
	case errors.As(from.err, &denied):
		why = fmt.Sprintf("the router's service account may not %s it", strings.Join(denied.Verbs, ", "))
	case from.err != nil:
		why = from.err.Error()
	case !from.known:
		why = "it could not be read yet"
	case from.object == nil:
		why = "it does not exist"
	case from.object.Type != corev1.SecretTypeTLS:
		why = fmt.Sprintf("it is of type %s, and not %s", from.object.Type, corev1.SecretTypeTLS)
	}
	why = fmt.Sprintf("the default certificate is served instead of that of Secret %s: %s", t.from.name, why)
	t.waiting = false
	if t.out, t.leaf, t.verdict = s.checkTLS(t.in); t.verdict.Admitted {
		t.notes = []string{why}
	}
}

// useExternal merges t.in with the secret in t.from. What makes a certificate unusable
// for a moment, such as a secret written in two steps, leaves the last good one in use
// and says so; a secret that is not there or not allowed does not.
func (s *state) useExternal(t *tlsState, good *corev1.Secret) {
	if t.verdict = refusal(&t.from); !t.verdict.Admitted || t.from.err != nil {
		if s.cfg.Options.KeepWithoutSecret && t.from.object == nil {
			s.keepWithout(t)
			return
		}
	}
	if !t.verdict.Admitted {
		return
	}
	if t.from.err == nil {
		if t.out, t.leaf, t.verdict = s.merge(t.in, t.from.object); t.verdict.Admitted {
			t.good = t.from.object
			return
		}
		t.verdict.Reason = admit.ReasonExternalInvalid
	} else {
		t.verdict = admit.Verdict{Reason: admit.ReasonExternalGetFailed, Message: t.from.err.Error()}
	}
	t.out, t.leaf = nil, nil
	if good == nil {
		return
	}
	if out, leaf, v := s.merge(t.in, good); v.Admitted {
		t.out, t.leaf, t.good = out, leaf, good
		t.verdict.Admitted = true
		t.verdict.Message = fmt.Sprintf("the last good certificate of secret %q is served: %s", t.from.name, t.verdict.Message)
		t.notes = []string{t.verdict.Message}
	}
}

// keepWithout checks what there is of TLS settings whose secret is not known.
func (s *state) keepWithout(t *tlsState) {
	why := "it is not there"
	if t.from.err != nil {
		why = t.from.err.Error()
	}
	if t.out, t.leaf, t.verdict = s.checkTLS(t.in); t.verdict.Admitted {
		t.notes = []string{fmt.Sprintf("secret %q cannot be read, so that its certificate is not checked: %s", t.from.name, why)}
	}
}

// merge returns TLS settings with the certificate of a secret, checked.
func (s *state) merge(in *routev1.TLSConfig, object *corev1.Secret) (*routev1.TLSConfig, *keypair.Leaf, admit.Verdict) {
	merged := *in
	merged.Certificate, merged.Key = string(object.Data[corev1.TLSCertKey]), string(object.Data[corev1.TLSPrivateKeyKey])
	out, leaf, v := s.checkTLS(&merged)
	if !v.Admitted {
		return nil, nil, v
	}
	var err error
	switch {
	case out.Certificate == "":
		err = errors.New("it holds no certificate")
	case s.cfg.Options.SkipExtendedValidation: // what is served must work all the same
		_, err = keypair.Parse([]byte(out.Certificate), []byte(out.Key))
	}
	if err != nil {
		if errors.Is(err, keypair.ErrLongChain) {
			s.cfg.Bounds.Reached(bound.CertificateChain)
		}
		return nil, nil, admit.Verdict{Message: fmt.Sprintf("secret %q: %v", object.Name, err)}
	}
	return out, leaf, v
}

// checkTLS examines TLS settings, unless that is switched off. What was read for it is garbage when it returns: a batch may have tens
// of thousands of certificates, which take 5 to 10 KB each.
func (s *state) checkTLS(in *routev1.TLSConfig) (*routev1.TLSConfig, *keypair.Leaf, admit.Verdict) {
	if s.cfg.Options.SkipExtendedValidation {
		return in, nil, admit.Verdict{Admitted: true}
	}
	out, parsed, v := admit.TLS(in, s.cfg.Clock(), &s.authorities)
	if v.LongChain {
		s.cfg.Bounds.Reached(bound.CertificateChain)
	}
	if out != nil && *out == *in {
		out = in // once
	}
	if parsed == nil {
		return out, nil, v
	}
	return out, keypair.LeafOf(parsed.Leaf), v
}

// secretName returns the name of the secret with the certificate of a route, "" for none.
func (s *state) secretName(r *route) string {
	tls := r.kept.tls
	if r.rule != nil && tls != nil && tls.ExternalCertificate != nil {
		return tls.ExternalCertificate.Name // Ingresses know no other way
	}
	return s.externalName(tls)
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

func sameError(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return reflect.TypeOf(a) == reflect.TypeOf(b) && a.Error() == b.Error()
}

// refusal returns why a route may not use a secret, whatever its content.
func refusal(from *external) admit.Verdict {
	path := field.NewPath("spec", "tls", "externalCertificate")
	var errs field.ErrorList
	var denied *source.DeniedError
	switch {
	case errors.As(from.err, &denied):
		for _, verb := range denied.Verbs {
			errs = append(errs, field.Forbidden(path, "router serviceaccount does not have permission to "+verb+" this secret"))
		}
	case from.err != nil:
	case from.object == nil:
		errs = append(errs, field.NotFound(path, fmt.Sprintf("secrets %q not found", from.name)))
	case from.object.Type != corev1.SecretTypeTLS:
		errs = append(errs, field.Invalid(path, from.name, fmt.Sprintf("secret of type %q required", corev1.SecretTypeTLS)))
	}
	if len(errs) > 0 {
		return admit.Verdict{Reason: admit.ReasonExternalInvalid, Message: errs.ToAggregate().Error()}
	}
	return admit.Verdict{Admitted: true}
}
