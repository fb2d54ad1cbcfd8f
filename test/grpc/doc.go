// Package grpc sends the calls of the gRPC project's interoperability suite, with its own client and server, through the
// router, without TLS and with it on either side. It is a module of its own: nobody who builds the router needs these dependencies.
package grpc
