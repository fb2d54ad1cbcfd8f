// Package gateway runs the conformance suite of the Gateway API, unmodified, against Turnout in the cluster to test in.
package gateway
