package tlsmux

import "encoding/binary"

// recordCursor follows the records of a stream of bytes, so that crypto/tls is given them one by one: it then never holds
// more than the record it is reading, and having nothing to decrypt can be known without asking it.
type recordCursor struct {
	left int // bytes of the current record that are still to come, once its header is complete
	have int // bytes of the header seen, while it is not
	head [recordHeader]byte
}

// takeBytes takes up to most bytes of avail that belong to one record and returns how many.
func (r *recordCursor) takeBytes(avail []byte, most int) int {
	if r.left == 0 && r.have == 0 && len(avail) >= recordHeader {
		r.left = recordHeader + int(binary.BigEndian.Uint16(avail[3:]))
	}
	if r.left > 0 {
		n := min(r.left, len(avail), most)
		r.left -= n
		return n
	}
	n := min(recordHeader-r.have, len(avail), most)
	copy(r.head[r.have:], avail[:n])
	if r.have += n; r.have == recordHeader {
		r.have = 0
		r.left = int(binary.BigEndian.Uint16(r.head[3:]))
	}
	return n
}
