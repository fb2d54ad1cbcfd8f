// Package server is the request path of a router as one value: event loops with the servers of HTTP/1.1, HTTP/2 and passthrough
// connections, TLS towards clients and endpoints, health checks, the watch over overload, and the end of it all in order. A caller that
// publishes routing tables in the Store of a Server serves routes; where these come from a Server does not know.
//
//	s, err := server.New(server.Config{HTTPAddr: "127.0.0.1:0"}) // zero values are those of the router
//	err = s.Listen()
//	err = s.Run(ctx) // until ctx is done and running requests are over
//
// A RequestPath is the part without sockets, goroutines and clocks of its own. A Server runs one on loops of its own; tests run one
// on loops of the in-memory network. So the packages of the request path are put together in one place.
package server
