// Package http1 is the HTTP/1.1 codec: bytes to messages and back, strict by
// construction. It knows no sockets, no goroutines and no time.
//
// A reader finds the end of a head (SkipEmptyLines, FindHeadEnd), parses it in
// place (ParseRequest, ParseResponse) and learns from it how the body is framed.
// A chunked body goes through a ChunkDecoder. Everything is a view into the bytes
// the caller owns; nothing is allocated per message.
//
// What is accepted is what is forwarded: no line is repaired, joined or guessed.
// Where RFC 9112 lets a recipient choose between repairing and rejecting, this
// package rejects; each rejection is an *Error that names its clause.
package http1
