package certchain

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"sync/atomic"
	"time"
)

// memorySize is the number of chains that a Memory holds, 4,096 of about 150 bytes.
const memorySize = 1 << 12

// Memory remembers verified chains, so that a peer that reconnects or resumes its session costs no
// signature check. It holds positions, not certificates, and a newer chain replaces an older one.
// Its zero value is empty; it is safe for concurrent use.
type Memory struct {
	slots [memorySize]atomic.Pointer[proven]
}

// proven is a verified chain, as positions of certificates in the request and the set.
type proven struct {
	key   [sha256.Size]byte
	chain []uint16 // position in Request.Sent, or in the set with ofSet
}

const ofSet = 1 << 15

// keyOf identifies the inputs of a verification except time and names.
func (s *Set) keyOf(r *Request) (key [sha256.Size]byte) {
	h := sha256.New()
	h.Write(s.digest[:])
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(r.Usage))
	h.Write(n[:])
	for _, c := range r.Sent {
		binary.BigEndian.PutUint64(n[:], uint64(len(c.Raw)))
		h.Write(n[:])
		h.Write(c.Raw)
	}
	h.Sum(key[:0])
	return key
}

func (m *Memory) slot(key *[sha256.Size]byte) *atomic.Pointer[proven] {
	return &m.slots[binary.BigEndian.Uint16(key[:])%memorySize]
}

// recall returns the chain of a key if all its certificates are valid now, else nil.
func (m *Memory) recall(key *[sha256.Size]byte, s *Set, r *Request) []*x509.Certificate {
	p := m.slot(key).Load()
	if p == nil || p.key != *key {
		return nil
	}
	chain := make([]*x509.Certificate, len(p.chain))
	for i, at := range p.chain {
		var c *x509.Certificate
		if at&ofSet != 0 {
			c = s.all[at&^ofSet].parse()
		} else {
			c = r.Sent[at]
		}
		if !valid(c, r.Now) {
			return nil
		}
		chain[i] = c
	}
	return chain
}

func valid(c *x509.Certificate, now time.Time) bool {
	return !now.Before(c.NotBefore) && !now.After(c.NotAfter)
}

// remember stores a verified chain.
func (m *Memory) remember(key *[sha256.Size]byte, s *Set, r *Request, chain []*x509.Certificate) {
	p := &proven{key: *key, chain: make([]uint16, 0, len(chain))}
	for _, c := range chain {
		at, ok := position(s, r, c)
		if !ok {
			return
		}
		p.chain = append(p.chain, at)
	}
	m.slot(key).Store(p)
}

func position(s *Set, r *Request, c *x509.Certificate) (uint16, bool) {
	for i, sent := range r.Sent {
		if sent == c {
			return uint16(i), true
		}
	}
	for i, a := range s.all {
		if i < ofSet && a.subject == string(c.RawSubject) && a.parse() == c {
			return uint16(i) | ofSet, true
		}
	}
	return 0, false
}
