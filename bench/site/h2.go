package site

import (
	"bufio"
	"bytes"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// H2 is a client's connection of HTTP/2 frame by frame: frames are queued until Flush. One goroutine may use it.
type H2 struct {
	net.Conn
	*http2.Framer // queues what it writes; Next reads

	// Literal has the same request encoded as the same bytes each time.
	Literal bool
	// Scheme of requests; NewH2 sets http.
	Scheme string
	// ID of the next request.
	ID uint32

	in    *bufio.Reader
	out   bytes.Buffer
	enc   *hpack.Encoder
	block bytes.Buffer
}

// NewH2 queues the preface and the settings. What comes is read in pieces of so many bytes.
func NewH2(c net.Conn, buffer int, settings ...http2.Setting) *H2 {
	h := &H2{Conn: c, Scheme: "http", ID: 1, in: bufio.NewReaderSize(c, buffer)}
	h.Framer = http2.NewFramer(&h.out, h.in)
	h.SetReuseFrames()
	h.enc = hpack.NewEncoder(&h.block)
	h.out.WriteString(http2.ClientPreface)
	_ = h.WriteSettings(settings...) // a buffer takes everything
	return h
}

// Get queues a request with fields, and returns the number of its stream.
func (h *H2) Get(host, path string, fields ...[2]string) uint32 {
	h.block.Reset()
	for _, f := range append([][2]string{{":method", "GET"}, {":scheme", h.Scheme}, {":authority", host}, {":path", path}}, fields...) {
		_ = h.enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: h.Literal})
	}
	id := h.ID
	h.ID += 2
	_ = h.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: h.block.Bytes(), EndStream: true, EndHeaders: true})
	return id
}

// Flush sends what is queued.
func (h *H2) Flush() {
	if h.out.Len() == 0 {
		return
	}
	_, err := h.Write(h.out.Bytes())
	h.out.Reset()
	Checkf(err, "cannot send")
}

// Buffered is how many bytes can be read without waiting.
func (h *H2) Buffered() int { return h.in.Buffered() }

// Next reads a frame, which is whole until the next one is read, and acknowledges SETTINGS.
func (h *H2) Next() http2.FrameHeader {
	f, err := h.ReadFrame()
	Checkf(err, "cannot read")
	if f.Header().Type == http2.FrameSettings && !f.Header().Flags.Has(http2.FlagSettingsAck) {
		_ = h.WriteSettingsAck()
		h.Flush()
	}
	return f.Header()
}

// Ends tells whether a frame is the last of an answer.
func Ends(f http2.FrameHeader) bool {
	return (f.Type == http2.FrameData || f.Type == http2.FrameHeaders) && f.Flags.Has(http2.FlagDataEndStream)
}
