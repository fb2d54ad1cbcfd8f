package reactor

// Layer changes the bytes between the wire and the handler: TLS. Its methods are called on the loop.
type Layer interface {
	// Feed gives bytes from the wire. They stay valid until Read says ErrAgain or Stash is called.
	Feed(p []byte)
	// Stash tells that the loop stops reading before ErrAgain (pause, bound of the turn): what is
	// left of the last Feed must be copied aside.
	Stash()
	// Read returns plaintext. ErrAgain = more is needed from the wire; io.EOF = the peer ended its
	// side properly; every other error is fatal to the connection.
	Read(p []byte) (int, error)
	// Write encodes all of p and hands it to Conn.WireWrite.
	Write(p []byte) error
	// CloseWrite tells the peer, by Conn.WireWrite, that nothing more will come.
	CloseWrite() error
}
