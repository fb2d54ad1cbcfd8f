package gateway

import (
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/features"

	"turnout/controller/source"
)

// standardFeatures are what is supported with the resources of the standard channel: status.supportedFeatures of our classes.
var standardFeatures = []features.FeatureName{
	features.SupportGateway, features.SupportReferenceGrant, features.SupportHTTPRoute, features.SupportGRPCRoute,
	features.SupportTLSRoute, features.SupportTCPRoute, features.SupportUDPRoute,

	features.SupportBackendTLSPolicy, features.SupportBackendTLSPolicySANValidation,
	features.SupportListenerSet,
	features.SupportTLSRouteModeTerminate, features.SupportTLSRouteModeMixed,

	features.SupportGatewayAddressEmpty, features.SupportGatewayStaticAddresses,
	features.SupportGatewayBackendClientCertificate,
	features.SupportGatewayFrontendClientCertificateValidation, features.SupportGatewayFrontendClientCertificateValidationInsecureFallback,
	features.SupportGatewayHTTPListenerIsolation, features.SupportGatewayHTTPSListenerDetectMisdirectedRequests,
	features.SupportGatewayInfrastructure, features.SupportGatewayPort8080,

	features.SupportHTTPRoute303RedirectStatusCode, features.SupportHTTPRoute307RedirectStatusCode, features.SupportHTTPRoute308RedirectStatusCode,
	features.SupportHTTPRouteBackendProtocolH2C, features.SupportHTTPRouteBackendProtocolWebSocket,
	features.SupportHTTPRouteBackendRequestHeaderModification,
	features.SupportHTTPRouteRequestTimeout, features.SupportHTTPRouteBackendTimeout,
	features.SupportHTTPRouteCORS,
	features.SupportHTTPRouteDestinationPortMatching, features.SupportHTTPRouteParentRefPort,
	features.SupportHTTPRouteHostRewrite, features.SupportHTTPRoutePathRewrite,
	features.SupportHTTPRouteMethodMatching, features.SupportHTTPRouteQueryParamMatching,
	features.SupportHTTPRouteNamedRouteRule, features.SupportGRPCRouteNamedRouteRule,
	features.SupportHTTPRoutePathRedirect, features.SupportHTTPRouteSchemeRedirect, features.SupportHTTPRoutePortRedirect,
	features.SupportHTTPRouteRequestMirror, features.SupportHTTPRouteRequestMultipleMirrors, features.SupportHTTPRouteRequestPercentageMirror,
	features.SupportHTTPRouteResponseHeaderModification,
}

// experimentalFeatures are what is supported besides with those of the experimental channel.
var experimentalFeatures = []features.FeatureName{
	features.SupportHTTPRouteRetry, features.SupportHTTPRouteRetryBackendTimeout, features.SupportHTTPRouteRetryConnectionError,
}

// featureKinds are the kinds that a cluster may lack. The names of the features that need one begin with it.
var featureKinds = []string{kindListenerSet, kindHTTPRoute, kindGRPCRoute, kindTLSRoute, kindTCPRoute, kindUDPRoute, kindGrant, kindPolicy}

// knows reports whether the cluster has what a feature needs.
func (o *Objects) knows(feature features.FeatureName) bool {
	for _, kind := range featureKinds {
		if strings.HasPrefix(string(feature), kind) {
			return o.Unknown.Get(source.Key{Name: kind}) == nil
		}
	}
	return true
}

// supportedFeatures returns what is supported, in the order of the names: of all features those that are known.
func supportedFeatures(experimental bool, known func(features.FeatureName) bool) []gatewayv1.SupportedFeature {
	names := slices.Clone(standardFeatures)
	if experimental {
		names = append(names, experimentalFeatures...)
	}
	names = slices.DeleteFunc(names, func(name features.FeatureName) bool { return !known(name) })
	slices.SortFunc(names, func(a, b features.FeatureName) int { return strings.Compare(string(a), string(b)) })
	list := make([]gatewayv1.SupportedFeature, 0, len(names))
	for _, name := range names {
		list = append(list, gatewayv1.SupportedFeature{Name: gatewayv1.FeatureName(name)})
	}
	return list
}
