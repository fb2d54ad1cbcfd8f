// Package h2 hosts HTTP/2 on the event loop: it feeds the bytes of client connections to package internal/wire/h2session and
// turns the streams that come out into exchanges of package proxy. The grammar is in internal/wire/h2frame, the states of
// connection and streams in internal/wire/h2session; routing and policy are in proxy; sockets are in internal/reactor.
//
// What is left here is the life of a connection: its timers (the first frames, a header list in several frames, no
// stream for a while, an answer nobody reads), and its end, by drain or by fault.
package h2
