// Package h2session is one HTTP/2 connection as a pure state machine: bytes in, events of its streams out; messages in,
// bytes out. It has no socket, no goroutine and no clock: its host feeds it (Session.Receive), lends it a
// buffer to write to (Output) and tells the time.
//
// A Session plays the server's or the client's part; the rules are the same but for who may open streams.
//
//	           HEADERS
//	idle ───────────────► open ── END_STREAM received ──► half-closed (remote) ─┐
//	                       │                                                    ├─► closed
//	                       └───── END_STREAM sent ─────► half-closed (local) ───┘
//	                       RST_STREAM, either way: closed at once (RFC 9113 section 5.1)
//
// # Flow control
//
// Towards the peer, a Stream keeps what its window, or that of the connection, does not allow yet, and says so
// (Stream.SendData); its producer pauses until Sink.OnDrained. From the peer, bytes go to the Sink at once, or wait in the
// Stream while its sink is paused: at most one window of the stream. Windows are opened again as bytes are used, and
// double as long as a stream is never paused (window.go).
//
// # What a peer may cost
//
// One header list is bounded in bytes and fields, its encoded form by the same number of bytes; streams open at once are
// bounded; frames that do nothing for a request (PING, SETTINGS, PRIORITY, empty DATA, windows opened in crumbs, ...) spend a budget that time
// and transferred bytes refill, as do answers to them that are not read, and streams that are reset, by the peer or because of what it sent, spend another (budget.go).
// A peer that overspends gets a GOAWAY with ENHANCE_YOUR_CALM, and the Session is over.
package h2session
