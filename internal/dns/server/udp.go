package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime/debug"

	"turnout/internal/dns/zone"
)

// Sizes of what a worker has. Queries are short; of a longer one the rest is lost, and it is answered as malformed.
const (
	querySize   = 4096
	controlSize = 128
	socketBytes = 4 << 20 // of queries that wait, if the system allows it
)

// worker answers queries that come over one UDP socket.
type worker struct {
	server  *Server
	conn    *net.UDPConn
	answers bool // from the address that the query was sent to, which has to be given to the system
	turn    uint32

	query   zone.Query
	in      [querySize]byte
	control [controlSize]byte
	out     []byte

	counters counters
}

// listenUDP opens a socket for each worker, or one for all where several cannot share an address.
func listenUDP(s *Server, addr string) ([]*worker, error) {
	var all []*worker
	for i := range s.cfg.Workers {
		config := net.ListenConfig{}
		if canShare && s.cfg.Workers > 1 {
			config.Control = share
		} else if i > 0 {
			all = append(all, newWorker(s, all[0].conn, all[0].answers))
			continue
		}
		packets, err := config.ListenPacket(context.Background(), "udp", addr)
		if err != nil {
			for _, w := range all {
				err = errors.Join(err, w.conn.Close())
			}
			return nil, err
		}
		conn, ok := packets.(*net.UDPConn)
		if !ok {
			return nil, errors.New("BUG: a UDP socket is something else")
		}
		_ = conn.SetReadBuffer(socketBytes) // or what the system allows
		bound, _ := conn.LocalAddr().(*net.UDPAddr)
		all = append(all, newWorker(s, conn, bound != nil && bound.IP.IsUnspecified() && askForAddress(conn) == nil))
	}
	return all, nil
}

func newWorker(s *Server, conn *net.UDPConn, answers bool) *worker {
	return &worker{server: s, conn: conn, answers: answers, out: make([]byte, 0, zone.Payload)}
}

// run answers until the socket is closed.
func (w *worker) run() error {
	for {
		control := w.control[:0]
		if w.answers {
			control = w.control[:]
		}
		n, controlled, _, client, err := w.conn.ReadMsgUDPAddrPort(w.in[:], control)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil || client.Port() == 0 {
			continue // what an earlier answer met
		}
		if out := w.answer(w.in[:n], client); len(out) > 0 {
			_, _, _ = w.conn.WriteMsgUDPAddrPort(out, fromAddress(control[:min(controlled, len(control))]), client) // the client asks again
		}
	}
}

// answer returns the answer to a message, nil if there is none. It is the worker's until the next.
func (w *worker) answer(message []byte, client netip.AddrPort) []byte {
	defer w.server.recovered(&w.counters, client)
	q := &w.query
	if !q.Parse(message) {
		w.counters.malformed.Add(1)
		return nil
	}
	w.counters.queries.Add(1)
	switch w.server.limiter.decide(client.Addr(), w.server.cfg.Now()) {
	case drop:
		w.server.overRate()
		w.counters.dropped.Add(1)
		return nil
	case slip:
		w.server.overRate()
		w.counters.slipped.Add(1)
		w.out = zone.Truncated(w.out[:0], q)
		return w.out
	}
	w.turn++
	switch limit := q.Limit(zone.Payload); {
	case q.Signed:
		w.out = w.server.signed(w.out[:0], message, q, client, limit, w.turn, &w.counters)
	case q.Transfer():
		w.out = w.server.transferHead(w.out[:0], message, q, client)
	default:
		w.out = w.server.set.Load().Answer(w.out[:0], q, limit, w.turn)
	}
	w.counters.answered(w.out)
	return w.out
}

// recovered gives up a query that ran into a bug of ours, and nothing else.
func (s *Server) recovered(c *counters, client netip.AddrPort) {
	if v := recover(); v != nil {
		c.panics.Add(1)
		s.cfg.Tell(Event{Kind: Panicked, Peer: client, Err: panicError{v, string(debug.Stack())}})
	}
}
