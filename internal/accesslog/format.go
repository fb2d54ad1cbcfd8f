package accesslog

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"turnout/proxy"
	"turnout/proxy/logformat"
)

// The formats of HAProxy's "option httplog" and "option tcplog".
const (
	HTTPLog = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r"
	tcpLog  = "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq"
)

// FormatConfig is what NewFormat needs. The zero value is valid.
type FormatConfig struct {
	Format   string          // of lines about requests; "" = HTTPLog
	Captures *proxy.Captures // that the records will have; nil = none
	PID      int             // %pid
	Host     string          // %H, the machine's name

	// Connections tells how many clients are connected to the plain and to the TLS port; nil = that
	// is not known, and 0. It is called by the goroutine that writes.
	Connections func() (plain, secure int64)
	// CipherName is the name of a cipher suite of TLS; nil = no suite has one.
	CipherName func(suite uint16) string
}

// Format writes records as HAProxy writes its log lines. One goroutine uses it.
type Format struct {
	cfg       FormatConfig
	http, tcp []piece
	records   uint64 // written so far, this one included
	open      [2]int64
}

// piece is text, or one variable.
type piece struct {
	logformat.Item
	variable
	index int // of a captured header
	upper int // see logformat.Item.Case
}

// variable writes something of a record. A nil put writes nothing.
type variable struct {
	put   func(f *Format, p *piece, b []byte, r *proxy.Record) []byte
	style style
}

// style is what becomes of the flags, and of nothing.
type style uint8

const (
	styleText   style = iota // {+Q} puts quotes around it; nothing is -, or "" with quotes
	styleNumber              // no quotes; nothing is -
	styleList                // it minds the flags itself; nothing is nothing
	styleQuery               // {+Q} puts quotes around it; nothing is nothing
)

// CheckFormat returns why a text is no FormatConfig.Format, nil if it is one.
func CheckFormat(s string) error {
	_, _, err := NewFormat(FormatConfig{Format: s})
	return err
}

// NewFormat compiles a format. warnings has a line for each variable that is not known here and stands as -. An error
// says which rule of the language the format breaks.
func NewFormat(cfg FormatConfig) (f *Format, warnings []string, err error) {
	if cfg.Format == "" {
		cfg.Format = HTTPLog
	}
	if cfg.Captures == nil {
		cfg.Captures = &proxy.Captures{}
	}
	f = &Format{cfg: cfg}
	if f.http, warnings, err = compile(cfg.Format, cfg.Captures); err != nil {
		return nil, nil, err
	}
	f.tcp, _, err = compile(tcpLog, cfg.Captures)
	return f, warnings, err
}

func compile(format string, captures *proxy.Captures) (pieces []piece, warnings []string, err error) {
	items, err := logformat.Parse(format)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot use log format: %w", err)
	}
	for _, item := range items {
		p := newPiece(item, captures)
		if p.Name != "" && p.put == nil {
			warnings = append(warnings, p.Text+" is not known here and stands as -")
		}
		pieces = append(pieces, p)
	}
	return pieces, warnings, nil
}

func newPiece(item logformat.Item, captures *proxy.Captures) piece {
	p := piece{Item: item}
	to, known := item.Case()
	p.upper = to
	switch {
	case item.Name == "" || !known:
	case !item.Sample:
		p.variable = variables[item.Name]
	case item.Arg == "" || item.Name == "uuid" && item.Arg == "4":
		p.variable = samples[item.Name]
	default:
		if i := captureIndex(&item, captures); i >= 0 {
			p.index = i
			p.put = putCapture
		}
	}
	return p
}

// captureIndex is the place in Record.Captured of what a sample with an argument means, -1 if it is not captured.
func captureIndex(item *logformat.Item, c *proxy.Captures) int {
	list, before := c.Request, 0
	switch item.Name {
	case "capture.res.hdr", "res.hdr":
		list, before = c.Response, len(c.Request)
	case "capture.req.hdr", "req.hdr":
	default:
		return -1
	}
	for i := range list {
		name := fmt.Sprint(i)
		if !strings.HasPrefix(item.Name, "capture.") {
			name = list[i].Name
		}
		if name == strings.ToLower(item.Arg) {
			return before + i
		}
	}
	return -1
}

// begin reads what is read once for many lines.
func (f *Format) begin() {
	if f.cfg.Connections != nil {
		f.open[0], f.open[1] = f.cfg.Connections()
	}
}

// Append appends the line of r, without an end of line. Whatever the client sent, it holds printable ASCII only.
func (f *Format) Append(b []byte, r *proxy.Record) []byte {
	f.records++
	pieces := f.http
	if passed(r) {
		pieces = f.tcp
	}
	blank := true // blanks that follow one another, because nothing stands between them, are one
	for i := range pieces {
		p, from := &pieces[i], len(b)
		if p.Name == "" {
			text := p.Text
			if blank {
				text = strings.TrimPrefix(text, " ")
			}
			if b = appendPlain(b, text, ""); len(b) > from {
				blank = b[len(b)-1] == ' '
			}
			continue
		}
		if b = f.appendPiece(b, p, r); len(b) > from {
			blank = false
		}
	}
	return b
}

func (f *Format) appendPiece(b []byte, p *piece, r *proxy.Record) []byte {
	quoted := p.Quote && (p.style == styleText || p.style == styleQuery)
	if quoted {
		b = append(b, '"')
	}
	from := len(b)
	if p.variable.put != nil {
		b = p.variable.put(f, p, b, r)
	}
	switch {
	case len(b) == from && !quoted && p.style != styleList && p.style != styleQuery:
		return append(b, '-')
	case p.upper != 0:
		changeCase(b[from:], p.upper)
	}
	if p.Escape && p.style != styleNumber {
		b = logformat.Escape(b, from)
	}
	if quoted {
		b = append(b, '"')
	}
	return b
}

func changeCase(b []byte, to int) {
	for i, c := range b {
		switch {
		case to < 0 && 'A' <= c && c <= 'Z', to > 0 && 'a' <= c && c <= 'z':
			b[i] = c ^ 0x20
		}
	}
}

// appendPlain appends s; bytes that are not printable ASCII, and those of also, become # and two hexadecimal digits.
func appendPlain[T string | []byte](b []byte, s T, also string) []byte {
	for i := range len(s) {
		if c := s[i]; c >= ' ' && c < 0x7f && strings.IndexByte(also, c) < 0 {
			b = append(b, c)
		} else {
			b = logformat.Hex(append(b, '#'), uint64(c), 2)
		}
	}
	return b
}

// What is encoded besides what is not printable: in request lines, and in captured headers between braces.
const (
	encodeURI    = `"#`
	encodeHeader = `"#{|}`
)

// appendValue appends a value of the client's or the endpoint's as it is, without a way out of quotes that stand around it.
func (p *piece) appendValue(b, v []byte) []byte {
	if p.Quote && !p.Escape {
		return appendPlain(b, v, `"`)
	}
	return appendPlain(b, v, "")
}

func putCapture(_ *Format, p *piece, b []byte, r *proxy.Record) []byte {
	if p.index >= len(r.Captured) {
		return b
	}
	return p.appendValue(b, r.Captured[p.index])
}

func putRandom(_ *Format, p *piece, b []byte, _ *proxy.Record) []byte {
	return p.Number(b, rand.Uint64()>>32, 4)
}

func putUUID(_ *Format, _ *piece, b []byte, _ *proxy.Record) []byte {
	return logformat.UUID(b, rand.Uint64(), rand.Uint64())
}
