package reactor

import "net/netip"

// Handler gets the events of one Conn, on the loop. Inside any of them every method of every Conn
// of the same loop may be called.
type Handler interface {
	// Connected comes once, before anything else, and only to dialled connections.
	Connected(c *Conn)
	// Data presents input: p is valid for the call only. It returns how many bytes it consumed; the
	// rest is kept and presented again, contiguous, in front of later bytes, and also after Resume,
	// SetHandler. It is not called while paused. Consuming nothing of a full buffer
	// (Config.ReadBuffer) closes the Conn with ErrInputFull.
	Data(c *Conn, p []byte) int
	// EOF says that the peer ended its sending side, after all data was presented. What was not
	// consumed is dropped. The sending direction stays open.
	EOF(c *Conn)
	// Drained says that the output fell to the low-water mark after Congested had been true.
	Drained(c *Conn)
	// Closed is the last event and comes exactly once, never from inside another call. err is nil
	// after Close and CloseNow, else the reason: syscall.Errno, io.ErrUnexpectedEOF (the end came
	// without the layer's), ErrDialTimeout, ErrWriteTimeout, ErrInputFull, ErrClosed, an error of the Layer.
	Closed(c *Conn, err error)
}

// Conn is one connection of a loop.
type Conn struct {
	loop *Loop
	sock socket
	h    Handler
}

// Loop is the loop this Conn belongs to.
func (c *Conn) Loop() *Loop { return c.loop }

// LocalAddr is this side's address.
func (c *Conn) LocalAddr() netip.AddrPort { return c.sock.local() }

// RemoteAddr is the peer's address.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.sock.remote() }

// SetHandler replaces the handler.
func (c *Conn) SetHandler(h Handler) { panic("not yet") }

// Pause stops Data and EOF.
func (c *Conn) Pause() { panic("not yet") }

// Resume continues them.
func (c *Conn) Resume() { panic("not yet") }

// CloseWrite ends the sending side after the queue.
func (c *Conn) CloseWrite() { panic("not yet") }

// Close flushes and closes.
func (c *Conn) Close() { panic("not yet") }

// CloseNow drops everything and closes.
func (c *Conn) CloseNow(reset bool) { panic("not yet") }

// SetLayer puts ly between wire and handler.
func (c *Conn) SetLayer(ly Layer) { panic("not yet") }

// Wire says whether the Conn can be spliced.
func (c *Conn) Wire() bool { panic("not yet") }

// BytesRead counts bytes from the wire.
func (c *Conn) BytesRead() uint64 { panic("not yet") }

// BytesWritten counts bytes the wire took.
func (c *Conn) BytesWritten() uint64 { panic("not yet") }
