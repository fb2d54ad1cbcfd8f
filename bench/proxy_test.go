//go:build linux

package bench

import (
	"testing"

	"turnout/bench/load"
	"turnout/internal/testkit"
	"turnout/proxy"
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

// BenchmarkProxied is one HTTP/1.1 keep-alive request through the whole request path
// of one loop, on loopback: client, router and backend share the process, so take
// BenchmarkDirect off to see the router. Its allocations are the router's.
func BenchmarkProxied(b *testing.B) {
	rig, traffic := newRig(b)
	router := testkit.StartRouter(b, 1, nil)
	router.Publish(b, testkit.Spec(load.Host(0), rig.Upstreams()[0].String()))
	drive(b, rig, load.Profile{Addr: router.Addr, Conns: 64, Traffic: traffic})
}

// BenchmarkProxiedPolicies is the same with all that a route can ask for: sticky
// cookie, HSTS and an access log.
func BenchmarkProxiedPolicies(b *testing.B) {
	rig, traffic := newRig(b)
	router := testkit.StartRouter(b, 1, nothing{})
	spec := testkit.Spec(load.Host(0), rig.Upstreams()[0].String())
	spec.CookieName, spec.Policy.CookieAttributes = "sticky", "; path=/; HttpOnly"
	spec.Policy.HSTS = "max-age=31536000"
	router.Publish(b, spec)
	drive(b, rig, load.Profile{Addr: router.Addr, Conns: 64, Traffic: traffic})
}

type nothing struct{}

func (nothing) Log(*proxy.Record) {}
