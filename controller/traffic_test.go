package controller

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/balancer"
	"turnout/controller/source"
)

// TestMemoryOfTrafficFollowsFromBackends checks that the memory of an object with traffic on all of
// its rules grows with endpoints times distinct backends, and not with rules: an HTTPRoute of 4 KB
// that becomes hundreds of rules, and a Service of 1,000 endpoints, each of which every rule uses.
func TestMemoryOfTrafficFollowsFromBackends(t *testing.T) {
	const endpoints, bytesPerEndpoint, bytesPerRule = 1000, 600, 600
	for what, c := range map[string]struct {
		genes    genes
		backends int // with mirrors
	}{
		"one backend":         {genes{hosts: 16, matches: 60, backends: 1}, 1},
		"rules":               {genes{hosts: 16, rules: 10, matches: 3, backends: 1}, 1},
		"backend and mirrors": {genes{hosts: 16, rules: 4, matches: 9, backends: 1, mirrors: 1}, 2},
	} {
		r := newGatewayRig(t, GatewayOptions{})
		before, measured := c.genes.events()
		addresses := make([]string, endpoints)
		for i := range addresses {
			addresses[i] = fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)
		}
		r.do(before...)
		r.do(event(source.Service, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP}}},
		}), aSlice("s-1", "s", addresses...))
		r.do(measured...)
		text, err := json.Marshal(measured[0].Object)
		if err != nil || len(text) > 5<<10 {
			t.Fatalf("%s: the object has %d bytes, %v", what, len(text), err)
		}
		was, rules := heapInUse(), 0
		distinct := make(map[*balancer.Pool]bool)
		for route := range r.store.Load().Routes {
			rules++
			route.Stats()
			pools := []*balancer.Pool{route.Pool()}
			for i := range route.Mirrors() {
				pools = append(pools, route.Mirrors()[i].Pool())
			}
			for _, p := range pools {
				distinct[p] = true
				if p.Len() != endpoints {
					t.Fatalf("%s: pool %s has %d servers", what, p.Key(), p.Len())
				}
				for i := range endpoints {
					l, _ := p.Pick(balancer.Pick{Rand: uint64(i) << 32})
					l.Server().CountLease(1)
					l.Release()
				}
			}
		}
		grown := int(heapInUse()) - int(was)
		limit := bytesPerEndpoint*endpoints*c.backends + bytesPerRule*rules
		t.Logf("%s: %d bytes of object, %d rules, %d pools: %d KiB, limit %d KiB", what, len(text), rules, len(distinct), grown>>10, limit>>10)
		if rules < 400 || len(distinct) != c.backends || grown > limit {
			t.Errorf("%s: %d rules with traffic have %d pools and %d KiB, want %d and at most %d", what, rules, len(distinct), grown>>10, c.backends, limit>>10)
		}
		runtime.KeepAlive(r)
	}
}
