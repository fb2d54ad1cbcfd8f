package field

import "turnout/internal/spare"

// Arena is memory for the values that are made while one message is worked on. A
// value handed out stays valid until Reset: a full block is left to the collector
// with the values in it, and a larger one is begun, so that after a few messages the
// block is as large as they need. The zero value is ready.
type Arena struct {
	block []byte
	start int

	// Large, if it is set, lends blocks to messages that need more than others; Reset gives them back. So one message in a
	// while that needs much does not leave that much in every Arena.
	Large *spare.List[Block]
	lent  *Block
	small []byte // the block that this Arena has of its own while one is lent
}

// Block is the memory of a message that needs much.
type Block [128 << 10]byte

// The first block, and the largest that an Arena keeps for the next message.
const (
	firstBlock = 512
	keptBlock  = 4 << 10
)

// Reset makes the memory free again; no value handed out may be used any more.
func (a *Arena) Reset() {
	if a.lent != nil {
		a.Large.Put(a.lent)
		a.lent, a.block, a.small = nil, a.small, nil
	}
	a.block, a.start = a.block[:0], 0
	if cap(a.block) > keptBlock {
		a.block = nil
	}
}

// Begin reserves n bytes and returns the block to append to.
func (a *Arena) Begin(n int) []byte {
	if cap(a.block)-len(a.block) < n {
		a.grow(n)
	}
	a.start = len(a.block)
	return a.block
}

func (a *Arena) grow(n int) {
	size := max(firstBlock, n, 2*cap(a.block))
	if size <= keptBlock || a.Large == nil || a.lent != nil || n > len(Block{}) {
		a.block = make([]byte, 0, size)
		return
	}
	if a.lent = a.Large.Get(); a.lent == nil {
		a.lent = new(Block)
	}
	a.small, a.block = a.block, a.lent[:0]
}

// End takes the appended block back and returns what was appended since Begin.
func (a *Arena) End(b []byte) []byte {
	a.block = b
	return b[a.start:len(b):len(b)]
}

// Copy keeps p until Reset.
func (a *Arena) Copy(p []byte) []byte { return a.End(append(a.Begin(len(p)), p...)) }
