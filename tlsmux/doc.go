// Package tlsmux turns the first bytes of a connection to the TLS port into a decision and, where the decision is to
// terminate, into a TLS session hosted by the event loop.
//
//	first bytes ─► HelloParser ─► Table.SNI ─┬─► passthrough: Config.Passthrough gets the connection, nothing consumed
//	                                         └─► terminate: handshake in steps ─► Layer on the loop ─► Config.Terminated
//
// The name a client asks for is read once, from one table snapshot, and everything that is decided from it (certificate,
// strictness, the Info given to the next handler) comes from that one reading. crypto/tls reads the same bytes again; the
// handshake fails should it ever see another name than the parser did.
//
// crypto/tls is written for blocking connections. During the handshake it gets one: it runs as a coroutine, and where
// it would block it gives way to what computes it, one of Workers or the loop (docs/decisions/0009). After the
// handshake it runs on the loop itself: reading from the wire then answers a temporary error when there is nothing, which
// crypto/tls reports without remembering it.
package tlsmux
