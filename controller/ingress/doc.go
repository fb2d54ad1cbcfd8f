// Package ingress says what Ingresses of networking.k8s.io/v1 mean: which of them a router serves, and by which rules. It does no I/O, and its
// results depend on its input alone.
//
//	Ingress + IngressClasses ─► Classes.Serves: is it ours
//	Ingress + Services       ─► Expand: one Rule per host and path, and what cannot be served
//
// A rule carries an OpenShift Route that nobody has written: admission, annotations, certificates, endpoints, status and explanations know Routes,
// and what an Ingress asks for is done by the same code. What a Route cannot say is beside it: how the path is compared, that the rule is for any
// host, that it comes after all others.
//
// A host of an Ingress has the paths that its rules give it, and the default backend for the rest. A host that only spec.tls names gets
// the rules that cover it, a wildcard's or those for any host, once more under its own name, so that it has its own certificate.
package ingress
