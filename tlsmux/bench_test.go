package tlsmux

import (
	"crypto/tls"
	"io"
	"testing"
)

// BenchmarkEcho128 is a 128 byte message to the loop and back, over a socket, with a client of crypto/tls on a goroutine.
func BenchmarkEcho128(b *testing.B) {
	s := serve(b, Config{})
	c := s.client(b, &tls.Config{})
	msg := make([]byte, 128)
	if err := c.Handshake(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(msg); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, msg); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHandshake is a connection, its handshake and its end; client and server share the processors.
func BenchmarkHandshake(b *testing.B) {
	for _, bm := range []struct {
		name  string
		cache tls.ClientSessionCache
	}{{"full", nil}, {"resumed", tls.NewLRUClientSessionCache(1)}} {
		b.Run(bm.name, func(b *testing.B) {
			s := serve(b, Config{})
			b.ReportAllocs()
			for b.Loop() {
				c := s.client(b, &tls.Config{ServerName: "shared.test", InsecureSkipVerify: true, ClientSessionCache: bm.cache})
				ask(b, c, "x")
				c.Close()
				<-s.infos
				for len(s.failed) > 0 {
					<-s.failed
				}
			}
		})
	}
}
