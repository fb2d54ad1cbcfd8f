package logging

import (
	"net/netip"

	"go.uber.org/zap"
)

// Ports are those of Routes; one that is not valid is not there.
type Ports interface {
	HTTP() netip.AddrPort
	HTTPS() netip.AddrPort
}

// Listening logs where a router listens.
func Listening(log *zap.Logger, ports Ports, admin netip.AddrPort) {
	var at []zap.Field
	for i, addr := range []netip.AddrPort{ports.HTTP(), ports.HTTPS(), admin} {
		if addr.IsValid() {
			at = append(at, zap.Stringer([]string{"http", "https", "admin"}[i], addr))
		}
	}
	log.Info("listening", at...)
}
