package main

import (
	"context"
	"net"
	"net/netip"
	"time"

	"go.uber.org/zap"

	"turnout/controller/endpoints"
)

// ownEvery is how often the addresses of this machine are read: interfaces come and go.
const ownEvery = 10 * time.Second

// listening is where the router listens, or will: ports that the system is still to choose are not known.
func (r *router) listening() (all []netip.AddrPort) {
	for _, addr := range []string{r.o.server.HTTPAddr, r.o.server.HTTPSAddr, r.o.adminAddr} {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			continue // who listens there says so
		}
		if host == "" {
			host = "::"
		}
		if at, err := netip.ParseAddrPort(net.JoinHostPort(host, port)); err == nil && at.Port() != 0 {
			all = append(all, at)
		}
	}
	if r.late {
		return all
	}
	return append(all, r.data.HTTP(), r.data.HTTPS(), r.admin.Addr())
}

// own is where a router that listens somewhere is reached on this machine.
func own(listening []netip.AddrPort, interfaces []net.Addr) *endpoints.Own {
	var addrs []netip.Addr
	for _, a := range interfaces {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				addrs = append(addrs, addr)
			}
		}
	}
	return endpoints.NewOwn(listening, addrs)
}

// watchOwn tells the controller where the router listens, at every tick at which interfaces have changed. It returns when ctx is done.
func (r *router) watchOwn(ctx context.Context, w *ownWatch, tick <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			w.look(r.control.SetOwn, r.log)
		}
	}
}

// ownWatch is what was known of this machine when it was looked at last.
type ownWatch struct {
	listening  []netip.AddrPort
	interfaces func() ([]net.Addr, error)
	last       *endpoints.Own // nil = never
}

// look reads the addresses of this machine and tells where the router listens, if that has changed.
func (w *ownWatch) look(tell func(*endpoints.Own), log *zap.Logger) {
	addrs, err := w.interfaces()
	if err != nil && w.last != nil {
		return // they are as they were
	}
	if err != nil {
		log.Warn("cannot read the addresses of this machine: endpoints may be the router itself", zap.Error(err))
	}
	if next := own(w.listening, addrs); !next.Equal(w.last) {
		w.last = next
		tell(next)
	}
}
