package reactor

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
)

// Held is what memory of a loop is held for.
type Held uint8

// Input, output and what layers hold are counted by the loop itself, the others by those who hold them (Loop.CountHeld).
const (
	HeldInput      Held = iota // bytes from peers that handlers did not consume yet
	HeldOutput                 // bytes for peers that they did not take yet
	HeldLayers                 // what layers keep: parts of TLS records
	HeldStreams                // bytes that wait in streams of HTTP/2
	HeldBodies                 // bodies of requests that may have to be sent again
	HeldSpare                  // empty buffers for what comes next; not counted against Config.HeldBytes
	HeldHandshakes             // TLS handshakes that are not complete; they have a bound of their own
	Helds                      // how many there are
)

// String is the word for h in metrics.
func (h Held) String() string {
	return [...]string{"input", "output", "layers", "streams", "bodies", "spare", "handshakes", "other"}[min(h, Helds)]
}

// ErrHeld ends Conns of peers that hold more memory than others when the loop may hold no more (Config.HeldBytes).
var ErrHeld = errors.New("the loop holds too much memory for peers that do not go on")

// ledger counts the bytes that a loop holds. Counts change on the loop; what anybody may read is written once per iteration.
type ledger struct {
	now    [Helds]int64
	seen   [Helds]int64 // as published
	said   [Helds]atomic.Int64
	shed   atomic.Uint64
	layers int64 // as Conns count them
	others []account
	again  int64 // not before this time of the loop is relieve tried anew

	stuck   []holder             // scratch of relieve
	sources map[netip.Addr]int64 // the same
}

// holder is a Conn that holds memory for a peer that does not go on.
type holder struct {
	c    *Conn
	from netip.Addr
	held int64
}

// Holder is a Handler that holds memory for the peer of its Conn besides what the Conn does. Held returns bytes.
type Holder interface{ Held() int }

// CountHeld has fn, which returns bytes, asked at the end of each iteration for what is held of a kind that the loop does not count by
// itself. Several may be asked for the same kind. It is called before Run or on the loop.
func (l *Loop) CountHeld(what Held, fn func() int) {
	l.held.others = append(l.held.others, account{what, fn})
}

// account is what somebody else holds.
type account struct {
	what Held
	held func() int
}

// read brings the accounts up to date.
func (g *ledger) read(a *arena) {
	g.now = [Helds]int64{HeldInput: a.held[HeldInput], HeldOutput: a.held[HeldOutput], HeldLayers: g.layers, HeldSpare: a.spare}
	for _, other := range g.others {
		g.now[other.what] += int64(other.held())
	}
}

// HeldBytes is what the loop held at the end of its last iteration, in bytes. Any goroutine may call it.
func (l *Loop) HeldBytes(what Held) int64 { return l.held.said[what].Load() }

// ShedConns counts the Conns that ended with ErrHeld. Any goroutine may call it.
func (l *Loop) ShedConns() uint64 { return l.held.shed.Load() }

// counted is the sum that Config.HeldBytes bounds.
func (g *ledger) counted() (sum int64) {
	for _, n := range g.now[:HeldSpare] {
		sum += n
	}
	return sum
}

// settle ends the accounts of an iteration.
func (l *Loop) settleHeld() {
	g := &l.held
	g.read(&l.arena)
	if g.now == g.seen {
		return
	}
	g.seen = g.now
	for i := range g.now {
		g.said[i].Store(g.now[i])
	}
	if most := int64(l.cfg.HeldBytes); most > 0 && g.counted() > most && l.clock >= g.again {
		l.relieve(most - most/8)
	}
}

// relievePause is how long after relieve found nothing more to end it looks again.
const relievePause = int64(100 * time.Millisecond)

// relieve ends Conns whose peers do not go on until no more than target bytes are held: those of the source that holds most in
// sum first, and of one source the largest first. So many connections of one source cost no other source one.
func (l *Loop) relieve(target int64) {
	g := &l.held
	if g.sources == nil {
		g.sources = map[netip.Addr]int64{}
	}
	for c := l.first; c != nil; c = c.next {
		if held := c.heldForPeer(); held > 0 {
			h := holder{c, c.RemoteAddr().Addr(), held}
			g.stuck = append(g.stuck, h)
			g.sources[h.from] += held
		}
	}
	slices.SortFunc(g.stuck, func(a, b holder) int {
		return cmp.Or(cmp.Compare(g.sources[b.from], g.sources[a.from]), a.from.Compare(b.from), cmp.Compare(b.held, a.held))
	})
	excess, n := g.counted()-target, 0
	for ; n < len(g.stuck) && excess > 0; n++ {
		excess -= g.stuck[n].held
	}
	InBursts(l, slices.Clone(g.stuck[:n]), func(h holder) {
		if h.c.state == stateDead || h.c.heldForPeer() == 0 {
			return
		}
		g.shed.Add(1)
		h.c.kill(ErrHeld, true)
		if shed := l.cfg.Shed; shed != nil {
			shed()
		}
	})
	clear(g.stuck)
	g.stuck = g.stuck[:0]
	clear(g.sources)
	g.again = l.clock + relievePause
}

// heldForPeer is what a Conn holds because its peer does not go on: output that the system does not take, and input that is no
// whole message yet or waits for such output. 0 for those that are served.
func (c *Conn) heldForPeer() int64 {
	if c.Pending() > 0 && c.flags&flagWritable != 0 {
		return 0 // it goes out in this iteration or the next
	}
	held := 0
	if b := c.buffered; b != nil {
		held = cap(b.in) + cap(b.out.b)
	}
	if c.layer != nil {
		held += cap(c.layer.wire.b)
		held += c.layer.held
	}
	if h, ok := c.h.(Holder); ok {
		held += h.Held()
	}
	return int64(held)
}
