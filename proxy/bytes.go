package proxy

import (
	"encoding/binary"
	"unsafe"

	"turnout/internal/wire/field"
)

// constant views a string constant as bytes without a copy. The bytes are never
// written: pipeline and codecs replace whole fields, not bytes of a name.
func constant(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

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

// lower puts ASCII letters into lower case in place. Bytes that are lower-case are not written.
func lower(b []byte) {
	for len(b) >= 8 && field.UpperBits(binary.LittleEndian.Uint64(b)) == 0 {
		b = b[8:]
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
}
