package http1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"testing"
)

// seeds are the messages of the table tests that show one thing each.
func requestSeeds() []string {
	return []string{
		typicalRequest,
		get(), get("A: b", "a: c", "Empty:", "X: \xff\t y "),
		post("Content-Length: 5"), post("Content-Length: 005", "Content-Length: 5"),
		post("Transfer-Encoding: Chunked", "Trailer: X-Sum"), post("Content-Length: 5", "Transfer-Encoding: chunked"),
		get("Connection: upgrade, foo, close", "Upgrade: websocket", "Foo: bar", "TE: trailers"),
		post("Expect: 100-continue", "Content-Length: 3"),
		"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET / HTTP/1.5\r\nHost: a\r\n\r\n",
		"GET http://A/b?c HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET //a/%zz?b;c HTTP/1.1\r\nHost: a:80x\r\nHost: a:80x\r\nPragma: no-cache\r\n\r\n",
		"GET / HTTP/1.1\nHost: a\r\n\r\n", get("A: b", " c"), get("A : b"), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	}
}

// What is accepted is read as the same one request by net/http and fasthttp after
// it was written again, and costs bounded memory.
func FuzzParseRequest(f *testing.F) {
	for _, s := range requestSeeds() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		n, findErr := FindHeadEnd(raw, 0, Limits{})
		if fed, err := feed(string(raw), 1, Limits{}); err == nil && fed != n {
			t.Fatalf("head of %q ends at %d in one piece, at %d byte by byte", raw, n, fed)
		}
		var whole Request
		if err := ParseRequest(bytes.Clone(raw), &whole, Limits{}); err == nil && n != len(raw) && len(raw) <= DefaultHeadBytes {
			t.Fatalf("%q is accepted, but its head ends at %d, %v", raw, n, findErr)
		} else {
			reasonOf(t, err)
		}
		if n == 0 {
			return
		}
		var r Request
		head := bytes.Clone(raw[:n])
		if err := ParseRequest(head, &r, Limits{}); err != nil {
			reasonOf(t, err)
			return
		}
		if cap(r.Fields) > 2*DefaultFields || cap(r.ConnectionOptions) > 2*maxOptions {
			t.Fatalf("%d fields and %d options held", cap(r.Fields), cap(r.ConnectionOptions))
		}
		if err := requestDiff(&r); err != nil {
			t.Fatal(err)
		}
		if err := fasthttpDiff(&r); err != nil {
			t.Fatal(err)
		}
		out := appendRequest(nil, &r)
		var again Request
		if err := ParseRequest(bytes.Clone(out), &again, Limits{}); err != nil {
			t.Fatalf("own output %q refused: %v", out, err)
		}
		if second := appendRequest(nil, &again); !bytes.Equal(out, second) {
			t.Fatalf("%q is written as %q", out, second)
		}
	})
}

func FuzzParseResponse(f *testing.F) {
	for _, s := range []string{
		typicalResponse,
		"HTTP/1.1 200\r\n\r\n", "HTTP/1.0 200 \r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\n",
		"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 304 x\r\nContent-Length: 10\r\n\r\n",
		"HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", "HTTP/1.1 103 x\r\nLink: y\r\n\r\n",
		"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\nTrailer: a\r\n\r\n", "HTTP/1.1 999 \xff\t\r\n\r\n",
		"HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, head bool) {
		method := "GET"
		if head {
			method = "HEAD"
		}
		var r Response
		if err := ParseResponse(bytes.Clone(raw), &r, []byte(method), Limits{}); err != nil {
			reasonOf(t, err)
			if err.(*Error).Status != 502 {
				t.Fatalf("status %d", err.(*Error).Status)
			}
			return
		}
		if n, err := FindHeadEnd(raw, 0, Limits{HeadBytes: len(raw)}); n != len(raw) || err != nil {
			t.Fatalf("%q is accepted, but its head ends at %d, %v", raw, n, err)
		}
		if cap(r.Fields) > 2*DefaultFields || cap(r.ConnectionOptions) > 2*maxOptions {
			t.Fatalf("%d fields and %d options held", cap(r.Fields), cap(r.ConnectionOptions))
		}
		if fed, err := feed(string(raw), 1, Limits{HeadBytes: len(raw)}); err != nil || fed != len(raw) {
			t.Fatalf("head of %q ends at %d byte by byte, %v", raw, fed, err)
		}
		if r.Body == BodyUntilClose && r.KeepAlive || r.Status < 200 && r.Body != BodyNone {
			t.Fatalf("%q has a body of kind %d, kept alive %v", raw, r.Body, r.KeepAlive)
		}
		out := AppendHeadEnd(AppendFields(AppendStatusLine(nil, r.Minor, r.Status, r.Reason), r.Fields, nil))
		var again Response
		if err := ParseResponse(bytes.Clone(out), &again, []byte(method), Limits{}); err != nil {
			t.Fatalf("own output %q refused: %v", out, err)
		}
		if again.Body != r.Body || again.ContentLength != r.ContentLength || show(again.Fields) != show(r.Fields) {
			t.Fatalf("%q is read as %+v, its own output as %+v", raw, r, again)
		}
		if err := responseDiff(&r, method); err != nil {
			t.Fatal(err)
		}
	})
}

// Any split gives the same result, and what is accepted is what net/http reads.
func FuzzChunkDecoder(f *testing.F) {
	for _, s := range []string{
		"0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\nGET", "A;a=b;c=\"d\\\"\"\r\n0123456789\r\n00\r\nX: y\r\nHost: z\r\n\r\n",
		"1; a = b ;c\r\nx\r\n0\r\n\r\n", "2\nhi\n0\n\n", "ffffffffffffffff\r\n", "0\r\nA: b\r\n c\r\n\r\n",
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, raw []byte, step uint8) {
		var d ChunkDecoder
		body, rest, done, err := decode(&d, raw, len(raw)+1)
		trailers := show(d.Trailers())
		reason := reasonOf(t, err)
		for _, k := range []int{1, int(step) + 1} {
			var s ChunkDecoder
			b, r, dn, err := decode(&s, raw, k)
			if !bytes.Equal(b, body) || r != rest || dn != done || reasonOf(t, err) != reason || show(s.Trailers()) != trailers {
				t.Fatalf("%q in steps of %d: %q, %d left, done %v, %v; in one piece: %q, %d left, done %v, %s",
					raw, k, b, r, dn, err, body, rest, done, reason)
			}
			if cap(s.trailer) > 2*DefaultTrailerBytes || cap(s.fields) > 2*DefaultTrailerFields {
				t.Fatalf("%d bytes and %d fields held", cap(s.trailer), cap(s.fields))
			}
		}
		if !done {
			return
		}
		if got, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(raw))); err != nil || !bytes.Equal(got, body) {
			t.Fatalf("net/http reads %q as %q, %v; not %q", raw, got, err, body)
		}
		// net/http takes no trailers longer than the buffer.
		in := bufio.NewReaderSize(io.MultiReader(bytes.NewReader([]byte(post("Transfer-Encoding: chunked"))), bytes.NewReader(raw)), 2*DefaultTrailerBytes)
		q, err := http.ReadRequest(in)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(q.Body); err != nil {
			t.Fatalf("net/http refuses the trailers of %q: %v", raw, err)
		}
		if left, _ := io.ReadAll(in); len(left) != rest {
			t.Fatalf("net/http leaves %d bytes of %q, not %d", len(left), raw, rest)
		}
		for _, tr := range d.Trailers() {
			found := false
			for _, v := range q.Trailer[textproto.CanonicalMIMEHeaderKey(string(tr.Name))] {
				found = found || v == string(tr.Value)
			}
			if !found {
				t.Fatalf("net/http reads trailers of %q as %q", raw, q.Trailer)
			}
		}
	})
}
