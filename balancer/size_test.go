package balancer

import (
	"testing"
	"unsafe"
)

// TestServerIsSmall: there may be as many servers as routes times pods that they share, so each is two cache lines, of which
// requests change one. The same goes for pools; an endpoint is one.
func TestServerIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Server{}); size != 2*cacheLine {
		t.Errorf("a server has %d bytes", size)
	}
	if size := unsafe.Sizeof(counters{}); size != cacheLine {
		t.Errorf("the counters of a server have %d bytes", size)
	}
	if size := unsafe.Sizeof(Endpoint{}); size != cacheLine {
		t.Errorf("an endpoint has %d bytes", size)
	}
	if size := unsafe.Sizeof(member{}); size > 64 {
		t.Errorf("what the servers of one target have in common has %d bytes", size)
	}
	if size := unsafe.Sizeof(Check{}); size > 64 {
		t.Errorf("a check has %d bytes", size)
	}
	if size, at := unsafe.Sizeof(Pool{}), unsafe.Offsetof(Pool{}.cursor); size != 2*cacheLine || at != cacheLine {
		t.Errorf("a pool has %d bytes, and %d of them before its cursor, which wants a cache line", size, at)
	}
	if size := unsafe.Sizeof(set{}); size > 64 {
		t.Errorf("a set has %d bytes", size)
	}
	if size := unsafe.Sizeof(group{}) + unsafe.Sizeof(roster{}); size > 224 {
		t.Errorf("a group and its roster have %d bytes", size)
	}
	if size := unsafe.Sizeof(Traffic{}); size != 3*cacheLine {
		t.Errorf("what is counted of a server that has requests has %d bytes", size)
	}
}
