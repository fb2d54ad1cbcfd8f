// Package gatewayscale asks of the router with many HTTPRoutes what the public benchmark of gateways asks: how soon a route is served and counted, what is
// written for it, what it takes, and whether requests fail while all of it changes. Without flags it is small and takes less than a minute; make
// gateway-scale measures docs/lab/gateway.md.
package gatewayscale
