package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The next hop of every namespace, the same for all: the other end of its link.
var gateways = Pair{netip.MustParseAddr("169.254.1.1"), netip.MustParseAddr("fe80::1")}

// connect makes a link called name between the sandbox and a namespace and routes
// addresses over it. There is no bridge: all that namespaces send is routed, so that the
// rules for Services see both directions.
func connect(name, path string, addresses Pair) error {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return fmt.Errorf("cannot open network namespace %s: %w", path, err)
	}
	defer func() { _ = ns.Close() }()
	inside, err := netlink.NewHandleAt(ns)
	if err != nil {
		return fmt.Errorf("cannot reach network namespace %s: %w", path, err)
	}
	defer inside.Close()

	veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: "eth0", PeerNamespace: netlink.NsFd(ns)}
	veth.Name = name
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("cannot make link %s: %w", name, err)
	}
	outer, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("cannot find link %s: %w", name, err)
	}
	inner, err := inside.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("cannot find the other end of link %s: %w", name, err)
	}
	if err := errors.Join(setUpInside(inside, inner, outer.Attrs().HardwareAddr, addresses), setUpOutside(outer, inner.Attrs().HardwareAddr, addresses)); err != nil {
		return fmt.Errorf("cannot set up link %s: %w", name, err)
	}
	return nil
}

// setUpInside gives a namespace its addresses and its default routes.
func setUpInside(h *netlink.Handle, link netlink.Link, gatewayMAC net.HardwareAddr, addresses Pair) error {
	loopback, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := errors.Join(h.LinkSetUp(loopback), h.LinkSetUp(link)); err != nil {
		return err
	}
	for i, a := range addresses {
		// Without the search for duplicates, which takes a second.
		if err := h.AddrAdd(link, &netlink.Addr{IPNet: host(a), Flags: unix.IFA_F_NODAD}); err != nil {
			return fmt.Errorf("address %v: %w", a, err)
		}
		if err := h.NeighAdd(neighbor(link, gateways[i], gatewayMAC)); err != nil {
			return fmt.Errorf("neighbor %v: %w", gateways[i], err)
		}
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: everything(a), Gw: gateways[i].AsSlice(), Src: a.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}
		if err := h.RouteAdd(route); err != nil {
			return fmt.Errorf("default route via %v: %w", gateways[i], err)
		}
	}
	return nil
}

// setUpOutside routes the addresses of a namespace to it.
func setUpOutside(link netlink.Link, mac net.HardwareAddr, addresses Pair) error {
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	for i, a := range addresses {
		if err := netlink.NeighAdd(neighbor(link, a, mac)); err != nil {
			return fmt.Errorf("neighbor %v: %w", a, err)
		}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: host(a), Src: Outside[i].AsSlice(), Scope: netlink.SCOPE_LINK}); err != nil {
			return fmt.Errorf("route to %v: %w", a, err)
		}
	}
	return nil
}

// disconnect removes a link with both ends and its routes.
func disconnect(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil {
		return fmt.Errorf("cannot remove link %s: %w", name, err)
	}
	return nil
}

func neighbor(link netlink.Link, a netip.Addr, mac net.HardwareAddr) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: link.Attrs().Index, IP: a.AsSlice(), HardwareAddr: mac, State: netlink.NUD_PERMANENT}
}

// host is the network of one address.
func host(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}

// everything is the network of all addresses of the family of a.
func everything(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: make(net.IP, a.BitLen()/8), Mask: net.CIDRMask(0, a.BitLen())}
}

// ipNet is a prefix in the form that netlink takes.
func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
