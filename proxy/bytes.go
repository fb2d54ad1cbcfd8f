package proxy

import "unsafe"

// constant views a string constant as bytes without a copy. The bytes are never
// written: pipeline and codecs replace whole fields, not bytes of a name.
func constant(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// scratch is memory of one exchange for values the pipeline makes itself. A value
// handed out stays valid until reset: a full block is left to the collector with
// the values in it, and a new one is begun.
type scratch struct {
	block []byte
	start int
}

const scratchBlock = 512

func (s *scratch) reset() { s.block, s.start = s.block[:0], 0 }

// begin makes room for n bytes and returns the block to append to.
func (s *scratch) begin(n int) []byte {
	if cap(s.block)-len(s.block) < n {
		s.block = make([]byte, 0, max(scratchBlock, n))
	}
	s.start = len(s.block)
	return s.block
}

// end takes the appended block back and returns what was appended since begin.
func (s *scratch) end(b []byte) []byte {
	s.block = b
	return b[s.start:len(b):len(b)]
}

// equalFold compares ASCII text without regard to case; lower is lower-case.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := range b {
		if lowerASCII(b[i]) != lower[i] {
			return false
		}
	}
	return true
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
