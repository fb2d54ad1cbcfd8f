package view

import "testing"

func BenchmarkGatewayRoutes(b *testing.B) {
	r := newGatewayRig(b, 10_000)
	for b.Loop() {
		r.Routes(Search{Text: "g7-1.test"})
	}
}
