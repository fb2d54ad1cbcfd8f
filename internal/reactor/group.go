package reactor

import (
	"context"
	"net/netip"
)

// Group is several loops that share their listening addresses.
type Group struct{ loops []*Loop }

// NewGroup makes n loops.
func NewGroup(n int, cfg Config) (*Group, error) { panic("not yet") }

// Loops are the loops.
func (g *Group) Loops() []*Loop { return g.loops }

// Run runs all loops.
func (g *Group) Run(ctx context.Context) error { panic("not yet") }

// Listen listens on addr with every loop.
func (g *Group) Listen(addr string, accept func(c *Conn) Handler) (netip.AddrPort, error) {
	panic("not yet")
}
