package reactor

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// TestYieldedConnsShareAnIteration: however many Conns want more than their share, an iteration serves them for a short time only, in turns.
func TestYieldedConnsShareAnIteration(t *testing.T) {
	l := steppedLoop(t, Config{})
	const many = 20
	calls := map[*Conn]int{}
	inTurn, most := map[uint32]int{}, 0
	ln, err := l.Listen(netip.MustParseAddrPort("127.0.0.1:0"), func(c *Conn) Handler {
		c.Establish()
		return &hooks{data: func(c *Conn, _ []byte) int {
			if calls[c]++; calls[c] > 1 {
				inTurn[l.Iteration()]++
				most = max(most, inTurn[l.Iteration()])
				for began := time.Now(); time.Since(began) < time.Duration(yieldShare); {
				}
			}
			c.Yield()
			return 1
		}}
	})
	if err != nil {
		t.Fatal(err)
	}
	for range many {
		peer, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		if _, err := peer.Write([]byte("0123456789")); err != nil {
			t.Fatal(err)
		}
	}
	for done := 0; done < many; {
		if err := l.iterate(time.Second); err != nil {
			t.Fatal(err)
		}
		done = 0
		least, last := 10, 0
		for _, n := range calls {
			least, last = min(least, n), max(last, n)
			if n == 10 {
				done++
			}
		}
		if len(calls) == many && least > 1 && last-least > 3 { // they were accepted one after the other
			t.Fatalf("one was served %d times, another %d times", last, least)
		}
	}
	if most != 1 {
		t.Errorf("an iteration served %d of them, each for its whole share", most)
	}
}
