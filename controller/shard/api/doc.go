// Package api is the resources by which routes spread over routers, group turnout.router, version v1alpha1, and a client of them. A Router
// is a shard: a set of replicas that serve the same routes at the same addresses. A RouteBinding says that a Router serves a Route. A
// RouteScheduler says by which strategy the scheduler binds routes.
//
// The custom resource definitions in deploy/crd and zz_generated.deepcopy.go are made of these types by make generate; comments of fields are
// what kubectl explain prints.
//
// +kubebuilder:object:generate=true
// +groupName=turnout.router
// +versionName=v1alpha1
package api
