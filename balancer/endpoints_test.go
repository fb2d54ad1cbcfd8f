package balancer

import (
	"net/netip"
	"testing"
)

// TestEndpointsOfOneHash: endpoints whose keys have the same hash are different ones, and any of them can go.
func TestEndpointsOfOneHash(t *testing.T) {
	at := func(port uint16) *endpointKey {
		return &endpointKey{addr: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), port)}
	}
	for gone := range uint16(3) {
		es := newEndpoints()
		es.hash = func(endpointKey) uint64 { return 1 }
		var all [3]*Endpoint
		for i := range uint16(3) {
			all[i] = &Endpoint{key: *at(i)}
			es.insert(all[i])
		}
		es.remove(all[gone])
		for i, want := range all {
			if uint16(i) == gone {
				want = nil
			}
			if got := es.find(at(uint16(i))); got != want {
				t.Errorf("without %d: endpoint %d is %p, want %p", gone, i, got, want)
			}
		}
		if es.count != 2 {
			t.Errorf("without %d: %d endpoints, want 2", gone, es.count)
		}
	}
}
