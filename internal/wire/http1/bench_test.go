package http1

import (
	"strings"
	"testing"
)

// typicalRequest has ten fields, as a browser's request to an API has.
const typicalRequest = "GET /api/v1/items/4711?view=full&lang=en HTTP/1.1\r\n" +
	"Host: shop.apps.example.com\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n" +
	"Accept: application/json, text/plain, */*\r\n" +
	"Accept-Language: en-US,en;q=0.5\r\n" +
	"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
	"Referer: https://shop.apps.example.com/items\r\n" +
	"Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n" +
	"Connection: keep-alive\r\n" +
	"X-Request-Id: 7d4f0f2e-3a51-4ef5-9b7c-2f1f6a1f0c11\r\n" +
	"Cache-Control: no-cache\r\n" +
	"\r\n"

const typicalResponse = "HTTP/1.1 200 OK\r\n" +
	"Date: Tue, 10 Nov 2026 08:00:00 GMT\r\n" +
	"Server: nginx\r\n" +
	"Content-Type: application/json; charset=utf-8\r\n" +
	"Content-Length: 128\r\n" +
	"Cache-Control: private, max-age=0\r\n" +
	"Vary: Accept-Encoding\r\n" +
	"X-Request-Id: 7d4f0f2e-3a51-4ef5-9b7c-2f1f6a1f0c11\r\n" +
	"Connection: keep-alive\r\n" +
	"\r\n"

func BenchmarkParseRequest(b *testing.B) {
	buf := make([]byte, len(typicalRequest))
	var r Request
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		copy(buf, typicalRequest)
		if err := ParseRequest(buf, &r, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFindHeadEnd(b *testing.B) {
	buf := []byte(typicalRequest)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		if n, err := FindHeadEnd(buf, 0, Limits{}); n != len(buf) || err != nil {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkParseResponse(b *testing.B) {
	buf := make([]byte, len(typicalResponse))
	var r Response
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		copy(buf, typicalResponse)
		if err := ParseResponse(buf, &r, nil, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendHead(b *testing.B) {
	var r Request
	if err := ParseRequest([]byte(typicalRequest), &r, Limits{}); err != nil {
		b.Fatal(err)
	}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = AppendRequestLine(out[:0], r.Method, r.Path, r.Query, r.Minor)
		out = AppendFields(out, r.Fields, nil)
		out = AppendHeadEnd(out)
	}
}

func BenchmarkChunkDecoder(b *testing.B) {
	body := []byte(strings.Repeat("400\r\n"+strings.Repeat("x", 1024)+"\r\n", 16) + "0\r\n\r\n")
	var d ChunkDecoder
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		d.Reset(ChunkLimits{})
		for p := body; ; {
			_, n, state, err := d.NextData(p)
			if err != nil {
				b.Fatal(err)
			}
			if state == ChunkDone {
				break
			}
			p = p[n:]
		}
	}
}
