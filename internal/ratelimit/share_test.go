package ratelimit

import (
	"testing"
	"time"
)

// TestNamespacesHaveSharesOfMemory checks that many flooded routes of one namespace leave another
// namespace's only route its share of the memory.
func TestNamespacesHaveSharesOfMemory(t *testing.T) {
	const most = 64 * 1024
	m, at, l := NewMemory(most), int64(time.Hour), Limits{HTTP: on(1000)}
	for range 15 {
		visit(m.NewTable("evil"), 0, most, &at, time.Second, l)
	}
	m.Sweep()
	good := m.NewTable("good")
	for range 4 {
		visit(good, 0, most/4, &at, time.Second, l)
		m.Sweep()
	}
	if n := good.Len(); n < most/5 {
		t.Errorf("the route of another namespace remembers %d of %d addresses", n, most)
	}
	if n := m.Addresses(); n > 2*most {
		t.Errorf("memory for %d addresses, the bound is %d", n, most)
	}
}
