// Package routing turns plain data into an immutable table that says which route
// serves a request.
//
// The table is made of rules: requests of a host that match go to the servers of a pool. RuleSpec is a rule of any kind of
// object, RouteSpec an OpenShift Route, which is a rule with a path only.
//
// Compile builds a Table from all routes, Apply makes the next one from a few
// changes at a cost that does not depend on the size of the table. A Store
// publishes tables; requests load the current one once and keep it to their end.
// Compile and Apply are pure: pools change when a table is published, by the plan it carries.
//
// How a route is found:
//
//   - Routes are grouped by host. A wildcard route belongs to the group of its
//     domain, and covers hosts of exactly one more label, which may be empty.
//   - The group of the exact host is searched first, whatever the paths; only when
//     none of its routes matches is the wildcard group searched.
//   - Within a group the longest path wins. "/p" covers "/p" and what is below it
//     on segment boundaries, "/p/" covers what begins with these bytes, and a path
//     that is empty or consists of slashes covers everything.
//   - Routes of one host with paths that mean the same (such as "" and "/") are
//     tried in the order of the spec: Apply keeps the place of a route it replaces,
//     and puts a new one last.
//
// Rules of the pair of ports that are for any host, which OpenShift Routes are not, serve the hosts that no rule names, and requests without a
// host. A namespace that has a host has all of it.
//
// Where rules of a host ask for more than a stored path, exact paths come first, then expressions, then the longest path, and of
// equal paths the rule with a method, with more headers, with more query parameters: see Match. Such a host is searched by
// its own code, so that hosts without such rules pay nothing for them.
//
// A plain request is answered with a redirect if the route found among all routes
// asks for it; otherwise it is looked for among the routes that serve plain HTTP.
// A request over TLS is looked for among edge and re-encrypt routes.
//
// The package does no I/O and starts no goroutine.
package routing
