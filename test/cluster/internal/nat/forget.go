package nat

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// forget makes the kernel forget conversations of UDP with endpoints that f no longer
// has: without connections that end, they would go on there for ever. TCP connections
// stay with their endpoint, as in a cluster.
func forget(f Frontend, before, next Backends) error {
	if f.Protocol != "udp" {
		return nil
	}
	var family netlink.InetFamily = unix.AF_INET
	if f.Address.Addr().Is6() {
		family = unix.AF_INET6
	}
	for _, e := range before.Endpoints {
		if slices.Contains(next.Endpoints, e) {
			continue
		}
		if err := forgetFlows(family, f.Address, e); err != nil {
			return err
		}
	}
	return nil
}

func forgetFlows(family netlink.InetFamily, to, endpoint netip.AddrPort) error {
	filter := new(netlink.ConntrackFilter)
	for _, err := range []error{
		filter.AddProtocol(unix.IPPROTO_UDP),
		filter.AddIP(netlink.ConntrackOrigDstIP, to.Addr().AsSlice()),
		filter.AddPort(netlink.ConntrackOrigDstPort, to.Port()),
		filter.AddIP(netlink.ConntrackReplySrcIP, endpoint.Addr().AsSlice()),
	} {
		if err != nil {
			return fmt.Errorf("cannot look for conversations with %v: %w", to, err)
		}
	}
	if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, filter); err != nil {
		return fmt.Errorf("cannot forget conversations with %v: %w", to, err)
	}
	return nil
}
