package http1

import (
	"bytes"
	"net/http"
	"testing"

	"turnout/internal/wire/field"
)

// Serialisers: what is written reads back as what was parsed.

// sent is the target that goes out for r.
func sent(r *Request) (path, query []byte) {
	if r.Form == FormAuthority {
		return r.Target, nil
	}
	return r.Path, r.Query
}

func appendRequest(dst []byte, r *Request) []byte {
	path, query := sent(r)
	dst = AppendRequestLine(dst, r.Method, path, query, r.Minor)
	dst = AppendFields(dst, r.Fields, nil)
	return AppendHeadEnd(dst)
}

func TestRequestRoundTrip(t *testing.T) {
	for _, raw := range []string{
		typicalRequest,
		get(),
		post("Content-Length: 5", "X: a", "x: b", "Empty:"),
		"GET /x HTTP/1.0\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		first := accept(t, raw)
		out := string(appendRequest(nil, first))
		second := accept(t, out)
		if again := string(appendRequest(nil, second)); again != out {
			t.Errorf("%q is written as %q, then as %q", raw, out, again)
		}
	}
	r := accept(t, "GET http://a/b?c HTTP/1.1\r\nHost: A\r\nX:  y \r\n\r\n")
	if got := string(appendRequest([]byte(">"), r)); got != ">GET /b?c HTTP/1.1\r\nhost: A\r\nx: y\r\n\r\n" {
		t.Errorf("written as %q", got)
	}
}

func TestStatusLineAppended(t *testing.T) {
	for _, c := range []struct {
		minor, status int
		reason        []byte
		want          string
	}{
		{1, 200, nil, "HTTP/1.1 200 OK\r\n"},
		{0, 503, nil, "HTTP/1.0 503 Service Unavailable\r\n"},
		{1, 200, []byte{}, "HTTP/1.1 200 \r\n"},
		{1, 404, []byte("Nope"), "HTTP/1.1 404 Nope\r\n"},
		{1, 599, nil, "HTTP/1.1 599 \r\n"},
	} {
		if got := string(AppendStatusLine(nil, c.minor, c.status, c.reason)); got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}

func TestReasonPhrases(t *testing.T) {
	// Where the standard library still has the names of older RFCs.
	newer := map[int]string{413: "Content Too Large", 414: "URI Too Long", 416: "Range Not Satisfiable", 422: "Unprocessable Content"}
	for status := range 1100 {
		want := http.StatusText(status)
		if w := newer[status]; w != "" {
			want = w
		}
		if got := ReasonPhrase(status); got != want {
			t.Errorf("%d: %q, not %q", status, got, want)
		}
	}
	if ReasonPhrase(-1) != "" {
		t.Error("phrase of -1")
	}
}

func TestFieldsAppended(t *testing.T) {
	fields := []field.Field{{Name: []byte("a"), Value: []byte("1")}, {Name: []byte("b")}, {Name: []byte("a"), Value: []byte("2")}}
	if got := string(AppendFields(nil, fields, nil)); got != "a: 1\r\nb: \r\na: 2\r\n" {
		t.Errorf("%q", got)
	}
	if got := string(AppendFields(nil, fields, bytes.ToUpper)); got != "A: 1\r\nB: \r\nA: 2\r\n" {
		t.Errorf("adjusted: %q", got)
	}
	if string(fields[0].Name) != "a" {
		t.Error("adjusting changed the field")
	}
	if got := string(AppendContentLength(nil, 1<<40, nil)); got != "content-length: 1099511627776\r\n" {
		t.Errorf("%q", got)
	}
}

func TestChunksAppended(t *testing.T) {
	out := appendChunk(nil, []byte("hello"))
	out = appendChunk(out, nil)
	out = appendChunk(out, bytes.Repeat([]byte("x"), 300))
	out = AppendLastChunk(out, []field.Field{{Name: []byte("sum"), Value: []byte("1")}}, bytes.ToUpper)
	want := "5\r\nhello\r\n12c\r\n" + string(bytes.Repeat([]byte("x"), 300)) + "\r\n0\r\nSUM: 1\r\n\r\n"
	if string(out) != want {
		t.Errorf("%q, not %q", out, want)
	}
	var d ChunkDecoder
	body, rest, done, err := decode(&d, out, 7)
	if len(body) != 305 || rest != 0 || !done || err != nil || show(d.Trailers()) != "sum=1;" {
		t.Errorf("decoded: %d bytes, %d left, done %v, trailers %s, %v", len(body), rest, done, show(d.Trailers()), err)
	}
}

// appendChunk is how a chunk is written: the parts around what is not copied.
func appendChunk(dst, data []byte) []byte {
	if len(data) == 0 {
		return dst
	}
	return AppendChunkEnd(append(AppendChunkHeader(dst, len(data)), data...))
}
