// Package header compiles and applies header actions: lists of "set this field to
// that value" and "delete this field", of routes (spec.httpHeaders.actions) and of
// the whole router.
//
// A value is text with expressions in it:
//
//	value      = 1*( char | "%%" | expression )     char: anything but "%" and controls
//	expression = "%" [ flags ] "[" fetch *( "," converter ) "]"
//	flags      = "{" flag *( "," flag ) "}"         flag: Q, X or E, with "+", "-" or neither
//	fetch      = "req.hdr(NAME)" | "res.hdr(NAME)" | "ssl_c_der"
//	converter  = "lower" | "base64"
//
// Lists are compiled once. Applying one allocates nothing: what it makes lies in the
// arena of the message.
package header

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"turnout/proxy/field"
)

// Side says which half of an exchange a list is for: a request can be asked for its own
// fields only, and a response for its own.
type Side uint8

// The sides.
const (
	Request Side = iota
	Response
)

// Action is one entry of a list as it is configured.
type Action struct {
	Name   string
	Value  string // of a set
	Delete bool   // else it is a set
}

// MaxValue is the longest value in bytes that Compile takes.
const MaxValue = 16384

// Actions is a compiled list. It is immutable and may be shared by all loops.
type Actions struct {
	ops []op
}

type op struct {
	name   []byte // lower-case
	remove bool
	parts  []part
}

// part is a piece of a value: text, or an expression.
type part struct {
	text   []byte // when there is no fetch
	fetch  fetch
	name   []byte // lower-case, for fetchHeader
	steps  []step
	escape bool // flag E
}

type fetch uint8

const (
	fetchNone fetch = iota
	fetchHeader
	fetchCertificate
)

type step uint8

const (
	stepLower step = iota
	stepBase64
)

// Compile compiles a list in its order. What cannot be compiled is left out: errs has
// one error for each such action, which names it. The result is nil when nothing is
// left to do.
func Compile(side Side, list []Action) (a *Actions, errs []error) {
	compiled := &Actions{}
	for _, action := range list {
		o, err := compile(side, action)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		compiled.ops = append(compiled.ops, o)
	}
	if len(compiled.ops) == 0 {
		return nil, errs
	}
	return compiled, errs
}

func compile(side Side, a Action) (op, error) {
	if !IsName(a.Name) {
		return op{}, fmt.Errorf("invalid HTTP header name: %s", a.Name)
	}
	name := strings.ToLower(a.Name)
	if isFraming(name) {
		return op{}, fmt.Errorf("header %s: the router frames messages and ends connections itself", a.Name)
	}
	if a.Delete {
		if side == Request && name == "host" {
			return op{}, fmt.Errorf("header %s: a request cannot be without it", a.Name)
		}
		return op{name: []byte(name), remove: true}, nil
	}
	parts, err := parse(side, a.Value)
	if err != nil {
		return op{}, fmt.Errorf("header %s: cannot use value %.200q: %w", a.Name, a.Value, err)
	}
	return op{name: []byte(name), parts: parts}, nil
}

// IsName reports whether s is a field name (RFC 9110 section 5.1).
func IsName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= 1024
}

func isNameByte(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte("-!#$%&'*+.^_`|~", c) >= 0
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// isFraming: fields that say where a message ends or what becomes of a connection (RFC
// 9112 section 6, RFC 9110 section 7.6.1). A second opinion about them is how requests
// are smuggled.
func isFraming(name string) bool {
	switch name {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "content-length", "upgrade", "te", "trailer", "http2-settings":
		return true
	}
	return false
}

var (
	errEmpty       = errors.New("it is empty")
	errLong        = fmt.Errorf("it is longer than %d bytes", MaxValue)
	errControl     = errors.New("it has a control character")
	errPercent     = errors.New(`a "%" that stands for itself is written "%%"`)
	errFlags       = errors.New("flags are {Q}, {X} and {E} with + or -, separated by commas")
	errUnended     = errors.New(`an expression ends with "]"`)
	errHeaderFetch = errors.New("the header of an expression is named with letters, digits and -")
)

// parse reads a value.
func parse(side Side, value string) ([]part, error) {
	switch {
	case value == "":
		return nil, errEmpty
	case len(value) > MaxValue:
		return nil, errLong
	}
	var parts []part
	var text []byte
	for i := 0; i < len(value); {
		c := value[i]
		switch {
		case c < ' ' || c == 0x7f:
			return nil, errControl
		case c != '%':
			text = append(text, c)
			i++
			continue
		case strings.HasPrefix(value[i:], "%%"):
			text = append(text, '%')
			i += 2
			continue
		}
		p, n, err := expression(side, value[i:])
		if err != nil {
			return nil, err
		}
		if len(text) > 0 {
			parts, text = append(parts, part{text: text}), nil
		}
		parts = append(parts, p)
		i += n
	}
	if len(text) > 0 {
		parts = append(parts, part{text: text})
	}
	return parts, nil
}

// expression reads the expression that s begins with and returns its length.
func expression(side Side, s string) (p part, n int, err error) {
	rest := s[1:]
	if strings.HasPrefix(rest, "{") {
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return p, 0, errFlags
		}
		for flag := range strings.SplitSeq(rest[1:end], ",") {
			on := !strings.HasPrefix(flag, "-")
			switch strings.TrimLeft(flag, "+-") {
			case "E":
				p.escape = on
			case "Q", "X": // nothing that a header value shows
			default:
				return p, 0, errFlags
			}
			if len(flag) > 2 {
				return p, 0, errFlags
			}
		}
		rest = rest[end+1:]
	}
	if !strings.HasPrefix(rest, "[") {
		return p, 0, errPercent
	}
	inner, after, ok := strings.Cut(rest[1:], "]")
	if !ok {
		return p, 0, errUnended
	}
	words := strings.Split(inner, ",")
	if err := p.source(side, words[0]); err != nil {
		return p, 0, err
	}
	for _, w := range words[1:] {
		switch w {
		case "lower":
			p.steps = append(p.steps, stepLower)
		case "base64":
			p.steps = append(p.steps, stepBase64)
		default:
			return p, 0, fmt.Errorf("unknown converter %q; there are lower and base64", w)
		}
	}
	return p, len(s) - len(after), nil
}

func (p *part) source(side Side, word string) error {
	if word == "ssl_c_der" {
		p.fetch = fetchCertificate
		return nil
	}
	prefix := "req.hdr("
	if side == Response {
		prefix = "res.hdr("
	}
	name, ok := strings.CutPrefix(word, prefix)
	if name, ok2 := strings.CutSuffix(name, ")"); ok && ok2 {
		for i := range len(name) {
			if !isAlphanumeric(name[i]) && name[i] != '-' {
				return errHeaderFetch
			}
		}
		if name == "" {
			return errHeaderFetch
		}
		p.fetch, p.name = fetchHeader, []byte(strings.ToLower(name))
		return nil
	}
	return fmt.Errorf("unknown source %q; there are %sNAME) and ssl_c_der", word, prefix)
}

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
