package explain

import (
	"turnout/proxy"
	"turnout/routing"
)

// Words of findings that no request ends with, and of candidates that are not in the table. Those of requests are proxy.Reasons, those of
// other candidates routing.Lost.
const (
	ReasonRejected     = "rejected"               // admission refuses the route
	ReasonOlderClaim   = "older-claim"            // another route has the host, or host and path, and is older
	ReasonWaiting      = "waiting"                // the route is not decided yet: its Secret has not come
	ReasonNotSelected  = "namespace-not-selected" // its namespace has not the labels that this router serves
	ReasonOtherShard   = "other-shard"            // it has not the labels that this router serves
	ReasonGateway      = "gateway"                // a Gateway, or a listener of it, is not served, or not as it asks
	ReasonReference    = "reference"              // something that a route of the Gateway API refers to cannot be used
	ReasonScheme       = "scheme"                 // the client speaks TLS to a port without, or the other way round
	reasonExpired      = "certificate-expired"
	reasonExpiring     = "certificate-expires"
	reasonNotYetValid  = "certificate-not-yet-valid"
	reasonForeign      = "certificate-name" // it is not for the host
	reasonEndpointDown = "endpoint-down"
	reasonEjected      = "endpoint-ejected"
	reasonNote         = "no-effect" // something of the route has no effect
)

// meanings are all reasons that explain names, each with what it means; for the words of the access log how the request ends.
var meanings = []struct{ reason, text string }{
	{proxy.ReasonOK.String(), "the pod answers"},
	{proxy.ReasonRedirect.String(), "the router redirects to https, because the route's insecureEdgeTerminationPolicy is Redirect"},
	{proxy.ReasonNoRoute.String(), "no route takes this host, path and scheme"},
	{proxy.ReasonNoEndpoint.String(), "the route has no pod that could be sent the request: no service, no ready pod, or no port of that name"},
	{proxy.ReasonBadRequest.String(), "the request breaks the grammar of HTTP"},
	{proxy.ReasonRefused.String(), "the router does not serve this method"},
	{proxy.ReasonConnect.String(), "no pod could be connected"},
	{proxy.ReasonUpstreamReset.String(), "the pod broke off before or within its answer"},
	{proxy.ReasonUpstreamHead.String(), "the pod's answer breaks the grammar of HTTP"},
	{proxy.ReasonServerTimeout.String(), "the pod was silent for the server timeout"},
	{proxy.ReasonClientTimeout.String(), "the client was silent in the middle of its request"},
	{proxy.ReasonClientGone.String(), "the client left before the answer was complete"},
	{proxy.ReasonTunnelClosed.String(), "the tunnel has ended"},
	{proxy.ReasonShutdown.String(), "the router stops"},
	{proxy.ReasonDenied.String(), "the connection ends without an answer: the route's allow-list does not have the client's address"},
	{proxy.ReasonRateLimited.String(), "the connection ends without an answer: the client's address is above the limits of the route"},
	{proxy.ReasonRewrite.String(), "header actions or rewrite-target make the head larger than it may be"},
	{proxy.ReasonMonitor.String(), "the router answers itself: it is the path by which load balancers ask whether it serves"},
	{proxy.ReasonTargetSize.String(), "the request target is too long"},
	{proxy.ReasonHeadSize.String(), "the request head is too long or has too many fields"},
	{proxy.ReasonUnsupported.String(), "the request asks for an expectation, transfer coding, version or protocol that is not served"},
	{proxy.ReasonMisdirected.String(), "the host is not served on this connection, because its certificate or TLS belongs to another one; clients come again on a new connection"},
	{proxy.ReasonFlood.String(), "the client asks for more than its share"},
	{proxy.ReasonUpstreamTLS.String(), "no TLS session with a pod came about: its certificate is not trusted, or it speaks no TLS"},
	{proxy.ReasonQueueTimeout.String(), "all pods have as many requests as they may have, for longer than the connect timeout"},
	{proxy.ReasonContentSize.String(), "what frames the body is larger than it may be"},
	{proxy.ReasonInternal.String(), "the router fails over this message; its log says more"},
	{proxy.ReasonSubject.String(), "the subject filter does not let the client's certificate in"},
	{proxy.ReasonOverload.String(), "the router has too much to do for new work"},
	{proxy.ReasonRouteShare.String(), "the route has its share of connections, and few are left for others"},
	{proxy.ReasonLoop.String(), "the request has been at this router too often: a route leads back to it"},
	{proxy.ReasonRequestTimeout.String(), "the exchange takes longer than the route allows"},
	{proxy.ReasonPreflight.String(), "the router answers what pages of other origins may do, by the CORS rule of the route"},
	{proxy.ReasonBackend.String(), "what the route names as a backend cannot be used: it does not exist, or may not be referred to"},
	{proxy.ReasonMatchWork.String(), "the rules of the host or of the route take more work than a request may"},

	{routing.LostPath.String(), "the path of the route does not cover that of the request"},
	{routing.LostMethod.String(), "the route is for another method"},
	{routing.LostHeader.String(), "the route asks for a header field that the request does not have so"},
	{routing.LostQuery.String(), "the route asks for a query parameter that the request does not have so"},
	{routing.LostPort.String(), "the route is not served at this scheme"},
	{routing.LostRedirect.String(), "the route redirects at this scheme, and another one comes before it"},
	{routing.LostWildcard.String(), "a route of the exact host comes before a wildcard"},
	{routing.LostHost.String(), "a route that is for all hosts does not serve those that others name"},
	{routing.LostListener.String(), "a more specific listener of the port has the host to itself"},
	{routing.LostConnection.String(), "the connection was made for another host, which has a listener, or asks clients for a certificate, of its own"},
	{routing.LostWork.String(), "the rule was not decided: rules of its namespace take more work than a request may"},
	{routing.LostOrder.String(), "a route with a longer path, or an older one, comes before it"},

	{ReasonRejected, "the route is not admitted"},
	{ReasonOlderClaim, "an older route has the host"},
	{ReasonWaiting, "the route waits for its Secret"},
	{ReasonNotSelected, "the namespace of the route is not one that this router serves"},
	{ReasonOtherShard, "the route has not the labels that this router serves"},
	{ReasonGateway, "a Gateway, or a listener of it, is not served, or not as it asks"},
	{ReasonReference, "something that a route of the Gateway API refers to cannot be used"},
	{ReasonScheme, "the client speaks TLS to a port without, or does not to a port with it"},
	{reasonNoCertificate, "the handshake fails: there is no certificate for the server name"},
	{reasonExpired, "the certificate has expired: clients refuse it"},
	{reasonExpiring, "the certificate expires within a week"},
	{reasonNotYetValid, "the certificate is not valid yet: clients refuse it"},
	{reasonForeign, "the certificate is not for the host: clients refuse it"},
	{reasonEndpointDown, "health checks of a pod fail"},
	{reasonEjected, "a pod gets no requests for a while, because requests to it failed"},
	{reasonNote, "something of the route has no effect"},
}

// Reasons are all words that explanations name, each once.
func Reasons() []string {
	all := make([]string, len(meanings))
	for i, m := range meanings {
		all[i] = m.reason
	}
	return all
}

// meaning is what a reason means, "" for one that is not known.
func meaning(reason string) string {
	for _, m := range meanings {
		if m.reason == reason {
			return m.text
		}
	}
	return ""
}

// help is where the documentation says more about a reason.
func help(reason string) string { return "docs/troubleshooting.md#" + reason }
