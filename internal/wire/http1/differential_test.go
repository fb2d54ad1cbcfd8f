package http1

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/valyala/fasthttp"

	"turnout/internal/wire/field"
)

// What this codec writes must mean the same to other parsers. The functions below
// compare its reading of a message with that of net/http and fasthttp, and return
// the difference.

// sentinel follows the message under test: a parser that finds another end of the
// body eats it or leaves more than it.
const sentinel = "SENTINEL / HTTP/1.1\r\n\r\n"

// bodyOf is a body for a message framed as kind, as bytes of the wire and plain.
func bodyOf(kind BodyKind, length int64) (onWire, plain []byte) {
	switch kind {
	case BodyLength:
		plain = bytes.Repeat([]byte("b"), int(min(length, 1<<16)))
		return plain, plain
	case BodyChunked:
		plain = []byte("chunked body")
		return AppendLastChunk(appendChunk(nil, plain), nil, nil), plain
	}
	return nil, nil
}

// requestDiff reads the message our parser made of a request with net/http.
func requestDiff(r *Request) error {
	raw := appendRequest(nil, r)
	onWire, plain := bodyOf(r.Body, r.ContentLength)
	in := bufio.NewReader(io.MultiReader(bytes.NewReader(raw), bytes.NewReader(onWire), strings.NewReader(sentinel)))
	q, err := http.ReadRequest(in)
	if err != nil {
		if lenient, ok := withoutNiceties(r, err); ok {
			return requestDiff(lenient)
		}
		return fmt.Errorf("net/http refuses %q: %v", raw, err)
	}
	path, query := sent(r)
	target := string(path) + string(query)
	host := string(r.Authority)
	if r.Form != FormAuthority {
		host = string(field.Get(r.Fields, "host"))
	}
	switch {
	case q.Method != string(r.Method), q.RequestURI != target, q.ProtoMajor != 1, q.ProtoMinor != r.Minor:
		return fmt.Errorf("net/http reads the line of %q as %s %s %s", raw, q.Method, q.RequestURI, q.Proto)
	case !strings.EqualFold(q.Host, host):
		return fmt.Errorf("net/http routes %q to %q, not %q", raw, q.Host, host)
	case q.ContentLength != r.ContentLength, (len(q.TransferEncoding) == 1) != (r.Body == BodyChunked):
		return fmt.Errorf("net/http frames %q as %d bytes, %v", raw, q.ContentLength, q.TransferEncoding)
	case q.Close != !r.KeepAlive && !bytes.Contains(raw, []byte("keep-alive")):
		return fmt.Errorf("net/http closes after %q: %v", raw, q.Close)
	}
	if err := fieldsDiff(raw, r.Fields, q.Header, "host"); err != nil {
		return err
	}
	return restDiff(raw, r.ContentLength, plain, q.Body, in)
}

// withoutNiceties is r without what net/http refuses for reasons that are none of
// the wire: escapes it does not understand in a URL, and trailers it does not like.
func withoutNiceties(r *Request, err error) (*Request, bool) {
	c := *r
	switch text := err.Error(); {
	case strings.HasPrefix(text, "parse ") && r.Form == FormAuthority:
		c.Target, c.Authority = []byte("a:1"), []byte("a:1")
	case strings.HasPrefix(text, "parse ") && (len(r.Path) > 1 || len(r.Query) > 0):
		c.Form, c.Path, c.Query = FormOrigin, slash, nil
	case strings.Contains(text, "bad trailer key"):
		c.Fields = field.Delete(append([]field.Field(nil), r.Fields...), "trailer")
	default:
		return nil, false
	}
	return &c, true
}

// fieldsDiff compares our fields with a header net/http read from raw, except for
// the fields net/http keeps elsewhere or makes up.
func fieldsDiff(raw []byte, fields []field.Field, header http.Header, except ...string) error {
	ours := http.Header{}
	for _, f := range fields {
		key := textproto.CanonicalMIMEHeaderKey(string(f.Name))
		ours[key] = append(ours[key], string(f.Value))
	}
	header = header.Clone()
	for _, name := range append(except, "transfer-encoding", "trailer") {
		ours.Del(name)
		header.Del(name)
	}
	if len(ours["Cache-Control"]) == 0 && len(ours["Pragma"]) > 0 {
		delete(header, "Cache-Control") // made up from Pragma
	}
	if len(ours) != len(header) {
		return fmt.Errorf("net/http reads fields of %q as %q", raw, header)
	}
	for key, values := range ours {
		if strings.Join(values, "\n") != strings.Join(header[key], "\n") {
			return fmt.Errorf("net/http reads %s of %q as %q", key, raw, header[key])
		}
	}
	return nil
}

// restDiff reads the body and what follows it.
func restDiff(raw []byte, length int64, plain []byte, body io.Reader, in *bufio.Reader) error {
	if length > int64(len(plain)) {
		return nil // too long to give it a body
	}
	got, err := io.ReadAll(body)
	if err != nil || !bytes.Equal(got, plain) {
		return fmt.Errorf("net/http reads the body of %q as %q, %v", raw, got, err)
	}
	if rest, _ := io.ReadAll(in); string(rest) != sentinel {
		return fmt.Errorf("net/http leaves %q after the body of %q", rest, raw)
	}
	return nil
}

// fasthttpDiff reads the message our parser made of a request with fasthttp, as far
// as fasthttp keeps what it read: it has its own places for the fields named below
// and its own opinion about Trailer.
func fasthttpDiff(r *Request) error {
	c := *r
	c.Fields = field.Delete(append([]field.Field(nil), r.Fields...), "trailer")
	r = &c
	raw := appendRequest(nil, r)
	var h fasthttp.RequestHeader
	h.DisableNormalizing()
	if err := h.Read(bufio.NewReaderSize(bytes.NewReader(raw), len(raw)+16)); err != nil {
		return fmt.Errorf("fasthttp refuses %q: %v", raw, err)
	}
	path, query := sent(r)
	target := string(path) + string(query)
	switch {
	case string(h.Method()) != string(r.Method), string(h.RequestURI()) != target, h.IsHTTP11() != (r.Minor == 1):
		return fmt.Errorf("fasthttp reads the line of %q as %s %s %s", raw, h.Method(), h.RequestURI(), h.Protocol())
	case string(h.Host()) != string(field.Get(r.Fields, "host")):
		return fmt.Errorf("fasthttp routes %q to %q", raw, h.Host())
	case r.Body == BodyLength && h.ContentLength() != int(r.ContentLength), r.Body == BodyChunked && h.ContentLength() != -1:
		return fmt.Errorf("fasthttp frames %q as %d bytes", raw, h.ContentLength())
	}
	for _, f := range r.Fields {
		switch string(f.Name) {
		case "host", "content-length", "transfer-encoding", "connection", "content-type", "user-agent", "cookie":
			continue
		}
		ours := 0
		for _, v := range h.PeekAll(string(f.Name)) {
			if bytes.Equal(v, f.Value) {
				ours++
			}
		}
		same := 0
		for _, other := range r.Fields {
			if string(other.Name) == string(f.Name) {
				same++
			}
		}
		if ours == 0 || len(h.PeekAll(string(f.Name))) != same {
			return fmt.Errorf("fasthttp reads %s of %q as %q", f.Name, raw, h.PeekAll(string(f.Name)))
		}
	}
	return nil
}

// responseDiff reads the message our parser made of a response with net/http.
func responseDiff(r *Response, method string) error {
	raw := AppendStatusLine(nil, r.Minor, r.Status, r.Reason)
	raw = AppendHeadEnd(AppendFields(raw, r.Fields, nil))
	onWire, plain := bodyOf(r.Body, r.ContentLength)
	tail := sentinel
	if r.Body == BodyUntilClose {
		tail, plain = "", []byte(sentinel)
		onWire = plain
	}
	in := bufio.NewReader(io.MultiReader(bytes.NewReader(raw), bytes.NewReader(onWire), strings.NewReader(tail)))
	s, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		if strings.Contains(err.Error(), "bad trailer key") {
			c := *r
			c.Fields = field.Delete(append([]field.Field(nil), r.Fields...), "trailer")
			return responseDiff(&c, method)
		}
		return fmt.Errorf("net/http refuses %q: %v", raw, err)
	}
	reason, _ := strings.CutPrefix(s.Status, fmt.Sprint(r.Status))
	length := r.ContentLength
	if r.Status < 200 || r.Status == 204 || r.Status == 304 {
		length = s.ContentLength // net/http has its own number for no body
	}
	switch {
	case s.StatusCode != r.Status, strings.TrimSpace(reason) != strings.TrimSpace(string(r.Reason)), s.ProtoMinor != r.Minor:
		return fmt.Errorf("net/http reads the line of %q as %s %s", raw, s.Proto, s.Status)
	case s.ContentLength != length, r.Body == BodyChunked && len(s.TransferEncoding) != 1:
		return fmt.Errorf("net/http frames %q as %d bytes, %v", raw, s.ContentLength, s.TransferEncoding)
	}
	if err := fieldsDiff(raw, r.Fields, s.Header); err != nil {
		return err
	}
	if r.Body == BodyUntilClose {
		got, err := io.ReadAll(s.Body)
		if err != nil || !bytes.Equal(got, plain) {
			return fmt.Errorf("net/http reads the body of %q as %q, %v", raw, got, err)
		}
		return nil
	}
	if r.Body == BodyNone {
		plain, r.ContentLength = nil, 0
	}
	return restDiff(raw, r.ContentLength, plain, s.Body, in)
}
