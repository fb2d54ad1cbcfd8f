package logging

import (
	"crypto/tls"

	"go.uber.org/zap"

	"turnout/internal/server"
	"turnout/tlsmux"
)

// TLS says what TLS towards clients looks like, and what of a set of cipher suites is not there: a client that has
// nothing else cannot connect, and no other line says why.
func TLS(log *zap.Logger, c *server.Config, leftOut []string) {
	ciphers := make([]string, len(c.TLS.CipherSuites))
	for i, id := range c.TLS.CipherSuites {
		ciphers[i] = tlsmux.SuiteName(id)
	}
	newest := c.TLS.MaxVersion
	if newest == 0 {
		newest = tls.VersionTLS13
	}
	log.Info("TLS for clients", zap.String("min_version", tls.VersionName(c.TLS.MinVersion)), zap.String("max_version", tls.VersionName(newest)),
		zap.Strings("ciphers", ciphers), zap.Strings("left_out", leftOut), zap.Stringers("curves", c.TLS.Curves), zap.Bool("http2", !c.TLS.DisableHTTP2))
}
