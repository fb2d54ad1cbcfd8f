package reactor

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestPortableDialGivenUp: closing a socket ends a dial that nobody answers. On Linux a listener
// whose backlog is full answers no SYN.
func TestPortableDialGivenUp(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	eng := portableTestEngine(t, Config{})
	var socks []socket
	for range 8 {
		s, err := eng.dial(boundAddr(fd))
		if err != nil {
			t.Fatal(err)
		}
		if err := eng.register(s, &Conn{}); err != nil {
			t.Fatal(err)
		}
		socks = append(socks, s)
	}
	for connected := false; !connected; { // one is through, those behind it hang
		_ = eng.wait(patience, func(*Conn, events) { connected = true })
	}
	for _, s := range socks {
		s.close(true)
	}
	gone := make(chan struct{})
	go func() { eng.running.Wait(); close(gone) }()
	get(t, "the end of the dials", gone)
}
