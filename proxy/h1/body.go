package h1

import (
	"turnout/internal/reactor"
	"turnout/internal/wire/http1"
	"turnout/proxy"
)

// The field lines of the codec's own.
var (
	nameTransferEncoding = []byte("transfer-encoding")
	nameConnection       = []byte("connection")
	valueChunked         = []byte("chunked")
	valueClose           = []byte("close")
	valueKeepAlive       = []byte("keep-alive")
	valueUpgrade         = []byte("Upgrade") // so spelled by clients: some pods look for these letters
	valueTE              = []byte("TE")
	valueUpgradeTE       = []byte("Upgrade, TE")
)

// iterationChunks is how many chunks of a body are relayed before the rest waits for a later iteration: 64 KiB of one-byte chunks would hold up
// everybody else for longer than 64 KiB of anything else.
const iterationChunks = 512

// headRoom is what a head takes besides its target and fields: the first line and the fields of the codec's own.
const headRoom = 256

// headBuffer returns the queue of c with space for a head. te means that the head has a TE field.
func headBuffer(c *reactor.Conn, h *proxy.Head) (b []byte, te bool) {
	n := headRoom + len(h.Method) + len(h.Path) + len(h.Query) + len(h.Reason)
	for i := range h.Fields {
		f := &h.Fields[i]
		n += len(f.Name) + len(f.Value) + len(": \r\n")
		if string(f.Name) == "te" {
			te = true
		}
	}
	return c.BufferFor(n), te
}

// writeBody sends body bytes, as one chunk where the message is framed by chunks.
func writeBody(c *reactor.Conn, p []byte, chunked bool) {
	if len(p) == 0 {
		return
	}
	if !chunked {
		c.Write(p)
		return
	}
	c.SetBuffer(http1.AppendChunkHeader(c.Buffer(), len(p)))
	c.Write(p)
	c.SetBuffer(http1.AppendChunkEnd(c.Buffer()))
}
