package http1

import "testing"

// RFC 9112 section 6 and RFC 9110 section 8.6: how a request's body is framed.

func post(lines ...string) string {
	return "POST / HTTP/1.1\r\nHost: a\r\n" + join(lines)
}

func TestRequestBody(t *testing.T) {
	for _, c := range []struct {
		raw    string
		kind   BodyKind
		length int64
		fields string
	}{
		{post(), BodyNone, 0, ""},
		{post("Content-Length: 0"), BodyNone, 0, "content-length=0;"},
		{post("Content-Length: 00"), BodyNone, 0, "content-length=0;"},
		{post("Content-Length: 5"), BodyLength, 5, "content-length=5;"},
		{post("Content-Length:\t5 "), BodyLength, 5, "content-length=5;"},
		{post("Content-Length: 005"), BodyLength, 5, "content-length=5;"},
		{post("Content-Length: 5", "A: b", "Content-Length: 5"), BodyLength, 5, "content-length=5;a=b;"},
		{post("Content-Length: 9223372036854775807"), BodyLength, 1<<63 - 1, "content-length=9223372036854775807;"},
		{"GET / HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\n\r\n", BodyLength, 5, "content-length=5;"},
		{get("Content-Length: 5"), BodyLength, 5, "content-length=5;"},
		{post("Transfer-Encoding: chunked"), BodyChunked, -1, "transfer-encoding=chunked;"},
		{post("TRANSFER-ENCODING:  Chunked\t"), BodyChunked, -1, "transfer-encoding=Chunked;"},
		{post("Transfer_Encoding: chunked", "Content-Length: 5"), BodyLength, 5, "transfer_encoding=chunked;content-length=5;"},
	} {
		r := accept(t, c.raw)
		if r.Body != c.kind || r.ContentLength != c.length {
			t.Errorf("%q: body %d of %d bytes, not %d of %d", c.raw, r.Body, r.ContentLength, c.kind, c.length)
		}
		if got := show(r.Fields[1:]); got != c.fields {
			t.Errorf("%q: fields %s, not %s", c.raw, got, c.fields)
		}
	}
}

func TestContentLengthRefused(t *testing.T) {
	var cases []refusal
	for _, v := range []string{
		"", "+2", "-2", "-0", "0x2", "0o2", "1_0", "2, 2", "2,2", "2 2", "2;", "abc", "2.0", "\xb2",
		"9223372036854775808", "18446744073709551616", "18446744073709551618", "99999999999999999999",
	} {
		cases = append(cases, refusal{"value " + v, post("Content-Length: " + v), "content-length"})
	}
	cases = append(cases,
		refusal{"two", post("Content-Length: 2", "Content-Length: 3"), "content-length-conflict"},
		refusal{"empty, then one", post("Content-Length:", "Content-Length: 2"), "content-length"},
		refusal{"one, then empty", post("Content-Length: 2", "Content-Length:"), "content-length"},
		refusal{"of a GET", get("Content-Length: x"), "content-length"},
	)
	refuseRequests(t, 400, cases)
}

func TestTransferEncodingRefused(t *testing.T) {
	te := func(v string) string { return post("Transfer-Encoding: " + v) }
	refuseRequests(t, 400, []refusal{
		{"CL then TE", post("Content-Length: 5", "Transfer-Encoding: chunked"), "cl-te"},
		{"TE then CL", post("Transfer-Encoding: chunked", "Content-Length: 5"), "cl-te"},
		{"TE then CL 0", post("Transfer-Encoding: chunked", "Content-Length: 0"), "cl-te"},
		{"CL with odd TE", post("Content-Length: 5", "Transfer-Encoding: identity"), "cl-te"},
		{"HTTP/1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "transfer-encoding-1.0"},
		{"HTTP/1.0 with CL", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", "transfer-encoding-1.0"},
		{"two lines", post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), "transfer-encoding-repeated"},
		{"two codings on two lines", post("Transfer-Encoding: gzip", "Transfer-Encoding: chunked"), "transfer-encoding-repeated"},
		{"empty", te(""), "transfer-encoding"},
		{"xchunked", te("xchunked"), "transfer-encoding"},
		{"identity", te("identity"), "transfer-encoding"},
		{"gzip", te("gzip"), "transfer-encoding"},
		{"chunked, identity", te("chunked, identity"), "transfer-encoding"},
		{"chunked, chunked", te("chunked, chunked"), "transfer-encoding"},
		{"leading comma", te(", chunked"), "transfer-encoding"},
		{"trailing comma", te("chunked,"), "transfer-encoding"},
		{"quoted", te("\"chunked\""), "transfer-encoding"},
		{"parameter", te("chunked;a=b"), "transfer-encoding"},
		{"vertical tab", te("\x0bchunked"), "field-value"},
		{"NUL", te("chunked\x00"), "nul"},
		{"space before colon", post("Transfer-Encoding : chunked"), "space-before-colon"},
		{"obs-fold", post("Transfer-Encoding:", " chunked"), "obs-fold"},
	})
	refuseRequests(t, 501, []refusal{
		{"gzip, chunked", te("gzip, chunked"), "transfer-coding-unknown"},
		{"two unknown, chunked", te("gzip,deflate ,Chunked"), "transfer-coding-unknown"},
	})
}
