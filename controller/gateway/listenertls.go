package gateway

import (
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
	"turnout/routing"
	"turnout/tlsmux/clientcert"
)

// listenerTLS resolves what a listener says of TLS: its certificates, and what clients have to show.
func (j *Judge) listenerTLS(o *Objects, l *listener) {
	if !l.terminates() {
		return
	}
	var refs []gatewayv1.SecretObjectReference
	if l.spec.TLS != nil {
		refs = l.spec.TLS.CertificateRefs
	}
	for i := range refs {
		spec, err := j.secret(o, l.owner.Kind, l.owner.Namespace, &refs[i])
		if err == nil {
			l.certificates = append(l.certificates, spec)
			continue
		}
		reason := gatewayv1.ListenerReasonInvalidCertificateRef
		if err.notPermitted {
			reason = gatewayv1.ListenerReasonRefNotPermitted
		}
		l.unresolved(string(reason), err.message)
	}
	if len(refs) == 0 {
		l.unresolved(string(gatewayv1.ListenerReasonInvalidCertificateRef), "The listener ends TLS and has no certificate")
	}
	l.broken = l.broken || len(l.certificates) == 0
	if l.spec.Protocol == gatewayv1.HTTPSProtocolType {
		j.clientAuth(o, l)
	}
}

// validation is what a Gateway asks of clients on a port; nil = nothing.
func (g *gateway) validation(port gatewayv1.PortNumber) *gatewayv1.FrontendTLSValidation {
	if g.object.Spec.TLS == nil || g.object.Spec.TLS.Frontend == nil {
		return nil
	}
	f := g.object.Spec.TLS.Frontend
	for i := range f.PerPort {
		if f.PerPort[i].Port == port {
			return f.PerPort[i].TLS.Validation
		}
	}
	return f.Default.Validation
}

// clientAuth resolves what clients of a listener have to show. All listeners of a port ask the same, because a connection is asked before it is
// known which of them it is for.
func (j *Judge) clientAuth(o *Objects, l *listener) {
	v := l.gateway.validation(l.spec.Port)
	if v == nil {
		return
	}
	var texts []string
	var first *refError
	namespace := l.gateway.key.Namespace
	for i := range v.CACertificateRefs {
		ref := &v.CACertificateRefs[i]
		key := source.Key{Namespace: string(value(ref.Namespace, gatewayv1.Namespace(namespace))), Name: string(ref.Name)}
		text, err := j.authorities(o, kindGateway, namespace, ref.Group, ref.Kind, key)
		if err == nil {
			texts = append(texts, strings.TrimRight(text, "\n")+"\n")
			continue
		}
		if first == nil {
			first = err
		}
	}
	if first != nil {
		reason := gatewayv1.ListenerReasonInvalidCACertificateRef
		switch {
		case first.notPermitted:
			reason = gatewayv1.ListenerReasonRefNotPermitted
		case first.badKind:
			reason = gatewayv1.ListenerReasonInvalidCACertificateKind
		}
		l.unresolved(string(reason), first.message)
	}
	if len(texts) == 0 {
		l.broken = true
		l.reject(string(gatewayv1.ListenerReasonNoValidCACertificate), "No authority for client certificates can be used")
		return
	}
	l.auth = &routing.ClientAuthSpec{Mode: clientcert.Required, CA: strings.Join(texts, "")}
	if v.Mode == gatewayv1.AllowInsecureFallback {
		l.insecure, l.auth = true, &routing.ClientAuthSpec{Mode: clientcert.Unverified}
	}
}
