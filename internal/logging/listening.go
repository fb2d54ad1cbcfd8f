package logging

import (
	"net/netip"

	"go.uber.org/zap"
)

// Listening logs where a router listens. It may have no ports of Routes.
func Listening(log *zap.Logger, http, https, admin netip.AddrPort) {
	var at []zap.Field
	for i, addr := range []netip.AddrPort{http, https, admin} {
		if addr.IsValid() {
			at = append(at, zap.Stringer([]string{"http", "https", "admin"}[i], addr))
		}
	}
	log.Info("listening", at...)
}
