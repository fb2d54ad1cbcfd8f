// Package zones says which names of DNS there are, by Routers and RouteBindings. It is a function of these: the domain of each Router is a zone,
// whose names lead to the Router, but for names of routes that are served elsewhere.
//
//	Routers, RouteBindings ──Make──► Shards ──┬──Set──► zone.Set
//	                                          └──Endpoints──► DNSEndpoint objects
//
// A route keeps its name when it moves. As long as it is not served where its name leads by itself, the name is there with the addresses of
// who serves it. A host that a user has asked for is such a name, too, if it lies in a domain of a Router.
package zones
