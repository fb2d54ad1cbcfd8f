package main

import (
	"crypto/tls"

	"go.uber.org/zap"

	"turnout/tlsmux"
)

// logTLS says what TLS towards clients looks like, and what of a set of cipher suites is not there: a client that has
// nothing else cannot connect, and no other line says why.
func logTLS(log *zap.Logger, o *options) {
	ciphers := make([]string, len(o.server.TLS.CipherSuites))
	for i, id := range o.server.TLS.CipherSuites {
		ciphers[i] = tlsmux.SuiteName(id)
	}
	newest := o.server.TLS.MaxVersion
	if newest == 0 {
		newest = tls.VersionTLS13
	}
	log.Info("TLS for clients", zap.String("min_version", tls.VersionName(o.server.TLS.MinVersion)), zap.String("max_version", tls.VersionName(newest)),
		zap.Strings("ciphers", ciphers), zap.Strings("left_out", o.suitesLeftOut), zap.Stringers("curves", o.server.TLS.Curves), zap.Bool("http2", !o.server.TLS.DisableHTTP2))
}
