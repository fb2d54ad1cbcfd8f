package kube

// The account that routers run as.
const (
	routerNamespace = "turnout"
	routerAccount   = "router"
	routerUser      = "system:serviceaccount:" + routerNamespace + ":" + routerAccount
	routerRole      = "turnout-router"
)
