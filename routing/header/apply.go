package header

import (
	"encoding/base64"

	"turnout/internal/wire/field"
	"turnout/internal/work"
)

// maxRoom keeps sums of sizes far from the end of int.
const maxRoom = 1 << 28

// Message is a header section and what the actions on it may take.
type Message struct {
	Fields      []field.Field // changed by Apply
	Certificate []byte        // DER of the client's certificate, nil without one
	Arena       *field.Arena  // takes the values that are made
	Room        int           // bytes that names and values of sets may still add
	Work        *work.Account // of the request
}

// Apply carries the actions out in order; an action sees the results of those before it. False: the
// room or the work was used up, and the message is only partly changed.
func (a *Actions) Apply(m *Message) bool {
	m.Room = min(m.Room, maxRoom)
	for i := range a.ops {
		o := &a.ops[i]
		if !m.Work.Spend(work.Fields(len(m.Fields))) {
			return false
		}
		if o.remove {
			m.Fields = field.Delete(m.Fields, string(o.name))
			continue
		}
		value, ok := o.value(m)
		if !ok {
			return false
		}
		if o.add {
			m.Fields = append(m.Fields, field.Field{Name: o.name, Value: value})
			continue
		}
		m.Fields = setField(m.Fields, o.name, value)
	}
	return true
}

// Restrict removes each field that the list sets or deletes, and adds none: it is Apply for a
// header section that carries no fields of the list, such as trailers. A field that the list only
// adds stays. The caller has spent RestrictWork. A nil list removes nothing.
func (a *Actions) Restrict(fields []field.Field) []field.Field {
	if a == nil {
		return fields
	}
	for i := range a.ops {
		if o := &a.ops[i]; !o.add {
			fields = field.Delete(fields, string(o.name))
		}
	}
	return fields
}

// RestrictWork returns the work of Restrict with n fields.
func (a *Actions) RestrictWork(n int) int {
	if a == nil {
		return 0
	}
	return len(a.ops) * work.Fields(n)
}

// setField makes name occur once, with value: where the first one stood, or at the end.
func setField(fields []field.Field, name, value []byte) []field.Field {
	for i := range fields {
		if string(fields[i].Name) == string(name) {
			fields[i].Value = value
			rest := field.Delete(fields[i+1:], string(name))
			return fields[:i+1+len(rest)]
		}
	}
	return append(fields, field.Field{Name: name, Value: value})
}

// value evaluates the parts of a set.
func (o *op) value(m *Message) ([]byte, bool) {
	if m.Room -= len(o.name); m.Room < 0 {
		return nil, false
	}
	if len(o.parts) == 1 && o.parts[0].fetch == fetchNone {
		text := o.parts[0].text
		m.Room -= len(text)
		return field.Trim(text), m.Room >= 0
	}
	if !m.Work.Spend(len(o.parts)) {
		return nil, false
	}
	least, need := 0, 0
	for i := range o.parts {
		n, ok := o.parts[i].size(m)
		if least += n; !ok || least > m.Room {
			return nil, false
		}
		if o.parts[i].fetch != fetchNone {
			n *= 3 // each byte as "%XX"
		}
		need += n
	}
	b := m.Arena.Begin(min(need, m.Room))
	start := len(b)
	for i := range o.parts {
		var ok bool
		if b, ok = o.parts[i].append(b, start+m.Room, m); !ok {
			m.Arena.End(b[:start])
			return nil, false
		}
	}
	m.Room -= len(b) - start
	return field.Trim(m.Arena.End(b)), true
}

// size returns the bytes of the value before encode, the least that it can have. False: they are
// beyond the room, or the work is used up.
func (p *part) size(m *Message) (n int, ok bool) {
	if p.fetch == fetchNone {
		return len(p.text), true
	}
	raw, ok := p.raw(m)
	if !ok {
		return 0, false
	}
	n = len(raw)
	for _, s := range p.steps {
		if n > m.Room || !m.Work.Spend(1+work.Text(n)) {
			return 0, false
		}
		if s == stepBase64 {
			n = base64.StdEncoding.EncodedLen(n)
		}
	}
	return n, true
}

// raw returns the value that the fetch finds, before converters. False: the work is used up.
func (p *part) raw(m *Message) (value []byte, ok bool) {
	if p.fetch == fetchCertificate {
		return m.Certificate, true
	}
	if !m.Work.Spend(work.Fields(len(m.Fields))) {
		return nil, false
	}
	for i := len(m.Fields) - 1; i >= 0; i-- {
		if string(m.Fields[i].Name) == string(p.name) {
			if !m.Work.Spend(work.Text(len(m.Fields[i].Value))) {
				return nil, false
			}
			return LastElement(m.Fields[i].Value), true
		}
	}
	return nil, true
}

// append appends the value of the part, as long as b is no longer than most then. False: it would
// be, or the work is used up.
func (p *part) append(b []byte, most int, m *Message) (_ []byte, ok bool) {
	if p.fetch == fetchNone {
		return append(b, p.text...), len(b)+len(p.text) <= most && m.Work.Spend(work.Copied(len(p.text)))
	}
	raw, ok := p.raw(m)
	if start := len(b); ok && len(raw) <= most-start {
		b = append(b, raw...)
		for _, s := range p.steps {
			if b, ok = s.convert(b, start, most, m.Work); !ok {
				return b, false
			}
		}
		if !m.Work.Spend(work.Text(len(b) - start)) {
			return b, false
		}
		return encode(b, start, most, p.escape)
	}
	return b, false
}

// convert replaces b[start:]. False: b would be longer than most, or the work is used up.
func (s step) convert(b []byte, start, most int, left *work.Account) (_ []byte, ok bool) {
	n := len(b) - start
	if s == stepBase64 {
		if !left.Spend(1 + 2*work.Text(n)) {
			return b, false
		}
		return encodeBase64(b, start, most)
	}
	if !left.Spend(1 + work.Text(n)) {
		return b, false
	}
	lower(b[start:])
	return b, true
}

func lower(b []byte) {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
}

// encodeBase64 replaces b[start:] by its base64 form, from the end so that no second
// buffer is needed. False: b would be longer than most.
func encodeBase64(b []byte, start, most int) (_ []byte, ok bool) {
	n := len(b) - start
	size := base64.StdEncoding.EncodedLen(n)
	if size > most-start {
		return b, false
	}
	for range size - n {
		b = append(b, 0)
	}
	var group [3]byte
	for i := (n + 2) / 3; i > 0; i-- {
		k := copy(group[:], b[start+3*(i-1):start+min(3*i, n)])
		base64.StdEncoding.Encode(b[start+4*(i-1):start+4*i], group[:k])
	}
	return b, true
}

// encode makes b[start:] fit for a field: controls other than HTAB become "%XX" (a
// field has none, RFC 9110 section 5.5), and with escape a backslash stands before
// quote, backslash and closing bracket. False: b would be longer than most.
func encode(b []byte, start, most int, escape bool) (_ []byte, ok bool) {
	const hexDigits = "0123456789ABCDEF"
	extra := 0
	for _, c := range b[start:] {
		switch {
		case isControl(c):
			extra += 2
		case escape && isEscaped(c):
			extra++
		}
	}
	if len(b)+extra > most {
		return b, false
	}
	if extra == 0 {
		return b, true
	}
	from := len(b) - 1
	for range extra {
		b = append(b, 0)
	}
	for to := len(b) - 1; from >= start; from-- {
		switch c := b[from]; {
		case isControl(c):
			b[to-2], b[to-1], b[to] = '%', hexDigits[c>>4], hexDigits[c&15]
			to -= 3
		case escape && isEscaped(c):
			b[to-1], b[to] = '\\', c
			to -= 2
		default:
			b[to] = c
			to--
		}
	}
	return b, true
}

func isControl(c byte) bool { return c < ' ' && c != '\t' || c == 0x7f }

func isEscaped(c byte) bool { return c == '"' || c == '\\' || c == ']' }

// LastElement is the last member of a comma-separated value without the blanks around
// it. A comma within double quotes separates nothing.
func LastElement(v []byte) []byte {
	from, quoted := 0, false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			from = i + 1
		}
	}
	return field.Trim(v[from:])
}
