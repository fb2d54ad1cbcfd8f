package endpoints

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"go.uber.org/zap"

	"turnout/internal/target"
)

// TestOwnAddressesAreWatched: what interfaces say is delivered when it changes, and not when they cannot be read.
func TestOwnAddressesAreWatched(t *testing.T) {
	var addrs []net.Addr
	var err error
	notified := 0
	w := &OwnWatch{
		Listening:  func() []netip.AddrPort { return []netip.AddrPort{netip.MustParseAddrPort("[::]:80")} },
		Log:        zap.NewNop(),
		interfaces: func() ([]net.Addr, error) { return addrs, err },
	}
	look := func(what string, want int) {
		t.Helper()
		if w.Look(func(*target.Own) { notified++ }); notified != want {
			t.Errorf("%s: notified %d times, want %d", what, notified, want)
		}
	}
	err = errors.New("no")
	look("unreadable at first: the ports are known", 1)
	err, addrs = nil, []net.Addr{&net.IPNet{IP: net.IPv4(192, 0, 2, 7), Mask: net.CIDRMask(24, 32)}}
	look("an address", 2)
	look("the same", 2)
	err = errors.New("no")
	look("unreadable", 2)
	err, addrs = nil, append(addrs, &net.IPNet{IP: net.ParseIP("2001:db8::7"), Mask: net.CIDRMask(64, 128)})
	look("another one", 3)
}
