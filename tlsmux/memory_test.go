package tlsmux

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"turnout/internal/bound"
	"turnout/internal/keypair"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/internal/wire/protocol"
	"turnout/routing"
	"turnout/tlsmux/clientcert"
)

// asking is a Mux that asks clients of TLS 1.2 for a certificate, which they send in the clear.
func asking(t *testing.T, cfg Config) *memory {
	t.Helper()
	trust := clientcert.NewTrust(bundleOf(t, issueClient(t, nil, "ca")), nil)
	cfg.Policy = policyWith(t, PolicyConfig{MaxVersion: tls.VersionTLS12, ClientAuth: clientcert.Required, Trust: trust})
	return serveMemory(t, cfg)
}

// certificateMessage is one of size bytes, of which the last is left out, in records of so many bytes.
func certificateMessage(size, record int) []byte {
	msg := slices.Concat([]byte{11, byte(size >> 16), byte(size >> 8), byte(size)}, make([]byte, size-1))
	var out []byte
	for part := range slices.Chunk(msg, record) {
		out = append(append(out, recordHandshake, 3, 3, byte(len(part)>>8), byte(len(part))), part...)
	}
	return out
}

// say has a client begin a handshake, wait for the server's flight and go on with more.
func (m *memory) say(t *testing.T, hello, more []byte) *memnet.Peer {
	t.Helper()
	p := m.net.Connect(m.addr)
	p.Write(hello)
	if more != nil {
		m.await(t, "flight of the server", func() bool { return p.Total() > 500 || p.EOF() })
		p.TakeReceived()
		p.Write(more)
	}
	m.net.Run()
	return p
}

// inUse is what the process has in its heap and stacks.
func inUse() int64 {
	runtime.GC()
	debug.FreeOSMemory()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc + s.StackInuse)
}

// TestHandshakesHoldLittle: whatever clients send of a handshake that they do not complete, each holds no more than this, and
// what is counted for it is not far from that.
func TestHandshakesHoldLittle(t *testing.T) {
	clients := int64(100)
	if raceDetector { // nothing is said of their memory then
		clients = 20
	}
	hello := clientHello(t, &tls.Config{ServerName: "shared.test", MaxVersion: tls.VersionTLS12})
	large := bytes.Replace(handmade(sni("shared.test"), ext(13, u16([]byte{4, 3, 8, 4})), ext(10, u16([]byte{0, 29})), ext(99, make([]byte, 60<<10))),
		[]byte{0x13, 1}, []byte{0xc0, 0x2b}, 1)
	for name, tc := range map[string]struct {
		hello, more []byte
		most        int64
	}{
		"nothing more":                   {hello, []byte{}, 64 << 10},
		"certificates":                   {hello, certificateMessage(40<<10, maxRecord), 192 << 10},
		"certificates, bytes of records": {hello, certificateMessage(7<<10, 1), 128 << 10},
		"a record that is announced":     {hello, []byte{recordHandshake, 3, 3, 0x40, 0}, 96 << 10},
		"a large hello in many records":  {fragmented(large, 1000), []byte{}, 256 << 10},
		"half a hello":                   {hello[:len(hello)/2], nil, 16 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			m := asking(t, Config{})
			before := inUse()
			for range clients {
				m.say(t, tc.hello, tc.more)
			}
			var counted int64
			m.await(t, "steps", func() bool { return m.mux.cfg.Workers.Waiting() == 0 })
			m.net.Advance(10 * time.Millisecond)
			counted = m.loop.HeldBytes(reactor.HeldHandshakes)
			each := (inUse() - before) / clients
			t.Logf("%d KiB each, %d counted", each>>10, counted/clients>>10)
			if m.mux.Pending() != int(clients) {
				t.Fatalf("%d are pending", m.mux.Pending())
			}
			if each > 64<<10 && !raceDetector && counted/clients < each/3 {
				t.Errorf("%d KiB each, %d are counted", each>>10, counted/clients>>10)
			}
			if each > tc.most && !raceDetector { // which has memory of its own
				t.Errorf("%d KiB each, want at most %d", each>>10, tc.most>>10)
			}
		})
	}
}

// TestHandshakeMemoryIsBounded: beyond its bound those that began first are closed, and who goes on is served.
func TestHandshakeMemoryIsBounded(t *testing.T) {
	const most = 4 << 20
	var bounds bound.Counts
	m := asking(t, Config{HandshakeMemory: most, Bounds: &bounds, HandshakeTimeout: time.Hour})
	hello := clientHello(t, &tls.Config{ServerName: "shared.test", MaxVersion: tls.VersionTLS12})
	flight := certificateMessage(40<<10, maxRecord)
	var clients []*memnet.Peer
	for range 100 {
		clients = append(clients, m.say(t, hello, flight))
	}
	m.await(t, "steps", func() bool { return m.mux.cfg.Workers.Waiting() == 0 })
	m.net.Advance(10 * time.Millisecond)
	if held := m.loop.HeldBytes(reactor.HeldHandshakes); held > most || held < most/2 {
		t.Errorf("%d KiB are counted, want at most %d", held>>10, most>>10)
	}
	closed := 0
	for i, p := range clients {
		if p.EOF() || p.ResetSeen() {
			if closed++; closed != i+1 {
				t.Errorf("client %d was closed before older ones", i)
			}
		}
	}
	if n := bounds.Of(bound.HandshakeMemory); closed == 0 || int(n) != closed || int(m.mux.Stats().Shed.Load()) != closed || m.mux.Pending() != 100-closed {
		t.Errorf("%d closed, %d counted, %d shed, %d pending", closed, n, m.mux.Stats().Shed.Load(), m.mux.Pending())
	}
	for _, p := range clients {
		p.Reset()
	}
	m.await(t, "ends", func() bool { return m.mux.Pending() == 0 && m.loop.HeldBytes(reactor.HeldHandshakes) == 0 })
}

// TestHandshakeWithoutReader: who does not take the flight of the server is counted with it, and ends at its time.
func TestHandshakeWithoutReader(t *testing.T) {
	m := serveMemory(t, Config{HandshakeTimeout: 10 * time.Second})
	long := m.certificate(t, "long.test")
	block, _ := pem.Decode([]byte(long.Certificate))
	long.CA = strings.Repeat(long.Certificate, keypair.MaxChain/len(block.Bytes)-1)
	m.specs = append(m.specs, routing.RouteSpec{RouteKey: routing.RouteKey{Namespace: "ns", Name: "long", UID: "l"}, Host: "long.test", Termination: routing.TermEdge, Certificate: long})
	m.publish(t)
	p := m.net.Connect(m.addr)
	p.StopReading()
	p.ReadWindow(1000)
	p.Write(clientHello(t, &tls.Config{ServerName: "long.test"}))
	m.await(t, "step", func() bool {
		return m.mux.cfg.Workers.Running() == 1 && m.mux.cfg.Workers.Waiting() == 0 && m.loop.HeldBytes(reactor.HeldHandshakes) > keypair.MaxChain
	})
	m.net.Advance(9 * time.Second)
	if p.ResetSeen() || m.mux.Pending() != 1 {
		t.Fatal("ended before its time")
	}
	m.net.Advance(2 * time.Second)
	m.net.Advance(10 * time.Millisecond)
	if held := m.loop.HeldBytes(reactor.HeldHandshakes) + m.loop.HeldBytes(reactor.HeldOutput); held != 0 || m.mux.Pending() != 0 || m.mux.Stats().HandshakeTimeouts.Load() != 1 {
		t.Errorf("%d bytes are held, %d pending, %d timeouts", held, m.mux.Pending(), m.mux.Stats().HandshakeTimeouts.Load())
	}
}

// TestLongFlights: a client whose certificates are longer than any it needs ends its handshake, in large records as in small ones.
func TestLongFlights(t *testing.T) {
	hello := clientHello(t, &tls.Config{ServerName: "shared.test", MaxVersion: tls.VersionTLS12})
	for name, more := range map[string][]byte{
		"large records": certificateMessage(60<<10, maxRecord), "small records": certificateMessage(9<<10, 1),
	} {
		t.Run(name, func(t *testing.T) {
			m := asking(t, Config{})
			p := m.say(t, hello, more)
			m.await(t, "end", func() bool { return p.EOF() || p.ResetSeen() })
			if f := <-m.failed; !errors.Is(f.err, ErrLongFlight) {
				t.Errorf("failed with %v", f.err)
			}
		})
	}
}

// TestPeersAreForgotten: the certificates of a client are not kept for as long as its connection lasts.
func TestPeersAreForgotten(t *testing.T) {
	ca := issueClient(t, nil, "ca")
	cfg := Config{Policy: policyWith(t, PolicyConfig{ClientAuth: clientcert.Required, Trust: clientcert.NewTrust(bundleOf(t, ca), nil)})}
	forgotten := make(chan string, 1)
	cfg.Terminated = func(_ *reactor.Conn, i Info) reactor.Handler {
		runtime.AddCleanup(i.Client, func(name string) { forgotten <- name }, i.Client.Subject.CommonName)
		return echo()
	}
	m := serveMemory(t, cfg)
	if err := m.echoTLS(t, &tls.Config{ServerName: "x.own.test", Certificates: []tls.Certificate{issueClient(t, ca, "client").TLS(ca)}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "collection of the certificate", func() bool { runtime.GC(); return len(forgotten) > 0 })
	if name := <-forgotten; name != "client" || m.loop.Conns() != 1 {
		t.Errorf("%q was forgotten, %d connections are open", name, m.loop.Conns())
	}
}

// TestLargeFlightsWork: a ClientHello and certificates near their bounds, in large and in small records, end in a session that works.
func TestLargeFlightsWork(t *testing.T) {
	ca := issueClient(t, nil, "ca")
	client := issueClient(t, ca, "client")
	chain := make([]*clientPair, 10)
	for i := range chain {
		chain[i] = issueClient(t, ca, "padding", func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 99999, 2}, Value: make([]byte, 4<<10)}}
		})
	}
	var protocols []string
	for range 60 {
		protocols = append(protocols, strings.Repeat("x", 250))
	}
	eachVersion(t, func(t *testing.T, version uint16) {
		for range 20 {
			m := serveMemory(t, Config{Policy: policyWith(t, PolicyConfig{ClientAuth: clientcert.Required, Trust: clientcert.NewTrust(bundleOf(t, ca), nil)})})
			m.net.SplitRandom(4000)
			err := m.echoTLS(t, &tls.Config{ServerName: "x.own.test", MaxVersion: version, NextProtos: append(protocols, "http/1.1"), Certificates: []tls.Certificate{client.TLS(chain...)}})
			if err != nil {
				t.Fatal(err)
			}
			if i := <-m.infos; i.Client == nil || i.Protocol != protocol.HTTP1 {
				t.Errorf("info %+v", i)
			}
		}
	})
}
