package reactor

import (
	"testing"

	"turnout/internal/reactor/engine"
)

// TestPortableDialGivenUp: closing a socket ends a dial that nobody answers.
func TestPortableDialGivenUp(t *testing.T) {
	addr := deaf(t)
	eng := portableTestEngine(t, Config{})
	var socks []engine.Socket
	for range 8 {
		s, err := eng.Dial(addr, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := eng.Register(s, &Conn{}); err != nil {
			t.Fatal(err)
		}
		socks = append(socks, s)
	}
	for connected := false; !connected; { // one is through, those after it hang
		_ = eng.Wait(patience, func(any, engine.Events) { connected = true })
	}
	for _, s := range socks {
		s.Close(true)
	}
	gone := make(chan struct{})
	go func() { eng.running.Wait(); close(gone) }()
	get(t, "the end of the dials", gone)
}
