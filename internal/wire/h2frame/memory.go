package h2frame

// Lender lends memory that header lists need beyond what a Block keeps.
type Lender interface {
	// Lend returns an empty slice with a capacity of n bytes at least.
	Lend(n int) []byte
	// TakeBack takes one back.
	TakeBack(p []byte)
}

// memory holds the strings of one list. They do not move.
type memory struct {
	own  []byte   // kept for the next list
	more [][]byte // lent; the last is the one that is being filled
	from Lender   // nil: the collector
}

// ownBytes is what a Block keeps: enough for most lists.
const ownBytes = 2 << 10

// reserve returns an empty slice with a capacity of n bytes, valid until keep or the next call.
func (m *memory) reserve(n int) []byte {
	last := &m.own
	if k := len(m.more); k > 0 {
		last = &m.more[k-1]
	} else if m.own == nil {
		m.own = make([]byte, 0, ownBytes)
	}
	if p := *last; cap(p)-len(p) >= n {
		return p[len(p):]
	}
	var p []byte
	if m.from != nil {
		p = m.from.Lend(n)
	} else {
		p = make([]byte, 0, max(n, ownBytes))
	}
	m.more = append(m.more, p)
	return p
}

// keep keeps p, what the result of reserve was made.
func (m *memory) keep(p []byte) []byte {
	last := &m.own
	if k := len(m.more); k > 0 {
		last = &m.more[k-1]
	}
	*last = (*last)[:len(*last)+len(p)]
	return p[:len(p):len(p)]
}

// reset lets go of all strings.
func (m *memory) reset() {
	m.own = m.own[:0]
	for i, p := range m.more {
		if m.from != nil {
			m.from.TakeBack(p[:0])
		}
		m.more[i] = nil
	}
	m.more = m.more[:0]
}

// copy is a copy of p in memory of b.
func (b *Block) copy(p []byte) []byte {
	return b.memory.keep(append(b.memory.reserve(len(p)), p...))
}

// decode decodes the strings of a field into memory of b. name is that of an index, nil without; own: it has to be copied.
func (b *Block) decode(name []byte, own bool, wireName, wireValue text) (n, v []byte, ok bool) {
	need := wireName.size() + wireValue.size()
	if own {
		need += len(name)
	}
	p := b.memory.reserve(need)
	switch {
	case name == nil:
		p, ok = wireName.appendTo(p)
	case own:
		p, ok = append(p, name...), true
	default:
		ok = true
	}
	at := len(p)
	if !ok {
		return nil, nil, false
	}
	if p, ok = wireValue.appendTo(p); !ok || max(at, len(p)-at) > b.limits.Bytes {
		return nil, nil, false
	}
	p = b.memory.keep(p)
	if name == nil || own {
		name = p[:at:at]
	}
	return name, p[at:], true
}
