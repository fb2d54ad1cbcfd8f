// Package origin holds the cases that OpenShift's own suites have for the router: those of
// openshift/origin (test/extended/router) and of the ingress operator's end-to-end tests, by
// the names they have there, as far as they say something about a router. What each asserts
// there and here stands in docs/cases.md, which a test of internal/archtest compares with
// the functions of this package.
//
// All cases run in one stand-in cluster (package turnout/test/cluster), at the same time.
// Each has a namespace; its routes have the label shard with the name of the router that
// shall serve them, and routers select by it. A router is a Deployment of turnout's image;
// cases that need the same settings share one.
//
// Clients are this process, which stands in the network of the cluster's nodes, or pods of
// the image echo (internal/echo), where it matters who asks.
package origin
