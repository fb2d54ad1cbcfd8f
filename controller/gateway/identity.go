package gateway

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/balancer"
	"turnout/routing"
)

// identity says as whom endpoints are recognised: by the host name, or by one of the alternative names instead.
func identity(config *balancer.TLSConfig, v *gatewayv1.BackendTLSPolicyValidation) {
	config.ServerName = string(v.Hostname)
}

// systemRoots has endpoints recognised by the authorities of the system.
func systemRoots(config *balancer.TLSConfig) {}

// clientCertificate has endpoints shown a certificate.
func clientCertificate(config *balancer.TLSConfig, certificate *routing.CertificateSpec) {}
