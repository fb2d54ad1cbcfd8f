package reactor

// Write queues p.
func (c *Conn) Write(p []byte) { panic("not yet") }

// WireWrite is used by a Layer.
func (c *Conn) WireWrite(p []byte) { panic("not yet") }

// Buffer is the pending output, to be appended to.
func (c *Conn) Buffer() []byte { panic("not yet") }

// SetBuffer gives back the result of Buffer with more bytes appended.
func (c *Conn) SetBuffer(b []byte) { panic("not yet") }

// Flush writes now.
func (c *Conn) Flush() { panic("not yet") }

// Pending counts the queued output bytes.
func (c *Conn) Pending() int { panic("not yet") }

// Congested says that output waits.
func (c *Conn) Congested() bool { panic("not yet") }
