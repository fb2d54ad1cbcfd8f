// Package strictpem reads PEM text (RFC 7468) that has to be complete. encoding/pem skips what it cannot read, so that half
// a file passes for a whole one: a set of authorities or revocation lists then lacks some, and nobody is told.
package strictpem

import (
	"bytes"
	"encoding/pem"
	"fmt"
)

// Decode returns all blocks of text. It is an error if one that begins does not end or cannot be read; text without any
// block is none. Nothing of the text gets into the error.
func Decode(text []byte) ([]*pem.Block, error) {
	begun := bytes.Count(text, []byte("-----BEGIN "))
	var blocks []*pem.Block
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		blocks = append(blocks, block)
	}
	if len(blocks) < begun {
		return nil, fmt.Errorf("%d of %d PEM blocks cannot be read: the text is torn", begun-len(blocks), begun)
	}
	return blocks, nil
}
