package http1

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// RFC 9112 section 7.1: the chunked transfer coding.

// decode feeds raw to a decoder in steps of k bytes and returns the body, what is
// left after it, the trailers, and whether the end was seen.
func decode(d *ChunkDecoder, raw []byte, k int) (body []byte, rest int, done bool, err error) {
	for fed := 0; fed < len(raw); {
		end := min(fed+k, len(raw))
		for p := raw[fed:end]; ; {
			data, n, state, err := d.NextData(p)
			body = append(body, data...)
			if err != nil {
				return body, 0, false, err
			}
			switch {
			case (len(data) > 0) != (state == ChunkData):
				return body, 0, false, fmt.Errorf("%d bytes of data in state %d", len(data), state)
			case state == ChunkMore && n != len(p):
				return body, 0, false, fmt.Errorf("%d of %d bytes consumed", n, len(p))
			}
			fed += n
			p = p[n:]
			if state == ChunkDone {
				return body, len(raw) - fed, true, nil
			}
			if state == ChunkMore {
				break
			}
		}
	}
	return body, 0, false, nil
}

func TestChunkedBodies(t *testing.T) {
	for _, c := range []struct{ raw, body, trailers string }{
		{"0\r\n\r\n", "", ""},
		{"5\r\nhello\r\n0\r\n\r\n", "hello", ""},
		{"5\r\nhello\r\n6\r\n world\r\n000\r\n\r\n", "hello world", ""},
		{"A\r\n0123456789\r\n0\r\n\r\n", "0123456789", ""},
		{"a\r\n0123456789\r\n0\r\n\r\n", "0123456789", ""},
		{"0000000000000002\r\n\r\n\r\n0\r\n\r\n", "\r\n", ""},
		{"2;a;b=c ; d = \"x;\\\"\r\" \r\nhi\r\n0\r\n\r\n", "", "invalid"},
		{"2;a;b=c ; d = \"x;\\\" \\\\ \xff\t\"\r\nhi\r\n0;last=1\r\n\r\n", "hi", ""},
		{"2; a\r\nhi\r\n0;\ta\t=\tb\t;c\r\n\r\n", "hi", ""},
		{"2\r\nhi\r\n0\r\nX-Sum: abc\r\nY:\r\n\r\n", "hi", "x-sum=abc;y=;"},
		{"0\r\nContent-Length: 5\r\nA: b\r\nHost: x\r\nTransfer-Encoding: chunked\r\nAuthorization: y\r\n\r\n", "", "a=b;"},
	} {
		for k := 1; k <= len(c.raw)+3; k++ {
			var d ChunkDecoder
			body, rest, done, err := decode(&d, []byte(c.raw+"GET"), k)
			if c.trailers == "invalid" {
				if err == nil {
					t.Fatalf("%q accepted", c.raw)
				}
				continue
			}
			if err != nil || !done || rest != 3 || string(body) != c.body || show(d.Trailers()) != c.trailers {
				t.Fatalf("%q in steps of %d: %q, %d left, done %v, trailers %s, %v",
					c.raw, k, body, rest, done, show(d.Trailers()), err)
			}
		}
		if c.trailers == "invalid" {
			continue
		}
		for cut := range c.raw {
			var d ChunkDecoder
			if _, _, done, err := decode(&d, []byte(c.raw[:cut]), 4); done || err != nil {
				t.Fatalf("first %d bytes of %q: done %v, %v", cut, c.raw, done, err)
			}
		}
	}
}

func TestChunkedRefused(t *testing.T) {
	for _, c := range []refusal{
		{"hexadecimal prefix", "0x2\r\nhi", "chunk-size"},
		{"plus", "+2\r\nhi", "chunk-size"},
		{"minus", "-2\r\nhi", "chunk-size"},
		{"underscore", "1_0\r\n", "chunk-size"},
		{"leading space", " 2\r\nhi", "chunk-size"},
		{"no digits", "\r\nhi", "chunk-size"},
		{"only an extension", ";a\r\nhi", "chunk-size"},
		{"not a digit", "g\r\n", "chunk-size"},
		{"trailing space", "2 \r\nhi", "chunk-size"},
		{"space before the semicolon", "2 ;a\r\nhi", "chunk-size"},
		{"tab before the semicolon", "2\t;a\r\nhi", "chunk-size"},
		{"space and junk", "2 erf\r\nhi", "chunk-size"},
		{"17 digits", "00000000000000002\r\nhi", "chunk-overflow"},
		{"2^63", "8000000000000000\r\nhi", "chunk-overflow"},
		{"2^64", "FFFFFFFFFFFFFFFF0\r\nhi", "chunk-overflow"},
		{"LF ends the size", "2\nhi", "bare-lf"},
		{"LF ends the extension", "2;\nhi", "bare-lf"},
		{"LF in the extension's name", "2;a\nhi", "bare-lf"},
		{"LF in quotes", "2;a=\"\n\"\r\nhi", "bare-lf"},
		{"CR ends the size", "2\rhi", "bare-cr"},
		{"CR in the extension", "2;a\rX\r\nhi", "bare-cr"},
		{"CR in quotes", "2;a=\"\r\n\"\r\nhi", "chunk-ext"},
		{"NUL in the extension", "2;\x00a\r\nhi", "nul"},
		{"NUL after a backslash", "2;a=\"\\\x00\"\r\nhi", "nul"},
		{"NUL in the size", "2\x00\r\nhi", "nul"},
		{"semicolon alone", "2;\r\nhi", "chunk-ext"},
		{"two semicolons", "2;;a\r\nhi", "chunk-ext"},
		{"no token", "2;a[=x\r\nhi", "chunk-ext"},
		{"no name", "2;=x\r\nhi", "chunk-ext"},
		{"no value", "2;a=\r\nhi", "chunk-ext"},
		{"two values", "2;a=b=c\r\nhi", "chunk-ext"},
		{"two words", "2;a b\r\nhi", "chunk-ext"},
		{"value of two words", "2;a=b c\r\nhi", "chunk-ext"},
		{"space at the end", "2;a \r\nhi", "chunk-ext"},
		{"text after the quotes", "2;a=\"b\"c\r\nhi", "chunk-ext"},
		{"open quotes", "2;a=\"b\r\nhi", "chunk-ext"},
		{"data too long", "2\r\nhi!\r\n0\r\n\r\n", "chunk-end"},
		{"no CRLF after the data", "2\r\nhi0\r\n\r\n", "chunk-end"},
		{"LF after the data", "2\r\nhi\n0\r\n\r\n", "bare-lf"},
		{"CR after the data", "2\r\nhi\r0\r\n\r\n", "bare-cr"},
		{"LF ends the trailers", "0\r\n\n", "bare-lf"},
		{"LF ends a trailer", "0\r\nA: b\n\r\n", "bare-lf"},
		{"LF after a trailer", "0\r\nA: b\r\n\n", "bare-lf"},
		{"CR ends the trailers", "0\r\n\rX", "bare-cr"},
		{"obs-fold in a trailer", "0\r\nA: b\r\n c\r\n\r\n", "obs-fold"},
		{"space before a trailer", "0\r\n A: b\r\n\r\n", "leading-space"},
		{"CR in a trailer", "0\r\nA: b\rc\r\n\r\n", "bare-cr"},
		{"no name in a trailer", "0\r\n: b\r\n\r\n", "field-name"},
		{"request as a trailer", "0\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "field-name"},
	} {
		for k := 1; k <= len(c.raw); k++ {
			var d ChunkDecoder
			_, _, done, err := decode(&d, []byte(c.raw), k)
			if got := reasonOf(t, err); got != c.reason || done {
				t.Errorf("%s in steps of %d: %q refused for %q, not %q", c.name, k, c.raw, got, c.reason)
				break
			}
			if _, _, _, again := d.NextData([]byte("0\r\n\r\n")); again != err {
				t.Errorf("%s: %v after %v", c.name, again, err)
			}
			if _, _, _, again := d.NextData(nil); again != err {
				t.Errorf("%s: %v after %v", c.name, again, err)
			}
		}
	}
}

func TestChunkLineIsBounded(t *testing.T) {
	line := func(n int) string { return "1;" + strings.Repeat("x", n-2) + "\r\nd\r\n0\r\n\r\n" }
	for _, c := range []struct {
		n, limit int
		reason   string
	}{{DefaultChunkLineBytes - 1, 0, ""}, {DefaultChunkLineBytes, 0, "chunk-line"}, {9, 10, ""}, {10, 10, "chunk-line"}} {
		var d ChunkDecoder
		d.Reset(ChunkLimits{LineBytes: c.limit})
		_, _, _, err := decode(&d, []byte(line(c.n)), 1<<20)
		if got := reasonOf(t, err); got != c.reason {
			t.Errorf("line of %d bytes with limit %d: %q, not %q", c.n, c.limit, got, c.reason)
		}
	}
}

// Row 7 of the attack list: many bytes of extension for each byte of data.
func TestChunkFloodIsStopped(t *testing.T) {
	var d ChunkDecoder
	chunk := "1;" + strings.Repeat("x", 500) + "\r\nd\r\n"
	_, _, _, err := decode(&d, []byte(strings.Repeat(chunk, 1000)), 1<<20)
	if reasonOf(t, err) != "chunk-flood" {
		t.Errorf("extensions 500 times the data: %v", err)
	}
	for name, chunk := range map[string]string{
		"one-byte chunks": "1\r\nd\r\n",
		"signed chunks":   "400;chunk-signature=" + strings.Repeat("0", 64) + "\r\n" + strings.Repeat("d", 1024) + "\r\n",
	} {
		d.Reset(ChunkLimits{})
		if _, _, _, err := decode(&d, []byte(strings.Repeat(chunk, 2000)), 1<<20); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTrailersAreBounded(t *testing.T) {
	for _, c := range []struct {
		name, trailers string
		lim            ChunkLimits
		reason         string
	}{
		{"exact bytes", "A: b\r\n\r\n", ChunkLimits{TrailerBytes: 8}, ""},
		{"one byte too many", "A: b\r\n\r\n", ChunkLimits{TrailerBytes: 7}, "trailer-size"},
		{"endless line", strings.Repeat("x", DefaultTrailerBytes+1), ChunkLimits{}, "trailer-size"},
		{"endless lines", strings.Repeat("a: b\r\n", DefaultTrailerBytes), ChunkLimits{}, "trailer-size"},
		{"exact fields", "A: b\r\nC: d\r\n\r\n", ChunkLimits{TrailerFields: 2}, ""},
		{"too many fields", "A: b\r\nC: d\r\nE: f\r\n\r\n", ChunkLimits{TrailerFields: 2}, "trailer-count"},
		{"default fields", strings.Repeat("a: b\r\n", DefaultTrailerFields) + "\r\n", ChunkLimits{}, ""},
		{"too many by default", strings.Repeat("a: b\r\n", DefaultTrailerFields+1) + "\r\n", ChunkLimits{}, "trailer-count"},
	} {
		for _, k := range []int{1, 5, 1 << 20} {
			var d ChunkDecoder
			d.Reset(c.lim)
			_, _, _, err := decode(&d, []byte("0\r\n"+c.trailers), k)
			if got := reasonOf(t, err); got != c.reason {
				t.Errorf("%s in steps of %d: %q, not %q", c.name, k, got, c.reason)
			}
			if cap(d.trailer) > 2*DefaultTrailerBytes {
				t.Errorf("%s: %d bytes held", c.name, cap(d.trailer))
			}
		}
	}
}

func TestChunkDecoderReset(t *testing.T) {
	var d ChunkDecoder
	big := "0\r\nA: " + strings.Repeat("b", keptTrailerBytes*2) + "\r\n\r\n"
	for _, raw := range []string{"zz", "2;a=\"", "2\r\nh", big, "0\r\nA: b\r\n\r\n"} {
		decode(&d, []byte(raw), 1<<20)
		d.Reset(ChunkLimits{})
		if len(d.Trailers()) != 0 || cap(d.trailer) > keptTrailerBytes {
			t.Errorf("after %q: trailers %s, %d bytes held", raw, show(d.Trailers()), cap(d.trailer))
		}
		body, _, done, err := decode(&d, []byte("2\r\nhi\r\n0\r\n\r\n"), 1<<20)
		if string(body) != "hi" || !done || err != nil {
			t.Errorf("after %q: %q, done %v, %v", raw, body, done, err)
		}
		d.Reset(ChunkLimits{})
	}
}

func TestAfterChunkDoneNothingIsConsumed(t *testing.T) {
	var d ChunkDecoder
	if _, n, state, err := d.NextData([]byte("0\r\n\r\n")); n != 5 || state != ChunkDone || err != nil {
		t.Fatal(n, state, err)
	}
	for _, p := range []string{"", "GET"} {
		if _, n, state, err := d.NextData([]byte(p)); n != 0 || state != ChunkDone || err != nil {
			t.Errorf("%q: %d consumed, state %d, %v", p, n, state, err)
		}
	}
}

func TestChunkDataIsAView(t *testing.T) {
	var d ChunkDecoder
	p := []byte("2\r\nhi\r\n")
	data, n, _, _ := d.NextData(p)
	if !bytes.Equal(data, []byte("hi")) || &data[0] != &p[3] || n != 5 || cap(data) != 2 {
		t.Errorf("data %q at %d", data, n)
	}
}

func TestForbiddenTrailers(t *testing.T) {
	for _, name := range []string{
		"content-length", "transfer-encoding", "host", "authorization", "cookie", "set-cookie", "te", "trailer",
		"connection", "upgrade", "keep-alive", "content-type", "content-encoding", "content-range", "cache-control",
		"expect", "max-forwards", "pragma", "range", "if-match", "www-authenticate", "proxy-authorization", "age",
		"date", "expires", "location", "retry-after", "vary", "forwarded", "x-forwarded-for", "x-ssl-client-cn",
	} {
		if !IsForbiddenTrailer([]byte(name)) {
			t.Errorf("%s is allowed in trailers", name)
		}
	}
	for _, name := range []string{"x-checksum", "grpc-status", "grpc-message", "server-timing", "digest"} {
		if IsForbiddenTrailer([]byte(name)) {
			t.Errorf("%s is forbidden in trailers", name)
		}
	}
}
