package h1

import (
	"turnout/internal/reactor"
	"turnout/proxy/h1/wire"
)

// writeBody sends body bytes, as one chunk where the message is framed by chunks.
func writeBody(c *reactor.Conn, p []byte, chunked bool) {
	if len(p) == 0 {
		return
	}
	if !chunked {
		c.Write(p)
		return
	}
	c.SetBuffer(wire.AppendChunkHeader(c.Buffer(), len(p)))
	c.Write(p)
	c.SetBuffer(wire.AppendChunkEnd(c.Buffer()))
}
