package routing

import (
	"bytes"
	"hash/maphash"

	"turnout/internal/expression"
	"turnout/internal/wire/field"
)

// maxNames is the capacity of an index: the number of fields, parameters or cookies of a request.
// If a request has more of them, rules that look one up are undecided.
const maxNames = 1024

// Bytes or items per unit of work, or units per item. A unit takes at most 8 ns.
const (
	splitBytes   = 32  // searched for separators
	decodedBytes = 4   // decoded
	comparedWork = 128 // compared with a value
	fieldsWork   = 4   // fields whose names are compared, without an index
	nameWork     = 4   // units for a name that is added to an index
	ruleWork     = 8   // units for a rule, a cache miss
	lookupWork   = 2   // units for a name that is looked up
)

// names is an index of the fields, parameters or cookies of one request. It is a hash table whose
// memory is reused.
type names struct {
	built bool
	full  bool        // there were more than maxNames
	heads [256]uint16 // by hash: 1 + the index in list, 0 = none
	list  []named
}

type named struct {
	hash        uint32
	next        uint16 // as in heads
	encoded     bool   // value is percent-encoded
	name, value []byte // of the request, or decoded in Matching.text
}

func (n *names) reset() {
	if n.built {
		n.built, n.full, n.list = false, false, n.list[:0]
		clear(n.heads[:])
	}
}

// build fills the index. If the work of this namespace does not suffice, the next namespace begins
// again.
func (n *names) build(m *Matching, add func()) {
	n.built = true
	if add(); m.spent && !n.full {
		n.reset()
	}
}

// after returns the next entry of a name, 0 = none. at is the position of the previous entry, or
// one of n.heads. It charges its work.
func (n *names) after(m *Matching, at uint16, hash uint32, name []byte) uint16 {
	for at != 0 {
		e := &n.list[at-1]
		if !m.spend(1) || e.hash == hash && bytes.Equal(e.name, name) {
			return at
		}
		at = e.next
	}
	return 0
}

// add adds a name. With once it adds a name only if the index does not contain it.
func (n *names) add(m *Matching, name, value []byte, encoded, once bool) bool {
	if len(n.list) == maxNames {
		n.full = true
	}
	if n.full || !m.spend(nameWork) {
		return false
	}
	hash := m.hash(name)
	head := &n.heads[hash%uint32(len(n.heads))]
	if once && n.after(m, *head, hash, name) != 0 {
		return !m.spent
	}
	n.list = append(n.list, named{hash, *head, encoded, name, value})
	*head = uint16(len(n.list)) //nolint:gosec // at most maxNames
	return true
}

// hash returns the hash of a name.
func (m *Matching) hash(name []byte) uint32 {
	return uint32(maphash.Bytes(m.seed, name)) //nolint:gosec // cut on purpose
}

// any reports whether a condition holds for any value of its name.
func (n *names) any(m *Matching, c *valueCondition) expression.Result {
	if n.full {
		m.exhaust()
	}
	if !m.spend(lookupWork) {
		return expression.Undecided
	}
	hash := uint32(maphash.String(m.seed, c.name)) //nolint:gosec // cut on purpose
	at := n.heads[hash%uint32(len(n.heads))]
	for !m.spent {
		if at = n.after(m, at, hash, c.bytes()); at == 0 {
			return expression.No
		}
		e := &n.list[at-1]
		if e.encoded {
			if !m.spend(len(e.value) / decodedBytes) {
				break
			}
			e.encoded, e.value = false, m.decoded(e.value)
		}
		if r := c.holds(m, e.value); r != expression.No {
			return r
		}
		at = e.next
	}
	return expression.Undecided
}

// inFields evaluates a condition on all fields of a name. The first few conditions compare the
// names of all fields, which costs less than an index.
func (m *Matching) inFields(c *valueCondition, fields []field.Field) expression.Result {
	if m.fields.built {
		return m.fields.any(m, c)
	}
	if m.scans == maxScans {
		m.fields.build(m, func() { m.addFields(fields) })
		return m.fields.any(m, c)
	}
	m.scans++
	if !m.spend(1 + len(fields)/fieldsWork) {
		return expression.Undecided
	}
	for i := range fields {
		if f := &fields[i]; string(f.Name) == c.name {
			if r := c.holds(m, f.Value); r != expression.No {
				return r
			}
		}
	}
	return expression.No
}

func (m *Matching) addFields(fields []field.Field) {
	for i := range fields {
		if !m.fields.add(m, fields[i].Name, fields[i].Value, false, false) {
			return
		}
	}
}

// maxScans is the number of conditions on fields that are looked up without an index.
const maxScans = 3

// inQuery evaluates a condition on the first parameter of a name
// (application/x-www-form-urlencoded).
func (m *Matching) inQuery(c *valueCondition, query []byte) expression.Result {
	if !m.query.built {
		m.query.build(m, func() { m.addQuery(query) })
	}
	return m.query.any(m, c)
}

func (m *Matching) addQuery(query []byte) {
	rest := bytes.TrimPrefix(query, []byte("?"))
	if !m.spend(len(rest) / splitBytes) {
		return
	}
	for len(rest) > 0 {
		var pair []byte
		pair, rest, _ = bytes.Cut(rest, []byte("&"))
		if len(pair) == 0 {
			if !m.spend(1) {
				return
			}
			continue
		}
		name, value, _ := bytes.Cut(pair, []byte("="))
		if isEncoded(name) {
			if !m.spend(len(name) / decodedBytes) {
				return
			}
			name = m.decoded(name)
		}
		if !m.query.add(m, name, value, isEncoded(value), true) {
			return
		}
	}
}

// inCookies evaluates a condition on all cookies of a name, in all fields.
func (m *Matching) inCookies(c *valueCondition, fields []field.Field) expression.Result {
	if !m.cookies.built {
		m.cookies.build(m, func() { m.addCookies(fields) })
	}
	return m.cookies.any(m, c)
}

func (m *Matching) addCookies(fields []field.Field) {
	if !m.spend(1 + len(fields)/fieldsWork) {
		return
	}
	for i := range fields {
		if string(fields[i].Name) != "cookie" {
			continue
		}
		rest := fields[i].Value
		if !m.spend(len(rest) / splitBytes) {
			return
		}
		for len(rest) > 0 {
			var pair []byte
			pair, rest = field.NextCookie(rest)
			name, value := field.CutCookie(pair)
			if !m.cookies.add(m, name, value, false, false) {
				return
			}
		}
	}
}

func isEncoded(b []byte) bool { return bytes.IndexByte(b, '%') >= 0 || bytes.IndexByte(b, '+') >= 0 }

// decoded returns b with "+" and percent-encoded octets (RFC 3986 section 2.1) decoded, in memory
// of m. It keeps a percent sign without two digits.
func (m *Matching) decoded(b []byte) []byte {
	from := len(m.text)
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '+':
			m.text = append(m.text, ' ')
		case b[i] == '%' && i+2 < len(b) && digit(b[i+1]) >= 0 && digit(b[i+2]) >= 0:
			m.text = append(m.text, byte(digit(b[i+1])<<4|digit(b[i+2])))
			i += 2
		default:
			m.text = append(m.text, b[i])
		}
	}
	return m.text[from:]
}

// digit returns the value of a hexadecimal digit, -1 if c is none.
func digit(c byte) int {
	switch {
	case c-'0' <= 9:
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
