package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"turnout/internal/bound"
	"turnout/internal/dns/zone"
)

// maxMessage is how long a message over TCP may be (RFC 1035 section 4.2.2).
const maxMessage = 1<<16 - 1

// gate lets connections in. Beyond the bound it closes the one that has been silent for longest; of one prefix it lets in no more than its share.
type gate struct {
	server   *Server
	listener net.Listener
	counters counters
	buffers  sync.Pool     // of *[]byte, for answers
	ended    chan struct{} // closed by close

	mu      sync.Mutex
	closed  bool
	conns   map[*conn]struct{}
	clients map[uint64]int // connections by prefix
	running sync.WaitGroup
}

// conn is a connection.
type conn struct {
	net.Conn
	gate   *gate
	client netip.AddrPort
	prefix uint64
	used   time.Time // when it asked last; guarded by gate.mu
	query  zone.Query
}

func newGate(s *Server, l net.Listener) *gate {
	return &gate{
		server: s, listener: l, conns: map[*conn]struct{}{}, clients: map[uint64]int{}, ended: make(chan struct{}),
		buffers: sync.Pool{New: func() any { return new([]byte) }},
	}
}

// open is how many connections there are.
func (g *gate) open() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conns)
}

// kernelBytes is how much of an answer the system holds for a client that does not read.
const kernelBytes = 128 << 10

// acceptPause is between attempts to accept while there are no descriptors left.
const acceptPause = 20 * time.Millisecond

// run accepts until close.
func (g *gate) run() error {
	defer g.running.Wait()
	for {
		raw, err := g.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			g.pause() // too many descriptors, or the client has gone already
			continue
		}
		if c := g.admit(raw); c != nil {
			g.running.Go(c.serve)
		}
	}
}

// pause waits a little, or until close.
func (g *gate) pause() {
	timer := time.NewTimer(acceptPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.ended:
	}
}

// admit lets a connection in, or closes it and returns nil.
func (g *gate) admit(raw net.Conn) *conn {
	addr, ok := raw.RemoteAddr().(*net.TCPAddr)
	if !ok {
		_ = raw.Close()
		return nil
	}
	if socket, ok := raw.(*net.TCPConn); ok {
		_ = socket.SetWriteBuffer(kernelBytes) // or what the system has
	}
	client := addr.AddrPort()
	c := &conn{Conn: raw, gate: g, client: client, prefix: prefixOf(client.Addr()), used: g.server.cfg.Now()}
	limits := &g.server.cfg.Limits
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.clients[c.prefix] >= limits.ClientShare {
		if !g.closed {
			g.server.cfg.Bounds.Reached(bound.NameClients)
		}
		_ = raw.Close()
		return nil
	}
	if len(g.conns) >= limits.Connections {
		g.server.cfg.Bounds.Reached(bound.NameConnections)
		g.drop(g.silent())
	}
	g.conns[c] = struct{}{}
	g.clients[c.prefix]++
	return c
}

// silent returns the connection that asked last before all others. g.mu is held.
func (g *gate) silent() *conn {
	var oldest *conn
	for c := range g.conns {
		if oldest == nil || c.used.Before(oldest.used) {
			oldest = c
		}
	}
	return oldest
}

// drop closes a connection. g.mu is held.
func (g *gate) drop(c *conn) {
	if _, ok := g.conns[c]; !ok {
		return
	}
	delete(g.conns, c)
	if g.clients[c.prefix]--; g.clients[c.prefix] == 0 {
		delete(g.clients, c.prefix)
	}
	_ = c.Close()
}

// close closes the listener and all connections.
func (g *gate) close() {
	_ = g.listener.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		close(g.ended)
	}
	g.closed = true
	for c := range g.conns {
		g.drop(c)
	}
}

// serve answers the queries of a connection, one after the other, until it ends.
func (c *conn) serve() {
	defer func() {
		c.gate.mu.Lock()
		defer c.gate.mu.Unlock()
		c.gate.drop(c)
	}()
	defer c.gate.server.recovered(&c.gate.counters, c.client)
	limits := &c.gate.server.cfg.Limits
	in := make([]byte, 2+limits.MessageBytes)
	have := 0
	for {
		if err := c.SetReadDeadline(time.Now().Add(limits.Idle)); err != nil {
			return
		}
		size, err := c.read(in, &have)
		if err != nil {
			return
		}
		c.touch()
		if c.answer(in[2:2+size]) != nil {
			return
		}
		have = copy(in, in[2+size:have])
	}
}

// touch notes that the connection is in use.
func (c *conn) touch() {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.used = c.gate.server.cfg.Now()
}

var errTooLong = errors.New("a query is too long")

// read reads until in begins with a whole message, and returns its size without the two bytes before it (RFC 1035 section 4.2.2). have is how
// many bytes there are.
func (c *conn) read(in []byte, have *int) (int, error) {
	for {
		if *have >= 2 {
			size := int(binary.BigEndian.Uint16(in))
			if size > len(in)-2 {
				return 0, errTooLong
			}
			if *have >= 2+size {
				return size, nil
			}
		}
		n, err := c.Read(in[*have:])
		if *have += n; err != nil {
			return 0, fmt.Errorf("cannot read a query: %w", err)
		}
	}
}

// answer answers a message. An error ends the connection.
func (c *conn) answer(message []byte) error {
	s, q, count := c.gate.server, &c.query, &c.gate.counters
	if !q.Parse(message) {
		count.malformed.Add(1)
		return errors.New("no query")
	}
	count.queries.Add(1)
	if q.Transfer() {
		return s.transfer(message, q, c.client, count, func(b []byte) error {
			count.answers[b[3]&15].Add(1)
			c.touch()
			return c.write(append(make([]byte, 2, 2+len(b)), b...))
		})
	}
	buffer, _ := c.gate.buffers.Get().(*[]byte)
	defer c.gate.buffers.Put(buffer)
	out := append((*buffer)[:0], 0, 0)
	turn := uint32(count.queries.Load())
	if q.Signed {
		out = s.signed(out, message, q, c.client, maxMessage, turn, count)
	} else {
		out = s.set.Load().Answer(out, q, maxMessage, turn)
	}
	*buffer = out
	count.answered(out[2:])
	return c.write(out)
}

// write sends a message, which begins with room for its size.
func (c *conn) write(b []byte) error {
	binary.BigEndian.PutUint16(b, uint16(len(b)-2))
	if err := c.SetWriteDeadline(time.Now().Add(c.gate.server.cfg.Limits.Write)); err != nil {
		return fmt.Errorf("cannot answer: %w", err)
	}
	if _, err := c.Write(b); err != nil {
		return fmt.Errorf("cannot answer: %w", err)
	}
	return nil
}
