// Package gateway is the conformance suite of the Gateway API as it is, built as a program: test/cluster/gateway runs it in the
// cluster to test in.
package gateway

import (
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
)

// TestConformance is the suite. Its flags say which cluster, class and profiles.
func TestConformance(t *testing.T) { conformance.RunConformance(t) }
