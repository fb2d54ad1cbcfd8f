package wire

import (
	"bytes"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/proxy/field"
)

// The benchmarks behind docs/decisions/0005-http2-codec.md.

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
