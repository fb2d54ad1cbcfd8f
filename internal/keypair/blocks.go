package keypair

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"iter"
)

// Blocks are the PEM blocks of text (RFC 7468) that can be read. As encoding/pem does, it skips what cannot: see Decode.
func Blocks(text []byte) iter.Seq[*pem.Block] {
	return func(yield func(*pem.Block) bool) {
		for {
			var block *pem.Block
			if block, text = pem.Decode(text); block == nil || !yield(block) {
				return
			}
		}
	}
}

// Decode is strict PEM: it returns all blocks of a text that has to be complete. It is an error if one that begins does not end or
// cannot be read, since half a file would else pass for a whole one: a set of authorities or revocation lists lacks some, and nobody
// is notified. Text without any block is no error. Nothing of the text gets into the error.
func Decode(text []byte) ([]*pem.Block, error) {
	begun := bytes.Count(text, []byte("-----BEGIN "))
	var blocks []*pem.Block
	for block := range Blocks(text) {
		blocks = append(blocks, block)
	}
	if len(blocks) < begun {
		return nil, fmt.Errorf("%d of %d PEM blocks cannot be read: the text is torn", begun-len(blocks), begun)
	}
	return blocks, nil
}

// isKey tells whether a block counts as a private key in a text that holds certificates too. Those with headers, encrypted the old
// way, do not.
func isKey(b *pem.Block) bool {
	switch b.Type {
	case "RSA PRIVATE KEY", "PRIVATE KEY", "ANY PRIVATE KEY", "DSA PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "EC PRIVATE KEY":
		return len(b.Headers) == 0
	}
	return false
}

// HasKey tells whether ParseBundle would find a private key in text.
func HasKey(text []byte) bool {
	for block := range Blocks(text) {
		if isKey(block) {
			return true
		}
	}
	return false
}
