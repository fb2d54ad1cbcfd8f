package wire

import "turnout/proxy/field"

// Error is a rejection.
type Error struct {
	Status int    // what to answer: 400, 414, 417, 431, 501, 505; 502 for a response
	Reason string // stable short code, for example "cl-te"
	Clause string // for example "RFC 9112 section 6.3"
}

// Error implements error.
func (e *Error) Error() string { return "cannot parse message: " + e.Reason + " (" + e.Clause + ")" }

// SkipEmptyLines is the number of bytes of empty lines (CRLF) p starts with.
func SkipEmptyLines(p []byte) int { panic("stub") }

// FindHeadEnd returns the length of the head p starts with, 0 = incomplete.
func FindHeadEnd(p []byte, from int, lim Limits) (n int, err error) { panic("stub") }

// ParseRequest parses one complete request head.
func ParseRequest(b []byte, r *Request, lim Limits) error { panic("stub") }

// ParseResponse parses one complete response head.
func ParseResponse(b []byte, r *Response, requestMethod []byte, lim Limits) error { panic("stub") }

// ChunkState is what Next wants.
type ChunkState uint8

// The chunk states.
const (
	ChunkMore ChunkState = iota // p is consumed: feed the following bytes
	ChunkData                   // data was yielded: call Next with the rest of p
	ChunkDone                   // the body ended, trailers included; p[n:] belongs to the next message
)

// ChunkLimits bounds a chunked body; zero members mean defaults.
type ChunkLimits struct {
	LineBytes     int // bytes of one chunk-size line
	TrailerBytes  int
	TrailerFields int
}

// ChunkDecoder decodes a chunked body.
type ChunkDecoder struct{}

// Reset makes d ready for another body.
func (d *ChunkDecoder) Reset(lim ChunkLimits) { panic("stub") }

// Next consumes n bytes of p and yields at most one run of body bytes, a view into p.
func (d *ChunkDecoder) Next(p []byte) (data []byte, n int, state ChunkState, err error) {
	panic("stub")
}

// Trailers are the trailer fields, after ChunkDone and until Reset.
func (d *ChunkDecoder) Trailers() []field.Field { panic("stub") }

// AdjustName re-cases a field name.
type AdjustName func(name []byte) []byte

// AppendRequestLine appends the request line.
func AppendRequestLine(dst, method, target []byte, minor int) []byte { panic("stub") }

// AppendTarget appends the target to forward: origin-form, "*" or authority-form.
func AppendTarget(dst []byte, r *Request) []byte { panic("stub") }

// AppendStatusLine appends the status line; a nil reason means the standard phrase.
func AppendStatusLine(dst []byte, minor, status int, reason []byte) []byte { panic("stub") }

// AppendField appends one field line; adjust may be nil.
func AppendField(dst, name, value []byte, adjust AdjustName) []byte { panic("stub") }

// AppendFields appends field lines; adjust may be nil.
func AppendFields(dst []byte, fields []field.Field, adjust AdjustName) []byte { panic("stub") }

// AppendHeadEnd appends the empty line.
func AppendHeadEnd(dst []byte) []byte { panic("stub") }

// AppendChunkHeader appends the size line of a chunk of n > 0 bytes.
func AppendChunkHeader(dst []byte, n int) []byte { panic("stub") }

// AppendChunkEnd appends the CRLF after the data of a chunk.
func AppendChunkEnd(dst []byte) []byte { panic("stub") }

// AppendLastChunk appends the last chunk, the trailers and the empty line.
func AppendLastChunk(dst []byte, trailers []field.Field, adjust AdjustName) []byte { panic("stub") }

// ReasonPhrase is the standard phrase of status, "" when it has none.
func ReasonPhrase(status int) string { panic("stub") }

// IsHopByHop says whether name (lower-case) must not be forwarded.
func IsHopByHop(name []byte) bool { panic("stub") }

// IsForbiddenTrailer says whether name (lower-case) must not appear in trailers.
func IsForbiddenTrailer(name []byte) bool { panic("stub") }
