package field

// Arena is memory for the values that are made while one message is worked on. A
// value handed out stays valid until Reset: a full block is left to the collector
// with the values in it, and a larger one is begun, so that after a few messages the
// block is as large as they need. The zero value is ready.
type Arena struct {
	block []byte
	start int
}

// The first block, and the largest that is kept for the next message.
const (
	firstBlock = 512
	keptBlock  = 16 << 10
)

// Reset makes the memory free again; no value handed out may be used any more.
func (a *Arena) Reset() {
	a.block, a.start = a.block[:0], 0
	if cap(a.block) > keptBlock {
		a.block = nil
	}
}

// Begin makes room for n bytes and returns the block to append to.
func (a *Arena) Begin(n int) []byte {
	if cap(a.block)-len(a.block) < n {
		a.block = make([]byte, 0, max(firstBlock, n, min(2*cap(a.block), keptBlock)))
	}
	a.start = len(a.block)
	return a.block
}

// End takes the appended block back and returns what was appended since Begin.
func (a *Arena) End(b []byte) []byte {
	a.block = b
	return b[a.start:len(b):len(b)]
}

// Copy keeps p until Reset.
func (a *Arena) Copy(p []byte) []byte { return a.End(append(a.Begin(len(p)), p...)) }
