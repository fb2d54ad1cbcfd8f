package http1

import "turnout/internal/wire/field"

// Limits bounds what a head may cost. A zero member means its default.
type Limits struct {
	HeadBytes   int // bytes of a whole head, final empty line included; default 24576
	Fields      int // field lines of a head; default 101
	TargetBytes int // bytes of a request-target; default: only HeadBytes bounds it
}

// Defaults of Limits, those of the reference router.
const (
	DefaultHeadBytes = 24576
	DefaultFields    = 101
)

// BodyKind says how the end of a body is found (RFC 9112 section 6.3).
type BodyKind uint8

// The kinds of body. BodyNone is the zero value.
const (
	BodyNone       BodyKind = iota // no byte of body follows
	BodyLength                     // ContentLength bytes follow, at least one
	BodyChunked                    // a ChunkDecoder finds the end
	BodyUntilClose                 // responses only: all bytes until the connection ends
)

// TargetForm is the form of a request-target (RFC 9112 section 3.2).
type TargetForm uint8

// The forms of a request-target. FormOrigin is the zero value.
const (
	FormOrigin    TargetForm = iota // /path?query
	FormAbsolute                    // http://authority/path?query
	FormAuthority                   // host:port, CONNECT only
	FormAsterisk                    // *, OPTIONS only
)

// Request is a parsed request head. All slices are views into the parsed bytes
// (Path of an absolute-form target without a path is a constant: do not write to it). A Request may be parsed into again: its lists keep their capacity.
type Request struct {
	Method []byte     // as received, case-sensitive
	Target []byte     // request-target as received
	Form   TargetForm // of Target
	Scheme []byte     // of an absolute-form target as received, else nil
	Path   []byte     // path of the target up to '?', "/" if it is empty; nil for the authority-form; "*" for the asterisk-form, and what stands for it (RFC 9112 section 3.2.4)
	Query  []byte     // the rest, '?' included; nil without one

	// Authority is the value that routes: the authority of an absolute-form or
	// authority-form target, else Host. Case and port as received. nil only for an
	// HTTP/1.0 request that names no host.
	Authority []byte

	Minor  int           // 0 or 1; a higher minor version is handled as 1 (RFC 9110 section 2.5)
	Fields []field.Field // all fields in order, names lower-cased; repeated identical Host and Content-Length merged

	Body          BodyKind // BodyNone, BodyLength or BodyChunked
	ContentLength int64    // bytes of body: exact, 0 without a body, -1 when chunked
	KeepAlive     bool     // the client is willing to send another request
	Upgrade       []byte   // the one protocol of a valid upgrade request, else nil; never HTTP or TLS in disguise (h2c)
	Expect100     bool     // the client waits for 100 before it sends the body
	Trailers      bool     // TE lists trailers

	// ConnectionOptions are the field names, lower-case, that Connection nominates
	// for removal (RFC 9110 section 7.6.1). Names a client must not be able to
	// remove (identity, forwarding, framing) are left out, as are close,
	// keep-alive, upgrade and te.
	ConnectionOptions [][]byte
}

// Response is a parsed response head. Slices are views as in Request.
type Response struct {
	Status int           // 100..999
	Reason []byte        // as received, may be empty
	Minor  int           // 0 or 1, as in Request
	Fields []field.Field // as in Request; without Content-Length when Status forbids it (RFC 9110 section 8.6)

	Body BodyKind // how the body that follows is framed
	// ContentLength is the length of the body; -1 when unknown (chunked, until
	// close). Without a body it is 0, but for the answer to HEAD and for 304 it is
	// what Content-Length declares, -1 when there is none.
	ContentLength     int64
	KeepAlive         bool     // the connection may carry another response; false after any doubt about framing
	IdleTimeout       int      // seconds after which the sender closes the idle connection, as Keep-Alive says; 0 = not said, -1 = at once
	Upgrade           []byte   // the protocol of a 101 that names one, else nil
	ConnectionOptions [][]byte // as in Request
}
