package h2frame

import "errors"

// ErrHPACK is a header list that cannot be decoded; the state of its connection is lost with it (RFC 9113 section 4.3).
var ErrHPACK = errors.New("cannot decode header list")

// TableSize is the dynamic table of a Decoder in bytes: the initial value of SETTINGS_HEADER_TABLE_SIZE.
const TableSize = 4096

// Decoder decodes the header lists of one direction of a connection (RFC 7541). The zero value is ready, with an empty table.
type Decoder struct {
	table  table
	shrunk int    // by how much its size was reduced by an update
	spare  []byte // strings of lists that have a fault already
	copied int    // bytes that went into the table, of this list
}

// maxCopied is what a list may put into the table, in the bytes it may have: more than that is put there to be thrown out again.
const maxCopied = 16

// Decode decodes the list p into to, which was Reset. Its strings are in memory of to. Of what follows
// a fault of the list only the table takes notice. An error is ErrHPACK.
func (d *Decoder) Decode(p []byte, to *Block) error {
	d.copied = 0
	begun := false
	for len(p) > 0 {
		c := p[0]
		var ok bool
		switch {
		case c&0x80 != 0:
			p, ok = d.indexed(p, to)
		case c&0x40 != 0:
			p, ok = d.literal(p, 6, true, to)
		case c&0x20 != 0:
			p, ok = d.resize(p, begun)
		default: // without indexing, or never: what this side sends on is never indexed
			p, ok = d.literal(p, 4, false, to)
		}
		if !ok {
			return ErrHPACK
		}
		begun = begun || c&0xe0 != 0x20
	}
	return nil
}

// number reads an integer after a prefix of some bits (RFC 7541 section 5.1).
func number(p []byte, bits uint8) (n uint64, rest []byte, ok bool) {
	if len(p) == 0 {
		return 0, nil, false
	}
	most := uint64(1)<<bits - 1
	if n = uint64(p[0]) & most; n < most {
		return n, p[1:], true
	}
	for i, c := range p[1:] {
		if i == 9 {
			break // 63 bits, or zeros to no end
		}
		n += uint64(c&0x7f) << (7 * i)
		if c&0x80 == 0 {
			return n, p[i+2:], true
		}
	}
	return 0, nil, false
}

// at is the field with an index (RFC 7541 section 2.3.3), valid until the table changes.
func (d *Decoder) at(i uint64) (name, value []byte, ok bool) {
	switch {
	case i == 0:
		return nil, nil, false
	case i <= uint64(len(static)):
		f := &static[i-1]
		return view(f.name), view(f.value), true
	}
	return d.table.at(i - uint64(len(static)) - 1)
}

// indexed takes a field that is in a table (RFC 7541 section 6.1).
func (d *Decoder) indexed(p []byte, to *Block) (rest []byte, ok bool) {
	i, p, ok := number(p, 7)
	if !ok {
		return nil, false
	}
	name, value, ok := d.at(i)
	if !ok || to.Fault != FaultNone {
		return p, ok
	}
	if i > uint64(len(static)) { // the table may change before the list is used
		name, value = to.copy(name), to.copy(value)
	}
	to.AddField(name, value)
	return p, true
}

// literal takes a field that is spelled out, or its value (RFC 7541 section 6.2).
func (d *Decoder) literal(p []byte, bits uint8, index bool, to *Block) (rest []byte, ok bool) {
	i, p, ok := number(p, bits)
	if !ok {
		return nil, false
	}
	var name []byte
	var wireName, wireValue text
	if i > 0 {
		name, _, ok = d.at(i)
	} else {
		wireName, p, ok = takeText(p, to.limits.Bytes)
	}
	if !ok {
		return nil, false
	}
	if wireValue, p, ok = takeText(p, to.limits.Bytes); !ok {
		return nil, false
	}
	unused := to.Fault != FaultNone
	if unused && !index {
		return p, true
	}
	var value []byte
	if unused {
		name, value, ok = d.aside(name, wireName, wireValue, to.limits.Bytes)
	} else {
		name, value, ok = to.decode(name, i > uint64(len(static)), wireName, wireValue)
	}
	if !ok {
		return nil, false
	}
	if index {
		if d.copied += len(name) + len(value); d.copied > maxCopied*to.limits.Bytes {
			return nil, false
		}
		d.table.addField(name, value, TableSize-d.shrunk)
	}
	if !unused {
		to.AddField(name, value)
	}
	return p, true
}

// aside decodes a field that only the table takes notice of. name is that of an index, nil without.
func (d *Decoder) aside(name []byte, wireName, wireValue text, most int) (n, v []byte, ok bool) {
	b := d.spare[:0]
	if need := len(name) + wireName.size() + wireValue.size(); need > cap(b) {
		b = make([]byte, 0, need)
	}
	if name != nil {
		b = append(b, name...)
	} else if b, ok = wireName.appendTo(b); !ok {
		return nil, nil, false
	}
	at := len(b)
	if b, ok = wireValue.appendTo(b); !ok || at > most || len(b)-at > most {
		return nil, nil, false
	}
	if d.spare = b; cap(b) > keptBytes {
		d.spare = nil
	}
	return b[:at], b[at:], true
}

// resize takes a dynamic table size update, which belongs to the beginning of a list (RFC 7541 sections 4.2 and 6.3).
func (d *Decoder) resize(p []byte, begun bool) (rest []byte, ok bool) {
	if begun && d.table.size > 0 {
		return nil, false
	}
	n, p, ok := number(p, 5)
	if !ok || n > TableSize {
		return nil, false
	}
	d.shrunk = TableSize - int(n)
	d.table.evict(int(n))
	return p, true
}

// text is a string as it is on the wire (RFC 7541 section 5.2).
type text struct {
	p       []byte
	huffman bool
}

func takeText(p []byte, most int) (t text, rest []byte, ok bool) {
	n, rest, ok := number(p, 7)
	if !ok || n > uint64(most) || n > uint64(len(rest)) {
		return text{}, nil, false
	}
	return text{rest[:n], p[0]&0x80 != 0}, rest[n:], true
}

// size is how many bytes it stands for at most.
func (t text) size() int {
	if t.huffman {
		return huffmanSize(len(t.p))
	}
	return len(t.p)
}

// appendTo appends what it stands for to b, which has the capacity for it.
func (t text) appendTo(b []byte) ([]byte, bool) {
	if t.huffman {
		return appendHuffman(b, t.p)
	}
	return append(b, t.p...), true
}
