package h2frame

import (
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
)

// TestEncoderIsUnderstood: a decoder with a dynamic table, golang.org/x/net's, reads what was encoded and learns nothing.
func TestEncoderIsUnderstood(t *testing.T) {
	names := []string{
		"x-a", "accept-charset", "accept-encoding", "accept-language", "accept-ranges", "accept", "access-control-allow-origin", "age", "allow",
		"authorization", "cache-control", "content-disposition", "content-encoding", "content-language", "content-location",
		"content-range", "content-type", "cookie", "date", "etag", "expect", "expires", "from", "host", "if-match", "if-modified-since",
		"if-none-match", "if-range", "if-unmodified-since", "last-modified", "link", "location", "max-forwards", "proxy-authenticate",
		"proxy-authorization", "range", "referer", "refresh", "retry-after", "server", "set-cookie", "strict-transport-security",
		"user-agent", "vary", "via", "www-authenticate", strings.Repeat("n", 126), strings.Repeat("n", 127), strings.Repeat("n", 128), strings.Repeat("n", 300),
	}
	var got, want []string
	dec := hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		got = append(got, f.Name+"="+f.Value)
		secret := f.Name == "authorization" || f.Name == "proxy-authorization" || f.Name == "cookie" || f.Name == "set-cookie"
		if f.Sensitive != secret {
			t.Errorf("%s may be indexed: %v", f.Name, !f.Sensitive)
		}
	})
	b := []byte{EmptyTable}
	for _, status := range []int{200, 204, 206, 304, 400, 404, 500, 100, 103, 201, 503, 999} {
		b = AppendStatus(b, status)
		want = append(want, ":status="+string([]byte{byte('0' + status/100), byte('0' + status/10%10), byte('0' + status%10)}))
	}
	for _, method := range []string{"GET", "POST", "PATCH"} {
		for _, scheme := range []string{"http", "https"} {
			b = AppendRequestLine(b, []byte(method), scheme == "https", []byte("a.test:80"), []byte("/path"), []byte("?query"))
			want = append(want, ":method="+method, ":scheme="+scheme, ":authority=a.test:80", ":path=/path?query")
		}
	}
	b = AppendRequestLine(b, []byte("GET"), false, nil, []byte("/"), nil) // of HTTP/1.0, without a host
	want = append(want, ":method=GET", ":scheme=http", ":path=/")
	for i, n := range names {
		value := strings.Repeat("v", i*i*7)
		b = AppendField(b, []byte(n), []byte(value))
		want = append(want, n+"="+value)
	}
	for _, n := range []int64{0, 9, 1 << 40, 1<<63 - 1} {
		b = AppendContentLength(b, n)
	}
	want = append(want, "content-length=0", "content-length=9", "content-length=1099511627776", "content-length=9223372036854775807")
	if _, err := dec.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := dec.Close(); err != nil {
		t.Fatal(err)
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("decoded:\n%.2000s\nwant:\n%.2000s", g, w)
	}
}

func TestFrameHeader(t *testing.T) {
	h := Header{Length: 0x123456, Type: Headers, Flags: FlagEndHeaders, Stream: MaxStream}
	b := AppendHeader(nil, h)
	if len(b) != HeaderSize || ParseHeader(b) != h {
		t.Errorf("%x is read as %+v", b, ParseHeader(b))
	}
	b[5] |= 0x80 // the reserved bit (RFC 9113 section 4.1)
	if ParseHeader(b) != h {
		t.Errorf("the reserved bit is read: %+v", ParseHeader(b))
	}
}

func TestNames(t *testing.T) {
	for c, want := range map[Code]string{NoError: "NO_ERROR", EnhanceYourCalm: "ENHANCE_YOUR_CALM", HTTP11Required: "HTTP_1_1_REQUIRED", 14: "unknown code"} {
		if c.String() != want {
			t.Errorf("code %d is %s", c, c)
		}
	}
	for f := FaultName; f <= FaultTooManyFields; f++ {
		if faults[f].reason == "" || faults[f].clause == "" {
			t.Errorf("fault %d has no reason or clause", f)
		}
		if f.Malformed() != (f.Status() == 0) {
			t.Errorf("%v is malformed: %v, status %d", f, f.Malformed(), f.Status())
		}
	}
}
