// Package h1 hosts HTTP/1.1 on the event loop: it turns the bytes of client
// connections into exchanges of package proxy, and exchanges into bytes for
// endpoints and back. The grammar is in internal/wire/http1; routing and policy are in proxy;
// sockets are in internal/reactor. What is left here is the life of a connection:
// when a head is complete, whose turn it is, and whether the connection may carry
// another message.
//
// A client connection is a serverConn: head → body → wait (for the response) →
// head. A connection to an endpoint is a clientConn: connect → idle ⇄ busy. A
// clientConn goes back to the pool of its loop and endpoint only when request and
// response are both complete and nothing odd happened; after any doubt about
// framing it is closed.
//
// Heads are copied once, from the loop's read buffer into memory that belongs to
// the request (or response) until the exchange ends; bodies are not copied.
package h1
