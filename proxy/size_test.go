package proxy

import (
	"testing"
	"unsafe"
)

// TestExchangeFitsItsSizeClass checks that an exchange fits the allocator's class of 2,048 bytes. The
// next class has 2,304 bytes: 1 MiB for 4,096 requests at a time.
func TestExchangeFitsItsSizeClass(t *testing.T) {
	if n := unsafe.Sizeof(Exchange{}); n > 2048 {
		t.Errorf("an Exchange has %d bytes, want at most 2,048", n)
	}
}
