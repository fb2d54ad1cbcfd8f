package h2frame

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"turnout/internal/wire/http1"
)

// pair is one field as HPACK has it.
type pair struct{ name, value string }

// pairs makes a list of fuzzed text: lines of "name:value", where a name may begin with a colon.
func pairs(text string) (list []pair) {
	for line := range strings.SplitSeq(text, "\n") {
		if i := strings.IndexByte(line[min(len(line), 1):], ':'); i >= 0 {
			list = append(list, pair{line[:i+1], line[i+2:]})
		}
	}
	return list
}

// judged is all that a Block says of a list.
func judged(b *Block, kind Kind, list []pair, end bool) string {
	b.Reset(kind, Limits{Bytes: 16 << 10, Fields: 101})
	for _, p := range list {
		b.AddField([]byte(p.name), []byte(p.value))
	}
	if f := b.Finish(end); f != FaultNone {
		return f.String()
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%q %q %q %q %q %d %d", b.Method, b.Scheme, b.Authority, b.Path, b.Protocol, b.Status, b.ContentLength)
	for _, f := range b.Fields {
		fmt.Fprintf(&s, " %q=%q", f.Name, f.Value)
	}
	return s.String()
}

// decoded is what HPACK makes of a block.
func decoded(t *testing.T, block []byte) (list []pair) {
	t.Helper()
	dec := hpack.NewDecoder(4096, func(f hpack.HeaderField) { list = append(list, pair{f.Name, f.Value}) })
	if _, err := dec.Write(block); err != nil {
		t.Fatalf("%x: %v", block, err)
	}
	if err := dec.Close(); err != nil {
		t.Fatalf("%x: %v", block, err)
	}
	return list
}

// FuzzBlock: a header list is judged the same whatever the Block was used for before; what is accepted says the same after it
// was encoded and decoded again; and a request is read by net/http as the same one request when it goes on as HTTP/1.1.
func FuzzBlock(f *testing.F) {
	get := ":method:GET\n:scheme:https\n:authority:A.test:80\n:path:/p?q\n"
	for _, s := range []string{
		get, get + "cookie:a=1\ncookie:b=2\nx-a:1\nx-a:2", get + "content-length:5\ncontent-length:5", get + "host:a.TEST:80\nte:trailers",
		get + "X:y", get + "x:a\rb", get + "transfer-encoding:chunked", get + "connection:close", get + ":path:/", "x:y\n" + get, get + "host:b.test",
		":method:OPTIONS\n:scheme:http\nhost:a.test\n:path:*", ":method:CONNECT\n:authority:a.test:1", ":method:CONNECT\n:protocol:websocket\n:scheme:https\n:path:/\n:authority:a.test",
		":status:200\ncontent-length:7\nset-cookie:a=b", ":status:101", ":status:2000", "x-sum:1\ncontent-length:3", "grpc-status:0", "cookie:a\ncookie:b", "x-a:1\ncookie:a\ncookie:b", strings.Replace(get, "/p?q", "/a b", 1), get + "expect:100-continue\npragma:no-cache",
	} {
		for kind := range uint8(3) {
			f.Add(s, kind, kind == 0)
		}
	}
	f.Fuzz(func(t *testing.T, text string, k uint8, end bool) {
		kind, list := Kind(k%3), pairs(text)
		var b, used Block
		want := judged(&b, kind, list, end)
		judged(&used, Request, []pair{{":method", "GET"}, {"cookie", "a"}, {"cookie", "b"}, {"host", "X"}, {"content-length", "9"}}, false)
		if used.Release(); judged(&used, kind, list, end) != want {
			t.Fatalf("%q is %s; in a Block that was used before %s", list, want, judged(&used, kind, list, end))
		}
		if b.Fault != FaultNone {
			if b.Fault.Reason() == "" || b.Fault.Malformed() != (b.Fault.Status() == 0) {
				t.Fatalf("fault %d: %q", b.Fault, b.Fault)
			}
			return
		}
		if len(b.Fields) > 102 || b.memory.size() > 64<<10 {
			t.Fatalf("%d fields, %d bytes", len(b.Fields), b.memory.size())
		}
		if string(b.Method) == "CONNECT" {
			return
		}
		var again Block
		if got := judged(&again, kind, decoded(t, encoded(&b)), end); got != want {
			t.Fatalf("%q is %s; after encoding %s", list, want, got)
		}
		if kind == Request {
			if err := onwards(&b, end); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// encoded is what b says, as this package writes it.
func encoded(b *Block) []byte {
	out, fields := []byte{EmptyTable}, b.Fields
	switch b.kind {
	case Request:
		out = AppendRequestLine(out, b.Method, string(b.Scheme) == "https", b.Authority, b.Path, nil)
		fields = fields[1:] // host, which is :authority
	case Response:
		out = AppendStatus(out, b.Status)
	}
	for _, f := range fields {
		out = AppendField(out, f.Name, f.Value)
	}
	if b.ContentLength >= 0 {
		out = AppendContentLength(out, b.ContentLength)
	}
	return out
}

// onwards writes a request as HTTP/1.1, as an endpoint gets it, and has net/http read it.
func onwards(b *Block, end bool) error {
	target := b.Path
	for {
		raw := http1.AppendRequestLine(nil, b.Method, target, nil, 1)
		raw = http1.AppendFields(raw, b.Fields, nil)
		switch {
		case b.ContentLength >= 0:
			raw = http1.AppendContentLength(raw, b.ContentLength, nil)
		case !end:
			raw = append(raw, "transfer-encoding: chunked\r\n"...)
		}
		raw = http1.AppendHeadEnd(raw)
		in := bufio.NewReaderSize(bytes.NewReader(raw), 1<<20)
		q, err := http.ReadRequest(in)
		switch {
		case err != nil && strings.HasPrefix(err.Error(), "parse ") && string(target) != "/":
			target = []byte("/") // an escape that net/http does not understand in a URL
			continue
		case err != nil && strings.Contains(err.Error(), "bad trailer key"):
			return nil
		case err != nil:
			return fmt.Errorf("net/http refuses %q: %w", raw, err)
		}
		if q.Method != string(b.Method) || q.RequestURI != string(target) || q.Host != string(b.Authority) || in.Buffered() > 0 {
			return fmt.Errorf("net/http reads %q as %s %s of %s with %d bytes after it", raw, q.Method, q.RequestURI, q.Host, in.Buffered())
		}
		if rest, _ := io.ReadAll(in); b.ContentLength >= 0 && q.ContentLength != b.ContentLength || len(rest) > 0 {
			return fmt.Errorf("net/http finds %d bytes of body in %q, and %q", q.ContentLength, raw, rest)
		}
		return sameFields(b, q.Header)
	}
}

func sameFields(b *Block, h http.Header) error {
	got, want := map[string]int{}, map[string]int{}
	for name, values := range h {
		for _, v := range values {
			got[name+": "+v]++
		}
	}
	for _, f := range b.Fields[1:] {
		want[textproto.CanonicalMIMEHeaderKey(string(f.Name))+": "+string(f.Value)]++
	}
	if b.ContentLength >= 0 {
		want[fmt.Sprint("Content-Length: ", b.ContentLength)]++
	}
	if h.Get("Pragma") != "" && want["Cache-Control: no-cache"] == 0 {
		delete(got, "Cache-Control: no-cache") // net/http makes it up
	}
	for _, m := range []map[string]int{got, want} {
		for line := range m {
			if strings.HasPrefix(line, "Trailer: ") { // net/http has a place of its own for it
				delete(m, line)
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("net/http reads %v, not %v", got, want)
	}
	return nil
}

// FuzzFrameHeader: nine bytes are a frame header, and a frame header is nine bytes.
func FuzzFrameHeader(f *testing.F) {
	f.Add([]byte("\x00\x00\x04\x08\x00\x00\x00\x00\x00"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) < HeaderSize {
			return
		}
		h := ParseHeader(p)
		out := AppendHeader(nil, h)
		if len(out) != HeaderSize || ParseHeader(out) != h {
			t.Fatalf("%x is %+v, written as %x", p[:HeaderSize], h, out)
		}
		if p[5] &= 0x7f; !bytes.Equal(out, p[:HeaderSize]) {
			t.Fatalf("%x is written as %x", p[:HeaderSize], out)
		}
	})
}
