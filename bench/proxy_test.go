//go:build linux

package bench

import (
	"testing"

	"turnout/bench/load"
)

// drive sends b.N requests to addr over keep-alive connections and fails on any answer that is not the
// expected one.
func drive(b *testing.B, rig *load.Rig, p load.Profile) {
	b.Helper()
	p.Requests = uint64(b.N)
	b.ReportAllocs()
	b.ResetTimer()
	res, err := rig.Drive(b.Context(), p)
	b.StopTimer()
	if err != nil || res.Failures > 0 {
		b.Fatalf("%d answers, %d failures, the first: %v; %v", res.Requests, res.Failures, res.First, err)
	}
	b.ReportMetric(float64(res.Connects), "connects")
}

func newRig(b *testing.B) (*load.Rig, *load.Traffic) {
	b.Helper()
	rig, err := load.NewRig(1)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(rig.Close)
	traffic, err := load.NewTraffic(load.TrafficConfig{})
	if err != nil {
		b.Fatal(err)
	}
	return rig, traffic
}

// BenchmarkDirect is the client and the backend without a proxy: what a proxied request costs them.
func BenchmarkDirect(b *testing.B) {
	rig, traffic := newRig(b)
	drive(b, rig, load.Profile{Addr: rig.Upstreams()[0], Conns: 64, Traffic: traffic})
}
