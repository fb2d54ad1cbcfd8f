package tlsmux

import (
	"net/netip"
	"testing"
	"time"

	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
)

// recorder is a handler that remembers what it is given.
type recorder struct {
	local, remote netip.AddrPort
	got           string
	eof           bool
}

func (*recorder) Connected(*reactor.Conn) {}
func (r *recorder) Data(_ *reactor.Conn, p []byte) int {
	r.got += string(p)
	return len(p)
}
func (r *recorder) EOF(*reactor.Conn)         { r.eof = true }
func (*recorder) Drained(*reactor.Conn)       {}
func (*recorder) Closed(*reactor.Conn, error) {}

// frontRig is a port to which another proxy connects on an in-memory network.
type frontRig struct {
	net   *memnet.Network
	front *FrontProxy
	port  netip.AddrPort
	given []*recorder
}

func newFrontRig(t *testing.T, n *memnet.Network) *frontRig {
	t.Helper()
	r := &frontRig{net: n, port: netip.MustParseAddrPort("192.0.2.1:8080")}
	var err error
	r.front, err = NewFrontProxy(FrontProxyConfig{Timeout: 3 * time.Second})
	must(t, err)
	next := func(c *reactor.Conn) reactor.Handler {
		h := &recorder{local: c.LocalAddr(), remote: c.RemoteAddr()}
		r.given = append(r.given, h)
		return h
	}
	_, err = reactor.NewOn(n, reactor.Config{}).Listen(r.port, r.front.Accept(next))
	must(t, err)
	return r
}

func TestFrontProxyHandsOnAddressesAndRest(t *testing.T) {
	for name, tc := range map[string]struct{ header, remote, local string }{
		"v1":    {"PROXY TCP4 192.0.2.7 198.51.100.1 4660 443\r\n", "192.0.2.7:4660", "198.51.100.1:443"},
		"v2":    {proxyV2(0x21, 0x21, body6), "[2001:db8::7]:4660", "[2001:db8::1]:443"},
		"local": {proxyV2(0x20, 0x00, ""), "", "192.0.2.1:8080"},
	} {
		for _, split := range []int{0, 1, 3} {
			n := memnet.New(1)
			n.Split(split)
			r := newFrontRig(t, n)
			c := n.Connect(r.port)
			c.Write([]byte(tc.header + "first bytes"))
			c.CloseWrite()
			n.Run()
			if len(r.given) != 1 {
				t.Fatalf("%s split at %d: %d connections were handed on", name, split, len(r.given))
			}
			if tc.remote == "" {
				tc.remote = c.Local().String()
			}
			h := r.given[0]
			if h.got != "first bytes" || !h.eof || h.local.String() != tc.local || h.remote.String() != tc.remote {
				t.Errorf("%s split at %d: %+v", name, split, h)
			}
			if r.front.Rejected() != 0 {
				t.Error("it was counted as rejected")
			}
		}
	}
}

func TestFrontProxyRefuses(t *testing.T) {
	for name, send := range map[string]string{
		"none":      "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"broken":    "PROXY TCP4 192.0.2.7 198.51.100.1 4660\r\nGET / HTTP/1.1\r\n\r\n",
		"half":      "PROXY TCP4 192.0.2.7",
		"nothing":   "",
		"TLVs only": proxyV2(0x21, 0x11, body4+tlv(0xea, string(make([]byte, 5000)))),
	} {
		for _, leaves := range []bool{false, true} {
			n := memnet.New(1)
			r := newFrontRig(t, n)
			c := n.Connect(r.port)
			c.Write([]byte(send))
			if leaves {
				c.CloseWrite()
			}
			n.Advance(2 * time.Second)
			if waits := name == "half" || name == "nothing"; waits && !leaves && (c.EOF() || c.ResetSeen()) {
				t.Errorf("%s: closed before its time", name)
			}
			n.Advance(2 * time.Second)
			if !c.EOF() && !c.ResetSeen() || c.Total() != 0 || len(r.given) != 0 || r.front.Rejected() != 1 {
				t.Errorf("%s: ended %v, %d bytes, handed on %d, rejected %d", name, c.EOF() || c.ResetSeen(), c.Total(), len(r.given), r.front.Rejected())
			}
		}
	}
}

func TestFrontProxyConfig(t *testing.T) {
	if _, err := NewFrontProxy(FrontProxyConfig{Timeout: -1}); err == nil {
		t.Error("a negative timeout was accepted")
	}
}
