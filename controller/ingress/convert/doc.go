// Package convert says which Routes OpenShift makes of an Ingress: one for each host and path, owned by it and kept as the Ingress, its Services and
// its Secrets say. Objects in, a Plan out; it does no I/O and its result depends on its input alone.
//
// It does what the ingress-to-route controller of OpenShift does, but for mistakes of that: Routes of wildcards are not written again and again and
// have their part in the status of the Ingress; a Route whose caCertificate somebody has set neither; annotations can be added to a Route that has none; IP addresses
// in the status of an Ingress stay; two equal paths are not two Routes; an Ingress that was deleted and made again takes its Routes over.
package convert
