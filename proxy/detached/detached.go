// Package detached has the connection of an endpoint that has answered 101, on its way from the codec that gives it away to the one
// that joins it with the client's. The pipeline, which lies between them and sees no sockets, passes it on and can do nothing with it.
package detached

import "turnout/internal/reactor"

// Conn is such a connection. The zero value is none. The last holder owns the connection.
type Conn struct{ conn *reactor.Conn }

// Of wraps c.
func Of(c *reactor.Conn) Conn { return Conn{c} }

// From returns what Of wrapped. It is for codecs.
func From(c Conn) *reactor.Conn { return c.conn }
