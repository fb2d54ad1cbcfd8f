// Package testaddr makes addresses of endpoints for tests.
package testaddr

import (
	"net/netip"

	"turnout/internal/target"
)

// Of returns the target address of an endpoint of a test. It admits loopback addresses and panics
// on other restricted addresses. The zero AddrPort gives the zero Addr.
func Of(at netip.AddrPort) target.Addr {
	if !at.IsValid() {
		return target.Addr{}
	}
	a, err := target.NewPolicy(true, nil).Addr(at)
	if err != nil {
		panic(at.String() + ": " + err.Error())
	}
	return a
}

// Parse is Of for a text such as "192.0.2.1:8080".
func Parse(at string) target.Addr { return Of(netip.MustParseAddrPort(at)) }
