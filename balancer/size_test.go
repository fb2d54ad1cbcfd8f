package balancer

import (
	"testing"
	"unsafe"
)

// TestServerIsSmall: there may be as many servers as routes times pods that they share, so each is two cache lines, of which
// requests change one.
func TestServerIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Server{}); size != 2*cacheLine {
		t.Errorf("a server has %d bytes", size)
	}
	if size := unsafe.Sizeof(counters{}); size != cacheLine {
		t.Errorf("the counters of a server have %d bytes", size)
	}
	if size := unsafe.Sizeof(Traffic{}); size != 3*cacheLine {
		t.Errorf("what is counted of a server that has requests has %d bytes", size)
	}
}
