package metrics

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/expfmt"
)

// rowFamily is one metric that each row of a kind has series of.
type rowFamily[R any] struct {
	name, help string
	kind       string               // counter, gauge, or summary, whose variants are the sum and the count; "" = gauge
	variants   []variant[R]         // one per series of a row
	label      string               // that tells variants apart; "" = there is one
	has        func(r *R) bool      // nil = every row has them
	text       func(r *R) labelText // labels of a row
	labels     []string             // their names
}

// variant is one of the series of a family that a row has.
type variant[R any] struct {
	value  string // of rowFamily.label
	suffix string // of the name, for summaries
	read   func(r *R) float64
}

// exposition writes families whose series are too many to be kept, in one of the formats of Prometheus. Series leave through one
// buffer. The rest of a scrape is written by expfmt, in the same format and to the same place.
type exposition struct {
	out    io.Writer
	format expfmt.FormatType
	buf    []byte
	err    error

	present []bool // rows of the family that is written
	sized   struct {
		rows   any // the first row of those that sizes are of
		labels int // how many each has
		sizes  []int32
	}
}

// expositionBuffer is how many bytes go out at a time.
const expositionBuffer = 32 << 10

func newExposition(out io.Writer, format expfmt.Format) *exposition {
	return &exposition{out: out, format: format.FormatType(), buf: make([]byte, 0, expositionBuffer+4<<10)}
}

// typed is the type of the family.
func (f *rowFamily[R]) typed() string { return cmp.Or(f.kind, "gauge") }

// flush writes what is in the buffer, if there are so many bytes.
func (e *exposition) flush(from int) {
	if len(e.buf) >= from && len(e.buf) > 0 {
		if e.err == nil {
			_, e.err = e.out.Write(e.buf)
		}
		e.buf = e.buf[:0]
	}
}

// writeFamily writes the series of all rows. A family without series is left out.
func writeFamily[R any](e *exposition, f *rowFamily[R], rows []R) {
	if e.err != nil {
		return
	}
	if e.format == expfmt.TypeProtoDelim {
		writeProto(e, f, rows)
	} else {
		writeText(e, f, rows)
	}
	e.flush(0)
}

func writeText[R any](e *exposition, f *rowFamily[R], rows []R) {
	begun := false
	for i := range rows {
		r := &rows[i]
		if f.has != nil && !f.has(r) {
			continue
		}
		if !begun {
			begun = true
			e.beginText(f.name, f.help, f.typed())
		}
		text := f.text(r)
		for v := range f.variants {
			e.buf = append(append(append(e.buf, f.name...), f.variants[v].suffix...), '{')
			if f.label == "" {
				e.buf = append(e.buf, text...)
			} else {
				at := text.place(f.label) // labels stand in the order of the alphabet, as expfmt has them
				e.buf = append(append(append(append(e.buf, text[:at]...), f.label...), '=', '"'), f.variants[v].value...)
				e.buf = append(append(e.buf, '"', ','), text[at:]...)
			}
			e.buf = append(appendValue(append(e.buf, '}', ' '), f.variants[v].read(r)), '\n')
		}
		e.flush(expositionBuffer)
	}
}

// beginText writes what comes before the series of a family.
func (e *exposition) beginText(name, help, kind string) {
	of := name
	if kind == "counter" && e.format == expfmt.TypeOpenMetrics {
		of = strings.TrimSuffix(name, "_total")
	}
	for _, s := range []string{"# HELP ", of, " ", help, "\n# TYPE ", of, " ", kind, "\n"} {
		e.buf = append(e.buf, s...)
	}
}

// appendValue appends a number; most are whole.
func appendValue(b []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// appendEscaped appends the value of a label.
func appendEscaped(b []byte, value string) []byte {
	if !utf8.ValidString(value) {
		value = strings.ToValidUTF8(value, "\uFFFD")
	}
	for i := range len(value) {
		switch c := value[i]; c {
		case '\\', '"':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		default:
			b = append(b, c)
		}
	}
	return b
}

// The fields of io.prometheus.client.MetricFamily, Metric, LabelPair, Gauge and Counter, with their wire types.
const (
	familyName, familyHelp, familyType, familyMetric = 1<<3 | 2, 2<<3 | 2, 3 << 3, 4<<3 | 2
	metricLabel, metricGauge, metricCounter          = 1<<3 | 2, 2<<3 | 2, 3<<3 | 2
	metricSummary, summaryCount, summarySum          = 4<<3 | 2, 1 << 3, 2<<3 | 1
	labelName, labelValue                            = 1<<3 | 2, 2<<3 | 2
	numberValue                                      = 1<<3 | 1
	typeCounter, typeGauge, typeSummary              = 0, 1, 2
)

// writeProto writes the family as a message of Protocol Buffers behind its length, which has to be known first: numbers have a fixed size,
// and which rows have the family is asked once.
func writeProto[R any](e *exposition, f *rowFamily[R], rows []R) {
	head := appendString(appendString(nil, familyName, f.name), familyHelp, f.help)
	head = append(head, familyType, map[string]byte{"counter": typeCounter, "gauge": typeGauge, "summary": typeSummary}[f.typed()])
	var metric []byte
	size, some, labels := len(head), false, sizesOfLabels(e, f, rows)
	e.present = append(e.present[:0], make([]bool, len(rows))...)
	for i := range rows {
		if f.has != nil && !f.has(&rows[i]) {
			continue
		}
		e.present[i], some = true, true
		for v := range f.metrics() {
			n := int(labels[i]) + f.sizeBehind(v)
			size += 1 + varintSize(n) + n
		}
	}
	if !some {
		return
	}
	e.buf = append(binary.AppendUvarint(e.buf, uint64(size)), head...)
	for i := range rows {
		if !e.present[i] {
			continue
		}
		metric = appendLabels(metric[:0], f.text(&rows[i]))
		for v := range f.metrics() {
			metric = f.appendBehind(metric[:labels[i]], &rows[i], v)
			e.buf = append(binary.AppendUvarint(append(e.buf, familyMetric), uint64(len(metric))), metric...)
		}
		e.flush(expositionBuffer)
	}
}

// metrics is how many metrics a row has: the sum and the count of a summary are one.
func (f *rowFamily[R]) metrics() int {
	if f.kind == "summary" {
		return 1
	}
	return len(f.variants)
}

// sizesOfLabels is how many bytes the labels of each row take. They are the same for the next family of the same rows and labels.
func sizesOfLabels[R any](e *exposition, f *rowFamily[R], rows []R) []int32 {
	names := len(f.labels)
	if f.label != "" {
		names--
	}
	if len(rows) == 0 || e.sized.rows == any(&rows[0]) && e.sized.labels == names {
		return e.sized.sizes
	}
	e.sized.rows, e.sized.labels, e.sized.sizes = &rows[0], names, e.sized.sizes[:0]
	var labels []byte
	for i := range rows {
		labels = appendLabels(labels[:0], f.text(&rows[i]))
		e.sized.sizes = append(e.sized.sizes, int32(len(labels)))
	}
	return e.sized.sizes
}

// sizeBehind is how many bytes appendBehind appends.
func (f *rowFamily[R]) sizeBehind(v int) int {
	const number, summary = 2 + 9, 2 + 9 + 1 + binary.MaxVarintLen64
	switch {
	case f.kind == "summary":
		return summary
	case f.label == "":
		return number
	}
	pair := pairSize(len(f.label), len(f.variants[v].value))
	return 1 + varintSize(pair) + pair + number
}

// appendBehind appends what is behind the labels of a row.
func (f *rowFamily[R]) appendBehind(b []byte, r *R, v int) []byte {
	if f.kind == "summary" {
		return f.appendSummary(b, r)
	}
	return f.appendNumber(b, r, v)
}

// appendNumber appends what is behind the labels of a row: one more label, and the value.
func (f *rowFamily[R]) appendNumber(b []byte, r *R, v int) []byte {
	if f.label != "" {
		b = appendPair(b, f.label, f.variants[v].value)
	}
	field := byte(metricGauge)
	if f.kind == "counter" {
		field = metricCounter
	}
	return appendDouble(append(b, field, 9), numberValue, f.variants[v].read(r))
}

// appendSummary appends a sum and a count.
func (f *rowFamily[R]) appendSummary(b []byte, r *R) []byte {
	b = appendDouble(append(b, metricSummary, 9+1+binary.MaxVarintLen64), summarySum, f.variants[0].read(r))
	n := uint64(f.variants[1].read(r))
	b = append(b, summaryCount)
	for range binary.MaxVarintLen64 - 1 {
		b = append(b, byte(n)|1<<7)
		n >>= 7
	}
	return append(b, byte(n))
}

func appendDouble(b []byte, field byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, field), math.Float64bits(v))
}

func varintSize(n int) int {
	size := 1
	for ; n >= 1<<7; n >>= 7 {
		size++
	}
	return size
}

func appendString[S ~string | ~[]byte](b []byte, field byte, s S) []byte {
	return append(binary.AppendUvarint(append(b, field), uint64(len(s))), s...)
}

// pairSize is how many bytes a label takes with a name and a value of such lengths.
func pairSize(name, value int) int { return 2 + varintSize(name) + name + varintSize(value) + value }

// appendPair appends one label.
func appendPair[N, V ~string | ~[]byte](b []byte, name N, value V) []byte {
	b = binary.AppendUvarint(append(b, metricLabel), uint64(pairSize(len(name), len(value))))
	return appendString(appendString(b, labelName, name), labelValue, value)
}

// appendLabels appends labels that are there as text.
func appendLabels(b []byte, text labelText) []byte {
	for len(text) > 0 {
		equals := bytes.IndexByte(text, '=')
		name, rest := text[:equals], text[equals+2:]
		end := closingQuote(rest)
		if value := rest[:end]; bytes.IndexByte(value, '\\') < 0 {
			b = appendPair(b, name, value)
		} else {
			b = appendPair(b, name, unescaper.Replace(string(value)))
		}
		text = bytes.TrimPrefix(rest[end+1:], comma)
	}
	return b
}

var (
	comma     = []byte{','}
	unescaper = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
)

// closingQuote is where the value of a label ends.
func closingQuote(s []byte) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(s)
}

// place is where a label belongs that comes before another one of them.
func (t labelText) place(label string) int {
	for at := 0; at < len(t); {
		rest := t[at:]
		equals := bytes.IndexByte(rest, '=')
		if string(rest[:equals]) > label {
			return at
		}
		at += equals + 2 + closingQuote(rest[equals+2:]) + 2
	}
	return len(t)
}
