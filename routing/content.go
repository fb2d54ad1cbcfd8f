package routing

import (
	"crypto/sha256"
	"encoding/binary"
)

// contentSum is the identity of what a spec says in texts, such as a certificate.
type contentSum [sha256.Size]byte

// sumOf returns the identity of some texts, in their order.
func sumOf(texts ...string) contentSum {
	h := sha256.New()
	for _, text := range texts {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(text)))
		h.Write(length[:])
		h.Write([]byte(text))
	}
	var sum contentSum
	h.Sum(sum[:0])
	return sum
}

func (s contentSum) hash() uint64 { return binary.BigEndian.Uint64(s[:]) }

// content is something parsed of a table, and how many routes and listeners have it: those with the same texts share it.
// It is immutable: another number is another object.
type content[C any] struct {
	sum    contentSum
	parsed *C
	users  int
}

// contentOf returns what was parsed of texts with this identity, nil if the table has none.
func contentOf[C any](all *cow[content[C]], sum contentSum) *C {
	if c := all.findItem(sum.hash(), func(c *content[C]) bool { return c.sum == sum }); c != nil {
		return c.parsed
	}
	return nil
}

// countContent counts n more users of parsed, which may be nil.
func countContent[C any](all *edit[content[C]], sum contentSum, parsed *C, n int) {
	same := func(c *content[C]) bool { return c.sum == sum }
	if c := all.findItem(sum.hash(), same); c != nil {
		n += c.users
	}
	if n == 0 {
		all.remove(sum.hash(), same)
		return
	}
	all.putItem(sum.hash(), &content[C]{sum, parsed, n}, same)
}
