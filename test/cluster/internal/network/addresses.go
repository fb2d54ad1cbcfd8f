package network

import (
	"fmt"
	"net/netip"
)

// The address plan. All of it is inside the sandbox, so nothing of it can be in the way
// of the machine's own networks. Each range has an IPv4 and an IPv6 form.
var (
	// Outside is the address of the sandbox itself, from which tests connect.
	Outside = Pair{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}
	// Nodes is where the nodes are; the first has number 1.
	Nodes = Range{netip.MustParsePrefix("10.1.0.0/24"), netip.MustParsePrefix("fd00:1::/120")}
	// Pods is where the pods of all nodes are.
	Pods = Range{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/56")}
	// Services is the range of cluster addresses, which the API server gives out.
	Services = Range{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:96::/112")}
	// Balancers is the range of addresses of Services of type LoadBalancer.
	Balancers = Range{netip.MustParsePrefix("10.100.0.0/16"), netip.MustParsePrefix("fd00:100::/112")}
	// Clients is where clients outside of the cluster are.
	Clients = Range{netip.MustParsePrefix("10.200.0.0/24"), netip.MustParsePrefix("fd00:200::/120")}
)

// pods returns the range of the pods of a node by its number, which is at most 255.
func pods(node int) Range {
	return Range{
		netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(node), 0}), 24),
		netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 2: 0x02, 3: 0x44, 7: byte(node)}), 120),
	}
}

// Pair is an IPv4 and an IPv6 address.
type Pair [2]netip.Addr

// Range is an IPv4 and an IPv6 prefix.
type Range [2]netip.Prefix

// At returns the addresses of number n in the range.
func (r Range) At(n int) Pair {
	var pair Pair
	for family, prefix := range r {
		bytes := prefix.Masked().Addr().AsSlice()
		for i, carry := len(bytes)-1, n; carry > 0 && i >= 0; i-- {
			carry += int(bytes[i])
			bytes[i] = byte(carry)
			carry >>= 8
		}
		pair[family], _ = netip.AddrFromSlice(bytes)
	}
	return pair
}

// Strings returns the range as the control plane takes it.
func (r Range) Strings() []string { return []string{r[0].String(), r[1].String()} }

// Size is how many addresses there are, without the first and, in IPv4, the broadcast address.
func (r Range) Size() int { return 1<<(32-r[0].Bits()) - 2 }

// pool hands out the numbers 1 to size in turn, so that a number that was given back is
// used again as late as possible: connections of its last owner are forgotten by then.
type pool struct {
	size int
	next int
	used map[int]bool
}

func newPool(size int) *pool { return &pool{size: size, used: map[int]bool{}} }

// takeNumber returns a number that is not in use.
func (p *pool) takeNumber() (int, error) {
	for range p.size {
		p.next = p.next%p.size + 1
		if !p.used[p.next] {
			p.used[p.next] = true
			return p.next, nil
		}
	}
	return 0, fmt.Errorf("all %d addresses are in use", p.size)
}

// give takes a number back.
func (p *pool) give(n int) { delete(p.used, n) }
