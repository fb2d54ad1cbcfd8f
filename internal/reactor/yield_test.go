package reactor

import (
	"net/netip"
	"testing"

	"turnout/internal/reactor/memnet"
)

// TestYield: a handler that yields is called once in an iteration, gets everything in order, the end included, and what others have
// comes in between.
func TestYield(t *testing.T) {
	for seed := range uint64(20) {
		n := memnet.New(seed)
		l := NewOn(n, Config{})
		type share struct {
			turn  uint32
			calls int
		}
		most, ended := 0, 0
		got := map[*Conn]string{}
		shares := map[*Conn]*share{}
		var order []*Conn
		ln, err := l.Listen(netip.MustParseAddrPort("192.0.2.1:80"), func(c *Conn) Handler {
			shares[c] = new(share)
			return &hooks{
				data: func(c *Conn, p []byte) int {
					s := shares[c]
					if s.turn != l.Iteration() {
						*s = share{turn: l.Iteration()}
					}
					s.calls++
					most = max(most, s.calls)
					got[c] += string(p[:1])
					order = append(order, c)
					c.Yield()
					return 1
				},
				eof: func(c *Conn) { ended++; c.Close() },
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			p := n.Connect(ln.Addr())
			p.Write([]byte("0123456789"))
			p.CloseWrite()
		}
		n.Run()
		if most != 1 || ended != 2 || len(got) != 2 {
			t.Fatalf("seed %d: %d calls in an iteration, %d of %d ended", seed, most, ended, len(got))
		}
		for _, s := range got {
			if s != "0123456789" {
				t.Fatalf("seed %d: got %q", seed, s)
			}
		}
		same := 0
		for i := 1; i < len(order); i++ {
			if order[i] == order[i-1] {
				same++
			}
		}
		if same > 12 { // in a row: half of the calls, when both began at different iterations
			t.Errorf("seed %d: %d of %d calls followed one of the same Conn", seed, same, len(order))
		}
	}
}
