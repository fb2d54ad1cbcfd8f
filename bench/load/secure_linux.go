package load

import (
	"crypto/tls"
	"io"
	"net"
	"net/netip"

	"turnout/bench/site"
)

// Secure starts the first upstream of the rig behind TLS. cfg has the certificate and, in NextProtos, the one protocol of the upstream:
// "h2" or "http/1.1". Like all upstreams it answers only while the rig runs, and the rig counts what it answers. A proxy that leaves is
// no failure: what is missing shows in the answers.
func (r *Rig) Secure(cfg *tls.Config) *site.Backend {
	upstream := r.Upstreams()[0].String()
	return site.ServeConns(netip.AddrPortFrom(upstreamHost(0), 0), func(raw net.Conn) {
		c := tls.Server(raw, cfg)
		if c.Handshake() != nil {
			return
		}
		plain, err := net.Dial("tcp4", upstream)
		if err != nil {
			return
		}
		back := make(chan struct{})
		go func() {
			defer close(back)
			_, _ = io.Copy(c, plain)
			_ = raw.Close()
		}()
		_, _ = io.Copy(plain, c)
		_ = plain.Close()
		<-back
	})
}
