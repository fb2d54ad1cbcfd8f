package zone

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// MaxAddresses is how many addresses of each family a name has. Of more, those that are last in order are left out: so many make an answer
// that fits into a message over TCP.
const MaxAddresses = 1024

// MaxServers is how many name servers a zone or a cut has: as many as the root, whose answer fits into a message over UDP.
const MaxServers = 13

// Spec is a zone as plain data. Names are written with or without a dot at their end, in any case. Times are in seconds.
type Spec struct {
	Origin string // the name of the zone
	// Primary is the server that zones are transferred from, Mailbox the address of who is in charge with a dot for its '@' (RFC 1035
	// section 3.3.13). "" = the first of Servers, and hostmaster below Origin.
	Primary, Mailbox       string
	Refresh, Retry, Expire uint32 // of secondaries

	TTL         uint32 // of addresses and aliases
	ServerTTL   uint32 // of name servers and their addresses
	NegativeTTL uint32 // of answers that there is no such name or record (RFC 2308), and of the SOA record

	Servers   []Server     // at least one
	Addresses []netip.Addr // of the apex and of names that nothing else is said of; empty: there are no such names
	Names     []Name
	Cuts      []Cut
}

// Server is a name server.
type Server struct {
	Name string
	// Addresses are published if the name is within the zone, and must be there then. Those within a cut are what leads to its servers.
	Addresses []netip.Addr
}

// Name is a name below the origin that has records of its own. Names below it are not covered by the wildcard of the zone any more (RFC 4592
// section 2.2.1), nor are those below the names between it and the origin. It may be a wildcard itself.
type Name struct {
	Name      string
	Addresses []netip.Addr
	Target    string // an alias of this name (CNAME); Addresses are empty then
}

// Cut is where another zone begins, which Servers answer for.
type Cut struct {
	Name    string
	Servers []Server
}

// server is a Server whose name has been read.
type server struct {
	name   wireName
	v4, v6 []netip.Addr
}

// readServers reads name servers of a zone or a cut. Those within needs are published with their addresses, and must have some.
func readServers(list []Server, needs wireName) ([]server, error) {
	if len(list) == 0 || len(list) > MaxServers {
		return nil, fmt.Errorf("%d name servers: there must be 1 to %d", len(list), MaxServers)
	}
	var all []server
	for _, s := range list {
		name, err := pack(s.Name)
		if err != nil {
			return nil, fmt.Errorf("name server %w", err)
		}
		if name.isWildcard() {
			return nil, fmt.Errorf("name server %q is a wildcard", s.Name)
		}
		if slices.ContainsFunc(all, func(other server) bool { return other.name == name }) {
			return nil, fmt.Errorf("name server %q is there twice", s.Name)
		}
		one := server{name: name}
		one.v4, one.v6 = families(s.Addresses)
		if len(one.v4)+len(one.v6) == 0 && name.within(needs) {
			return nil, fmt.Errorf("name server %q is within its own zone, so its addresses must be given", s.Name)
		}
		all = append(all, one)
	}
	return all, nil
}

// families returns the addresses of IPv4 and of IPv6, each once and in order, at most MaxAddresses of each. Zones of IPv6 addresses are left out.
func families(addresses []netip.Addr) (v4, v6 []netip.Addr) {
	for _, a := range addresses {
		switch a = a.Unmap().WithZone(""); {
		case a.Is4():
			v4 = append(v4, a)
		case a.Is6():
			v6 = append(v6, a)
		}
	}
	return few(v4), few(v6)
}

func few(addresses []netip.Addr) []netip.Addr {
	slices.SortFunc(addresses, netip.Addr.Compare)
	addresses = slices.Compact(addresses)
	return addresses[:min(len(addresses), MaxAddresses)]
}

// maxTTL is the largest TTL (RFC 2181 section 8).
const maxTTL = 1<<31 - 1

var errTTL = errors.New("a TTL is above 2147483647 s")

// check reads what is said of the zone as a whole.
func (s *Spec) check() error {
	for _, ttl := range []uint32{s.TTL, s.ServerTTL, s.NegativeTTL} {
		if ttl > maxTTL {
			return errTTL
		}
	}
	return nil
}
