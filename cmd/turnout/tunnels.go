package main

import (
	"context"

	"turnout/proxy"
)

// Tunnels are those that are open, by route. Any goroutine may call it.
func (d *dataplane) Tunnels() map[proxy.TunnelRoute]int {
	sum := make(map[proxy.TunnelRoute]int)
	for _, ln := range d.lanes {
		ln.worker.Tunnels(sum)
	}
	return sum
}

// watchRoutes tells event loops of each table, so that tunnels of routes that are gone end, until ctx is done.
func (d *dataplane) watchRoutes(ctx context.Context) {
	for {
		table := d.cfg.Store.Load()
		for loop, ln := range d.lanes {
			loop.Post(func() { ln.worker.RoutesChanged(table) })
		}
		if d.cfg.Store.Wait(ctx, table.Generation()+1) != nil {
			return
		}
	}
}
