// Package wire is the grammar of HTTP/2 without its states: frame headers (RFC 9113 section 4), the frames that
// are written whole, header lists and what makes a message of them (section 8), and an HPACK encoder without a
// dynamic table (RFC 7541). HPACK is decoded by golang.org/x/net/http2/hpack.
//
// What a Block accepts can be said in HTTP/1.1: a request that came in by HTTP/2 cannot end a line, a head or a
// message of the connection to its endpoint.
package wire
