package gateway

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/balancer"
)

// identity says as whom endpoints are recognised: by the host name, or by one of the alternative names instead. It returns false if it is not known
// how one of them is compared.
func identity(config *balancer.TLSConfig, v *gatewayv1.BackendTLSPolicyValidation) bool {
	if len(v.SubjectAltNames) == 0 {
		config.ServerName = string(v.Hostname)
		return true
	}
	for _, name := range v.SubjectAltNames {
		switch name.Type {
		case gatewayv1.HostnameSubjectAltNameType:
			config.SubjectAltNames = append(config.SubjectAltNames, balancer.SubjectAltName{DNS: string(name.Hostname)})
		case gatewayv1.URISubjectAltNameType:
			config.SubjectAltNames = append(config.SubjectAltNames, balancer.SubjectAltName{URI: string(name.URI)})
		default:
			return false
		}
	}
	return true
}
