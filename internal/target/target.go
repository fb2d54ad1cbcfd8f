// Package target decides which addresses the router connects to because a tenant's object or
// certificate names them. An Addr is the proof of that decision: Policy returns it, and nothing
// else can make one.
//
// The rules hold for every kind of object and connection: Routes, Ingresses, routes of the Gateway
// API with requests, streams or datagrams, mirrors, health checks, and downloads of revocation
// lists. Destinations that only an administrator can name, such as trace exporters and syslog
// servers, are not judged.
package target

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
)

// Addr is an address and port that a Policy has admitted. The zero value is no address. Addrs are
// comparable.
type Addr struct{ at netip.AddrPort }

// AddrPort returns the address to connect to; invalid for the zero Addr.
func (a Addr) AddrPort() netip.AddrPort { return a.at }

// Port returns the port number.
func (a Addr) Port() uint16 { return a.at.Port() }

// String returns the address as host:port.
func (a Addr) String() string { return a.at.String() }

// Host is an IP address that a Policy has admitted, without a port.
type Host struct{ ip netip.Addr }

// Compare orders Hosts by address.
func (h Host) Compare(o Host) int { return h.ip.Compare(o.ip) }

// Policy decides about addresses. It is immutable. A nil *Policy admits none.
type Policy struct {
	loopback bool
	own      *Own
}

// NewPolicy returns a policy that refuses the router's own listeners. allowLoopback admits loopback
// addresses. On a laptop the endpoints are local processes; in a cluster, loopback leads into the
// router's own pod.
func NewPolicy(allowLoopback bool, own *Own) *Policy { return &Policy{allowLoopback, own} }

// ErrOwn is the error of Policy.At for an address where the router itself listens.
var ErrOwn = errors.New("the router itself listens there")

var (
	errNoAddress = errors.New("it is not an IP address")
	errNoPolicy  = errors.New("the router's own addresses are not known yet")
)

// Host admits an IP address in the form that an object has it. The error is the reason of a
// refusal.
func (p *Policy) Host(text string) (Host, error) {
	ip, err := netip.ParseAddr(text)
	if err != nil || ip.Zone() != "" || strings.Contains(text, "%") {
		return Host{}, errNoAddress
	}
	return p.host(ip)
}

func (p *Policy) host(ip netip.Addr) (Host, error) {
	if p == nil {
		return Host{}, errNoPolicy
	}
	if err := p.restricted(ip); err != nil {
		return Host{}, err
	}
	for _, v4 := range embedded(ip) {
		if err := p.restricted(v4); err != nil {
			return Host{}, err
		}
	}
	return Host{ip.Unmap()}, nil
}

// At admits a port of an admitted address. The error is ErrOwn where the router itself listens.
func (p *Policy) At(h Host, port uint16) (Addr, error) {
	if p == nil || !h.ip.IsValid() {
		return Addr{}, errNoPolicy
	}
	if p.own.leads(h.ip, port) {
		return Addr{}, ErrOwn
	}
	return Addr{netip.AddrPortFrom(h.ip, port)}, nil
}

// Addr admits an address with a port, by the rules of Host and At.
func (p *Policy) Addr(at netip.AddrPort) (Addr, error) {
	h, err := p.host(plain(at.Addr()))
	if err != nil {
		return Addr{}, err
	}
	return p.At(h, at.Port())
}

// metadata lists the addresses of cloud metadata services outside the link-local ranges. The
// link-local ranges are refused as a whole: they contain 169.254.169.254 of most clouds, and
// 169.254.170.2 and 169.254.170.23 of Amazon's containers.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // Amazon EC2, instance metadata over IPv6
	netip.MustParseAddr("fd00:ec2::23"),    // Amazon EKS, Pod Identity agent
	netip.MustParseAddr("168.63.129.16"),   // Azure, WireServer
	netip.MustParseAddr("100.100.100.200"), // Alibaba Cloud, instance metadata
	netip.MustParseAddr("fd20:ce::254"),    // Google Cloud, instance metadata over IPv6
	netip.MustParseAddr("192.0.0.192"),     // Oracle Cloud Classic, instance metadata
	netip.MustParseAddr("fd00:42::42"),     // Scaleway, instance metadata over IPv6
}

// restricted returns why an address must not be used, nil if it may. Such addresses lead to the
// router's own machine, to its link, or to the credentials of that machine.
func (p *Policy) restricted(ip netip.Addr) error {
	switch {
	case !ip.IsValid():
		return errNoAddress
	case ip.IsUnspecified():
		return errors.New("it is the unspecified address")
	case ip.IsLoopback() && !p.loopback:
		return errors.New("it is a loopback address")
	case ip.IsLinkLocalUnicast():
		return errors.New("it is a link-local address")
	case ip.IsMulticast(), ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return errors.New("it is a multicast or broadcast address")
	}
	for _, m := range metadata {
		if ip == m {
			return errors.New("it is the address of a cloud's metadata service")
		}
	}
	return nil
}

// Prefixes of IPv6 addresses with an IPv4 address inside. Translators or the kernel send their
// packets to that IPv4 address.
var (
	mapped     = netip.MustParsePrefix("::ffff:0:0/96")   // RFC 4291 section 2.5.5.2
	compatible = netip.MustParsePrefix("::/96")           // RFC 4291 section 2.5.5.1
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765 section 2.1
	nat64      = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052 section 2.1
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215
	sixToFour  = netip.MustParsePrefix("2002::/16")       // RFC 3056 section 2
)

// embedded returns the IPv4 addresses to which an IPv6 address may lead. A translator with the
// local-use prefix may use any longer prefix within it, and each length has its own place for the
// IPv4 address.
func embedded(ip netip.Addr) []netip.Addr {
	if !ip.Is6() {
		return nil
	}
	b := ip.As16()
	at := func(i, j, k, l int) netip.Addr { return netip.AddrFrom4([4]byte{b[i], b[j], b[k], b[l]}) }
	last := at(12, 13, 14, 15)
	switch {
	case ip.IsLoopback() || ip.IsUnspecified():
		return nil
	case mapped.Contains(ip.WithZone("")) || ip.Is4In6():
		return []netip.Addr{ip.Unmap()}
	case compatible.Contains(ip), translated.Contains(ip), nat64.Contains(ip):
		return []netip.Addr{last}
	case nat64Local.Contains(ip): // RFC 6052 section 2.2: octet 8 is skipped
		all := []netip.Addr{at(6, 7, 9, 10), at(7, 9, 10, 11), at(9, 10, 11, 12), last}
		return slices.DeleteFunc(all, netip.Addr.IsUnspecified) // that place is not the one in use
	case sixToFour.Contains(ip):
		return []netip.Addr{at(2, 3, 4, 5)}
	}
	return nil
}

// Guard holds the Policy of a running router for connections that are made by host name: its
// Control judges each address that a name resolves to, at the moment of the connect. The zero
// Guard refuses everything until Set.
type Guard struct{ policy atomic.Pointer[Policy] }

// Set replaces the policy.
func (g *Guard) Set(p *Policy) { g.policy.Store(p) }

// Control is a net.Dialer.Control.
func (g *Guard) Control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("cannot connect to %s: %w", address, errNoAddress)
	}
	if _, err := g.policy.Load().Addr(at); err != nil {
		return fmt.Errorf("cannot connect to %s: %w", address, err)
	}
	return nil
}
