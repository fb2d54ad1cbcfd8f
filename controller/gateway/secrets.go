package gateway

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
	"turnout/internal/keypair"
	"turnout/routing"
	"turnout/tlsmux/clientcert"
)

// caKey is the key of a ConfigMap that has authorities.
const caKey = "ca.crt"

// refError says why a reference cannot be resolved. They are of three kinds, which each place has its own reasons for.
type refError struct {
	notPermitted bool
	badKind      bool
	message      string
}

func (e *refError) Error() string { return e.message }

// secret returns the certificate that an object of the Gateway API refers to.
func (j *Judge) secret(o *Objects, kind, namespace string, ref *gatewayv1.SecretObjectReference) (*routing.CertificateSpec, *refError) {
	if value(ref.Group, "") != "" || value(ref.Kind, "Secret") != "Secret" {
		return nil, &refError{badKind: true, message: fmt.Sprintf("certificate reference %s is a %s of group %q; allowed is a Secret", ref.Name, value(ref.Kind, "Secret"), value(ref.Group, ""))}
	}
	key := source.Key{Namespace: string(value(ref.Namespace, gatewayv1.Namespace(namespace))), Name: string(ref.Name)}
	if !j.permitted(kind, namespace, "Secret", key) {
		return nil, &refError{notPermitted: true, message: fmt.Sprintf("no ReferenceGrant of namespace %s lets a %s of namespace %s refer to Secret %s", key.Namespace, kind, namespace, key.Name)}
	}
	j.refs.secrets[key] = struct{}{}
	object := o.Secrets.Get(key)
	if object == nil {
		return nil, &refError{message: "Secret " + key.String() + " does not exist"}
	}
	known, ok := j.certificates[key]
	if !ok || known.object != object {
		known = certificate{object: object}
		known.spec, known.err = parseCertificate(object)
		j.certificates[key] = known
	}
	if known.err != nil {
		return nil, &refError{message: fmt.Sprintf("Secret %s: %v", key, known.err)}
	}
	return known.spec, nil
}

// certificate is what was read of a Secret.
type certificate struct {
	object *corev1.Secret
	spec   *routing.CertificateSpec
	err    error
}

// parseCertificate reads a Secret of type kubernetes.io/tls.
func parseCertificate(object *corev1.Secret) (*routing.CertificateSpec, error) {
	text, key := object.Data[corev1.TLSCertKey], object.Data[corev1.TLSPrivateKeyKey]
	pair, err := keypair.Parse(text, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s are no certificate with its key: %w", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err)
	}
	return &routing.CertificateSpec{Certificate: string(text), Key: string(key), Leaf: keypair.LeafOf(pair.Leaf)}, nil
}

// authorities returns the text of the authorities that an object refers to.
func (j *Judge) authorities(o *Objects, kind, namespace string, group gatewayv1.Group, refKind gatewayv1.Kind, key source.Key) (string, *refError) {
	if group != "" || refKind != "ConfigMap" {
		return "", &refError{badKind: true, message: fmt.Sprintf("CA reference %s is a %s of group %q; allowed is a ConfigMap", key.Name, refKind, group)}
	}
	if !j.permitted(kind, namespace, "ConfigMap", key) {
		return "", &refError{notPermitted: true, message: fmt.Sprintf("no ReferenceGrant of namespace %s lets a %s of namespace %s refer to ConfigMap %s", key.Namespace, kind, namespace, key.Name)}
	}
	j.refs.configMaps[key] = struct{}{}
	object := o.ConfigMaps.Get(key)
	if object == nil {
		return "", &refError{message: "ConfigMap " + key.String() + " does not exist"}
	}
	text := object.Data[caKey]
	known, ok := j.bundles[key]
	if !ok || known.object != object {
		known.object = object
		_, known.err = clientcert.ParseBundle([]byte(text))
		j.bundles[key] = known
	}
	if known.err != nil {
		return "", &refError{message: fmt.Sprintf("key %s of ConfigMap %s: %v", caKey, key, known.err)}
	}
	return text, nil
}

// bundle is whether the authorities of a ConfigMap can be used.
type bundle struct {
	object *corev1.ConfigMap
	err    error
}
