package header

import (
	"encoding/base64"

	"turnout/proxy/field"
)

// Message is what expressions are evaluated with.
type Message struct {
	Fields      []field.Field // changed by Apply
	Certificate []byte        // DER of the client's certificate, nil without one
	Arena       *field.Arena  // takes the values that are made
	Room        int           // bytes that names and values of sets may still take; Apply counts it down
}

// Apply carries the actions out in order; an action sees what those before it did.
// False: the room was used up, and the message is only partly changed.
func (a *Actions) Apply(m *Message) bool {
	for i := range a.ops {
		o := &a.ops[i]
		if o.remove {
			m.Fields = field.Delete(m.Fields, string(o.name))
			continue
		}
		value, ok := o.value(m)
		if !ok {
			return false
		}
		m.Fields = set(m.Fields, o.name, value)
	}
	return true
}

// set makes name occur once, with value: where the first one stood, or at the end.
func set(fields []field.Field, name, value []byte) []field.Field {
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
	need := 0
	for i := range o.parts {
		need += o.parts[i].bound(m)
	}
	if need > 3*m.Room { // a value is at least a third of its bound
		return nil, false
	}
	b := m.Arena.Begin(need)
	start := len(b)
	for i := range o.parts {
		if b = o.parts[i].append(b, m); len(b)-start > m.Room {
			m.Arena.End(b[:start])
			return nil, false
		}
	}
	m.Room -= len(b) - start
	return field.Trim(m.Arena.End(b)), true
}

// bound is the most the part can become: each byte of what was found as "%XX".
func (p *part) bound(m *Message) int {
	if p.fetch == fetchNone {
		return len(p.text)
	}
	n := len(p.raw(m))
	for _, s := range p.steps {
		if s == stepBase64 {
			n = base64.StdEncoding.EncodedLen(n)
		}
	}
	return 3 * n
}

// raw is what the fetch finds, before converters.
func (p *part) raw(m *Message) []byte {
	if p.fetch == fetchCertificate {
		return m.Certificate
	}
	for i := len(m.Fields) - 1; i >= 0; i-- {
		if string(m.Fields[i].Name) == string(p.name) {
			return LastElement(m.Fields[i].Value)
		}
	}
	return nil
}

func (p *part) append(b []byte, m *Message) []byte {
	if p.fetch == fetchNone {
		return append(b, p.text...)
	}
	start := len(b)
	b = append(b, p.raw(m)...)
	for _, s := range p.steps {
		switch s {
		case stepLower:
			lower(b[start:])
		case stepBase64:
			b = encodeBase64(b, start)
		}
	}
	return encode(b, start, p.escape)
}

func lower(b []byte) {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
}

// encodeBase64 replaces b[start:] by its base64 form, from the end so that no second
// buffer is needed.
func encodeBase64(b []byte, start int) []byte {
	n := len(b) - start
	size := base64.StdEncoding.EncodedLen(n)
	for range size - n {
		b = append(b, 0)
	}
	var group [3]byte
	for i := (n + 2) / 3; i > 0; i-- {
		k := copy(group[:], b[start+3*(i-1):start+min(3*i, n)])
		base64.StdEncoding.Encode(b[start+4*(i-1):start+4*i], group[:k])
	}
	return b
}

// encode makes b[start:] fit for a field: controls other than HTAB become "%XX" (a
// field has none, RFC 9110 section 5.5), and with escape a backslash stands before
// quote, backslash and closing bracket.
func encode(b []byte, start int, escape bool) []byte {
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
	if extra == 0 {
		return b
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
	return b
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
