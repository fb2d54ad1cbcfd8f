package header

import (
	"encoding/base64"

	"turnout/internal/wire/field"
)

// Budget bounds what the actions on one message may make and do, whatever their lists say. Apply counts it down.
type Budget struct {
	Room int // bytes that names and values of sets may still take
	Work int // bytes that may still be looked at and written to find and to make values
}

// MaxWork is the work that actions on one message are for: a hundred fields looked at three times by each of a hundred actions, or
// a head of 32 KiB read 8 times. It takes a loop about a quarter of a millisecond.
const MaxWork = 256 << 10

// fieldWork is the work of comparing the name of one field.
const fieldWork = 8

// maxRoom keeps sums of sizes far from the end of int.
const maxRoom = 1 << 28

// Message is what expressions are evaluated with.
type Message struct {
	Fields      []field.Field // changed by Apply
	Certificate []byte        // DER of the client's certificate, nil without one
	Arena       *field.Arena  // takes the values that are made
	Budget
}

// Apply carries the actions out in order; an action sees what those before it did.
// False: the budget was used up, and the message is only partly changed.
func (a *Actions) Apply(m *Message) bool {
	m.Room = min(m.Room, maxRoom)
	for i := range a.ops {
		o := &a.ops[i]
		if !m.spend(fieldWork * len(m.Fields)) {
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
// adds stays. False: the budget was used up, and the message is only partly changed.
func (a *Actions) Restrict(m *Message) bool {
	for i := range a.ops {
		o := &a.ops[i]
		if !m.spend(fieldWork * len(m.Fields)) {
			return false
		}
		if !o.add {
			m.Fields = field.Delete(m.Fields, string(o.name))
		}
	}
	return true
}

// spend reports whether n more bytes of work are within the budget.
func (b *Budget) spend(n int) bool {
	b.Work -= n
	return b.Work >= 0
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

// size is what the part becomes before encode, the least that it can become. False: that is beyond the budget.
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
		if n > m.Room || !m.spend(n) {
			return 0, false
		}
		if s == stepBase64 {
			n = base64.StdEncoding.EncodedLen(n)
		}
	}
	return n, true
}

// raw is what the fetch finds, before converters. False: to look for it is beyond the budget.
func (p *part) raw(m *Message) (value []byte, ok bool) {
	if p.fetch == fetchCertificate {
		return m.Certificate, m.spend(len(m.Certificate))
	}
	if !m.spend(fieldWork * len(m.Fields)) {
		return nil, false
	}
	for i := len(m.Fields) - 1; i >= 0; i-- {
		if string(m.Fields[i].Name) == string(p.name) {
			if !m.spend(len(m.Fields[i].Value)) {
				return nil, false
			}
			return LastElement(m.Fields[i].Value), true
		}
	}
	return nil, true
}

// append appends what the part becomes, as long as b is no longer than most then. False: it would be, or the work is
// beyond the budget.
func (p *part) append(b []byte, most int, m *Message) (_ []byte, ok bool) {
	if p.fetch == fetchNone {
		return append(b, p.text...), len(b)+len(p.text) <= most
	}
	raw, ok := p.raw(m)
	if start := len(b); ok && len(raw) <= most-start {
		b = append(b, raw...)
		for _, s := range p.steps {
			if ok = m.spend(len(b) - start); !ok {
				return b, false
			}
			switch s {
			case stepLower:
				lower(b[start:])
			case stepBase64:
				if b, ok = encodeBase64(b, start, most); !ok {
					return b, false
				}
			}
		}
		return encode(b, start, most, p.escape)
	}
	return b, false
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
