// Package shards holds tests of routes that spread over routers, in a cluster: the resources, who may write what, the scheduler, replicas that serve
// what is bound to their Router, and moves under load.
package shards
