package reactor

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestPackedAddress(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1:80":          "192.0.2.1:80",
		"[2001:db8::1]:443":     "[2001:db8::1]:443",
		"[::ffff:192.0.2.1]:80": "192.0.2.1:80",
		"[fe80::1%eth0]:80":     "[fe80::1]:80",
		"[::]:1":                "[::]:1",
	} {
		if got := pack(netip.MustParseAddrPort(text)).unpack().String(); got != want {
			t.Errorf("%s became %s; want %s", text, got, want)
		}
	}
	if got := pack(netip.AddrPort{}).unpack(); got.IsValid() {
		t.Errorf("no address became %v", got)
	}
}

// TestLocalAddresses: sockets keep their address in one place, and still each has its own.
func TestLocalAddresses(t *testing.T) {
	l := steppedLoop(t, Config{})
	var conns []*Conn
	ln, err := l.Listen(netip.MustParseAddrPort("0.0.0.0:0"), func(c *Conn) Handler { conns = append(conns, c); return &hooks{} })
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.1"} {
		want := netip.AddrPortFrom(netip.MustParseAddr(text), ln.Addr().Port())
		rawClient(t, want)
		step(t, l, "accept", func() bool { return len(conns) > i })
		if got := conns[i].LocalAddr(); got != want {
			t.Errorf("address %v; want %v", got, want)
		}
	}
	first, second := conns[0].sock.(*epollSocket), conns[1].sock.(*epollSocket)
	if first.here != second.here {
		t.Error("the same address is kept twice")
	}
	if got := conns[2].LocalAddr().Addr(); got != netip.MustParseAddr("127.0.0.2") {
		t.Errorf("address %v, once another socket has asked for its own", got)
	}
}

// TestGiveUpAfter: the system is given how long bytes may stay unacknowledged.
func TestGiveUpAfter(t *testing.T) {
	l := steppedLoop(t, Config{})
	accepted := false
	ln, err := l.Listen(netip.MustParseAddrPort("127.0.0.1:0"), func(*Conn) Handler { accepted = true; return &hooks{} })
	if err != nil {
		t.Fatal(err)
	}
	c := l.Dial(ln.Addr(), &hooks{}, 0)
	step(t, l, "connect", func() bool { return accepted && c.state == stateOpen })
	c.GiveUpAfter(20 * time.Second)
	ms, err := unix.GetsockoptInt(int(c.sock.(*epollSocket).fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	if err != nil || ms != 20000 {
		t.Errorf("TCP_USER_TIMEOUT is %d ms, %v", ms, err)
	}
	c.CloseNow(true)
	c.GiveUpAfter(time.Second) // nothing
}
