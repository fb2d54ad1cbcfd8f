// Package framing compares the body of an outgoing message with the length that its head
// announces. A message that ends short, or goes on beyond its length, makes its receiver read the
// next message as a part of this one.
package framing

// Unknown is the length of a body that ends with a last chunk, END_STREAM, or the end of the
// connection.
const Unknown = -1

// broken marks a body that was longer or shorter than announced.
const broken = -2

// Body counts the body of one outgoing message. The zero value is the body of a message without a
// head: it takes no bytes.
type Body struct {
	left  int64 // bytes still to be sent, Unknown or broken
	ended bool  // End reported a complete body
}

// Begin starts to count for a message whose head announces length body bytes, or Unknown.
func (b *Body) Begin(length int64) { *b = Body{left: max(length, Unknown)} }

// Add counts n bytes and reports whether they belong to the body. After false the body never
// becomes complete.
func (b *Body) Add(n int) bool {
	switch {
	case n == 0:
	case b.ended, b.left == broken, b.left >= 0 && int64(n) > b.left:
		b.left = broken
		return false
	case b.left > 0:
		b.left -= int64(n)
	}
	return true
}

// End ends the message and reports whether its body has the announced length.
func (b *Body) End() bool {
	if b.ended = b.left == 0 || b.left == Unknown; !b.ended {
		b.left = broken
	}
	return b.ended
}

// Complete reports whether the message has ended with the announced length and nothing was added
// later.
func (b *Body) Complete() bool { return b.ended && b.left != broken }

// Breach receives the description of a message that would have ended with another length than
// announced, which is a bug of the router. The codec itself closes the connection or resets the
// stream. A nil Breach panics, so that tests fail.
type Breach func(what string)

// Report calls b, or panics if b is nil.
func (f Breach) Report(what string) {
	if f == nil {
		panic("BUG: " + what)
	}
	f(what)
}
