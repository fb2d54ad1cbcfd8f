package proxy

import (
	"turnout/internal/wire/field"
	"turnout/internal/wire/protocol"
	"turnout/proxy/detached"
)

// Field is one header or trailer line. Names are lower-case; values are the
// sender's bytes without the blanks around them.
type Field = field.Field

// Head is a request or response head in no particular wire format.
//
// All byte slices, and the Fields slice itself, belong to the codec that made
// the Head: they are valid until the exchange ends, the pipeline may reorder and
// replace fields in place, and who keeps bytes longer clones them.
type Head struct {
	// Of a request.
	Method    []byte // as received, any token (RFC 9110 section 9.1)
	Target    []byte // the request target as received, for logs and redirects
	Authority []byte // the host that routes, with port if sent; empty when the request named none. The pipeline makes it lower-case, in place
	Path      []byte // what follows the authority up to "?", "/" when empty, "*" for OPTIONS of the server itself
	Query     []byte // from "?" on, or empty

	// Of a response.
	Status int
	Reason []byte // reason phrase, may be empty
	// Detach gives away the connection that a 101 came on; nil = that cannot be joined with another. Afterwards the head is no longer
	// valid.
	Detach func() detached.Conn

	Minor  int               // minor version of a sender of HTTP/1.x; 1 of HTTP/2
	Spoken protocol.Protocol // by the sender: HTTP1 or HTTP2
	Fields []Field           // in the sender's order; framing and connection fields are removed by the pipeline

	ContentLength int64    // exact number of body bytes, -1 when it is not known before the end
	Upgrade       []byte   // the one protocol of a well-formed upgrade (RFC 9110 section 7.8), else nil
	Options       [][]byte // lower-case names that the Connection field nominates (RFC 9110 section 7.6.1)
	Leaving       bool     // of a response: the client is to connect again for its next request
	AdjustCase    bool     // of a request: field names may be sent in the spelling the codec is configured with
	Close         bool     // the receiver of this head shall not expect the connection to live on
}

// addField appends one field.
func (h *Head) addField(name string, value []byte) {
	h.Fields = append(h.Fields, Field{Name: constant(name), Value: value})
}
