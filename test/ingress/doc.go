// Package ingress holds the tests of Ingresses through the assembled router: the 25 scenarios of the Kubernetes ingress conformance project, and what
// else an Ingress means to clients and pods. Annotations of the router's own are tested there on an Ingress and on a Route. Objects are manifests, pods are servers of
// net/http on loopback.
package ingress
