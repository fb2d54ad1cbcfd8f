package endpoints

import (
	"context"
	"net"
	"net/netip"
	"time"

	"go.uber.org/zap"

	"turnout/internal/target"
)

// ownEvery is how often the addresses of this machine are read: interfaces come and go.
const ownEvery = 10 * time.Second

// OwnWatch finds out where a router that listens somewhere is reached on this machine. Its methods are for one goroutine.
type OwnWatch struct {
	// Listening returns where the router listens now, or will. Required.
	Listening func() []netip.AddrPort
	// Log gets what cannot be read. Required.
	Log *zap.Logger

	interfaces func() ([]net.Addr, error) // nil = net.InterfaceAddrs
	last       *target.Own                // nil = never
}

// own is where a router that listens somewhere is reached on this machine.
func own(listening []netip.AddrPort, interfaces []net.Addr) *target.Own {
	var addrs []netip.Addr
	for _, a := range interfaces {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				addrs = append(addrs, addr)
			}
		}
	}
	return target.NewOwn(listening, addrs)
}

// Run looks from time to time until ctx is done.
func (w *OwnWatch) Run(ctx context.Context, changed func(*target.Own)) {
	every := time.NewTicker(ownEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			w.Look(changed)
		}
	}
}

// Look reads the addresses of this machine and gives where the router listens to changed, if that has changed.
func (w *OwnWatch) Look(changed func(*target.Own)) {
	if w.interfaces == nil {
		w.interfaces = net.InterfaceAddrs
	}
	addrs, err := w.interfaces()
	if err != nil && w.last != nil {
		return // they are as they were
	}
	if err != nil {
		w.Log.Warn("cannot read the addresses of this machine: endpoints may be the router itself", zap.Error(err))
	}
	if next := own(w.Listening(), addrs); !next.Equal(w.last) {
		w.last = next
		changed(next)
	}
}

// Listening reads addresses to listen on, as HOST:PORT with an address or nothing for the host. Those with a port that the system is
// still to choose are left out, and so are those that are none: the listener says so.
func Listening(addrs ...string) (all []netip.AddrPort) {
	for _, addr := range addrs {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			continue
		}
		if host == "" {
			host = "::"
		}
		if at, err := netip.ParseAddrPort(net.JoinHostPort(host, port)); err == nil && at.Port() != 0 {
			all = append(all, at)
		}
	}
	return all
}
