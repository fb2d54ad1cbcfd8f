package h1

import (
	"turnout/internal/reactor"
	"turnout/proxy/h1/wire"
)

// The field lines of the codec's own.
var (
	nameTransferEncoding = []byte("transfer-encoding")
	nameConnection       = []byte("connection")
	valueChunked         = []byte("chunked")
	valueClose           = []byte("close")
	valueKeepAlive       = []byte("keep-alive")
	valueUpgrade         = []byte("upgrade")
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
