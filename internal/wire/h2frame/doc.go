// Package h2frame is the grammar of HTTP/2 without its states: frame headers (RFC 9113 section 4), the frames that
// are written whole, header lists and what makes a message of them (section 8), an HPACK encoder without a
// dynamic table and a decoder with one (RFC 7541).
//
// What a Block accepts can be said in HTTP/1.1: a request that came in by HTTP/2 cannot end a line, a head or a
// message of the connection to its endpoint.
package h2frame
