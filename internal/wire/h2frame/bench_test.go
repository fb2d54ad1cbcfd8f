package h2frame

import (
	"bytes"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/internal/wire/field"
)

// The benchmarks of docs/decisions/0005-http2-codec.md.

// oneRequest is what an HTTP/2 client sends for one request in the steady state: HEADERS of indexed fields, and two
// WINDOW_UPDATEs for the answer before.
func oneRequest() []byte {
	var b bytes.Buffer
	fr := http2.NewFramer(&b, nil)
	_ = fr.WriteWindowUpdate(0, 128)
	_ = fr.WriteWindowUpdate(1, 128)
	_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0x82, 0x87, 0x84, 0x90, 0x92}, EndStream: true, EndHeaders: true})
	return b.Bytes()
}

func BenchmarkFramesOwn(b *testing.B) {
	p := oneRequest()
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for rest := p; len(rest) >= HeaderSize; {
			h := ParseHeader(rest)
			n += int(h.Stream) + len(rest[HeaderSize:HeaderSize+h.Length])
			rest = rest[HeaderSize+h.Length:]
		}
		if n == 0 {
			b.Fatal("nothing read")
		}
	}
}

func BenchmarkFramesFramer(b *testing.B) {
	p := oneRequest()
	r := bytes.NewReader(p)
	fr := http2.NewFramer(nil, r)
	fr.SetReuseFrames()
	b.ReportAllocs()
	for b.Loop() {
		r.Reset(p)
		for range 3 {
			if _, err := fr.ReadFrame(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func answer() []field.Field {
	var list []field.Field
	for _, p := range [][2]string{{"content-type", "application/json"}, {"server", "nginx"}, {"date", "Sat, 21 Nov 2026 12:00:00 GMT"}, {"cache-control", "private"}, {"x-request-id", "0123456789abcdef"}} {
		list = append(list, field.Field{Name: []byte(p[0]), Value: []byte(p[1])})
	}
	return list
}

func BenchmarkEncodeOwn(b *testing.B) {
	list, buf := answer(), make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		out := AppendStatus(buf[:0], 200)
		for _, f := range list {
			out = AppendField(out, f.Name, f.Value)
		}
		AppendContentLength(out, 128)
	}
}

func BenchmarkEncodeHPACK(b *testing.B) {
	list := answer()
	var buf bytes.Buffer
	enc := hpack.NewEncoder(&buf)
	b.ReportAllocs()
	for b.Loop() {
		buf.Reset()
		_ = enc.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
		for _, f := range list {
			_ = enc.WriteField(hpack.HeaderField{Name: string(f.Name), Value: string(f.Value)})
		}
		_ = enc.WriteField(hpack.HeaderField{Name: "content-length", Value: "128"})
	}
}

// steadyRequest is a request whose fields but one are in the table, which is filled by the first block.
func steadyRequest() (first, then []byte) {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	for i := range 2 {
		b.Reset()
		for _, f := range [][2]string{
			{":method", "GET"}, {":scheme", "https"}, {":authority", "app.test"}, {":path", "/path?x=1"}, {"user-agent", "Mozilla/5.0 (X11; Linux x86_64)"},
			{"accept", "*/*"}, {"accept-encoding", "gzip"}, {"accept-language", "en"}, {"cookie", "session=0123456789abcdef"},
		} {
			_ = enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		if i == 0 {
			first = bytes.Clone(b.Bytes())
		}
	}
	return first, append(bytes.Clone(b.Bytes()), 0x00, 0x04, 'x', '-', 'i', 'd', 0x08, '0', '1', '2', '3', '4', '5', '6', '7')
}

func BenchmarkDecodeOwn(b *testing.B) {
	first, then := steadyRequest()
	var d Decoder
	var list Block
	list.Reset(Request, Limits{Bytes: 64 << 10, Fields: 101})
	if err := d.Decode(first, &list); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		list.Reset(Request, Limits{Bytes: 64 << 10, Fields: 101})
		if err := d.Decode(then, &list); err != nil || list.Finish(true) != FaultNone {
			b.Fatal(err, list.Fault)
		}
	}
}

func BenchmarkDecodeHPACK(b *testing.B) {
	first, then := steadyRequest()
	n := 0
	d := hpack.NewDecoder(TableSize, func(f hpack.HeaderField) { n += len(f.Value) })
	if _, err := d.Write(first); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Write(then); err != nil {
			b.Fatal(err)
		}
	}
}
