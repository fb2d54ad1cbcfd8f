package reactor

import "testing"

// TestPortableDialGivenUp: closing a socket ends a dial that nobody answers.
func TestPortableDialGivenUp(t *testing.T) {
	addr := deaf(t)
	eng := portableTestEngine(t, Config{})
	var socks []socket
	for range 8 {
		s, err := eng.dial(addr)
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
