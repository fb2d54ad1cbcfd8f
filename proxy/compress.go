package proxy

import (
	"bytes"
	"strings"

	"github.com/klauspost/compress/gzip"

	"turnout/internal/bound"
	"turnout/internal/wire/field"
)

// Compression says which answers are compressed on their way to clients. It is
// immutable and shared by all workers.
type Compression struct {
	types []string // media types without parameters, lower-case
}

// NewCompression takes media types separated by blanks, such as "text/html text/css".
func NewCompression(types string) *Compression {
	return &Compression{types: strings.Fields(strings.ToLower(types))}
}

// Limits of compressors, of about 600 KiB each.
const (
	maxCompressors  = 64 // in use by a loop, shared by namespaces; beyond that, no compression
	keptCompressors = 8  // kept for later responses
)

// compressor turns the body of one answer into gzip (RFC 1952). What it returns is
// valid until its next call.
type compressor struct {
	gz  *gzip.Writer
	out bytes.Buffer
}

// data compresses p and flushes, so that nothing waits for what comes later: an event
// of a stream leaves when it has arrived.
func (c *compressor) data(p []byte) []byte {
	c.out.Reset()
	_, _ = c.gz.Write(p) // a bytes.Buffer never fails
	_ = c.gz.Flush()
	return c.out.Bytes()
}

// end returns the last bytes.
func (c *compressor) end() []byte {
	c.out.Reset()
	_ = c.gz.Close()
	return c.out.Bytes()
}

// compressor returns a compressor for a response of a namespace, nil if the share of the namespace
// is in use.
func (w *Worker) compressor(namespace string) *compressor {
	if !w.compressing.Take(namespace, 1) {
		w.Reached(bound.Compressors)
		return nil
	}
	if n := len(w.compressors); n > 0 {
		c := w.compressors[n-1]
		w.compressors = w.compressors[:n-1]
		c.gz.Reset(&c.out)
		return c
	}
	c := &compressor{}
	c.gz, _ = gzip.NewWriterLevel(&c.out, gzip.BestSpeed) // the level is one there is
	return c
}

// freeCompressor returns a compressor to the worker and its place to the share of the namespace.
func (w *Worker) freeCompressor(c *compressor, namespace string) {
	w.compressing.Give(namespace, 1)
	if len(w.compressors) < keptCompressors {
		w.compressors = append(w.compressors, c)
	}
}

// compressHead decides whether the answer is compressed, and changes its head if so:
// the client takes gzip, and the answer is 200 to 203 over HTTP/1.1 or later, has a body
// of one of the types, and nothing that speaks against it.
func (ex *Exchange) compressHead(h *Head) {
	cfg := ex.cfg.Compression
	if !ex.takesGzip || h.Status < 200 || h.Status > 203 || h.Minor == 0 || ex.req.Minor == 0 {
		return
	}
	typed, etag, vary := false, -1, false
	for i := range h.Fields {
		v := h.Fields[i].Value
		switch string(h.Fields[i].Name) {
		case "content-encoding", "content-range", "content-digest", "digest", "content-md5":
			return
		case "cache-control":
			if hasMember(v, "no-transform") {
				return
			}
		case "content-type":
			typed = cfg.covers(v)
		case "etag":
			if etag >= 0 || !isETag(v) {
				return
			}
			etag = i
		case "vary":
			vary = vary || hasMember(v, "accept-encoding") || hasMember(v, "*")
		}
	}
	if !typed {
		return
	}
	if ex.gzip = ex.w.compressor(ex.route.Namespace()); ex.gzip == nil {
		return
	}
	h.ContentLength = -1
	h.addField("content-encoding", constant("gzip"))
	if !vary {
		h.addField("vary", constant("Accept-Encoding"))
	}
	if etag >= 0 && h.Fields[etag].Value[0] == '"' { // other bytes, so not the same strong tag (RFC 9110 section 8.8.1)
		b := ex.scratch.Begin(len(h.Fields[etag].Value) + 2)
		b = append(append(b, "W/"...), h.Fields[etag].Value...)
		h.Fields[etag].Value = ex.scratch.End(b)
	}
}

// covers reports whether a Content-Type is one of the types.
func (c *Compression) covers(contentType []byte) bool {
	media := contentType
	if i := bytes.IndexByte(media, ';'); i >= 0 {
		media = media[:i]
	}
	media = field.Trim(media)
	for _, t := range c.types {
		if equalFold(media, t) {
			return true
		}
	}
	return false
}

// isETag reports a well-formed entity tag (RFC 9110 section 8.8.3).
func isETag(v []byte) bool {
	v = bytes.TrimPrefix(v, constant("W/"))
	return len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"' && bytes.IndexByte(v[1:len(v)-1], '"') < 0
}

// hasMember reports whether a comma-separated list has a member called name.
func hasMember(list []byte, name string) bool {
	for len(list) > 0 {
		var member []byte
		if member, list = nextMember(list); equalFold(member, name) {
			return true
		}
	}
	return false
}

// nextMember cuts the first member off a comma-separated list.
func nextMember(list []byte) (member, rest []byte) {
	if i := bytes.IndexByte(list, ','); i >= 0 {
		return field.Trim(list[:i]), list[i+1:]
	}
	return field.Trim(list), nil
}

// takesGzip reports whether Accept-Encoding says that the client can read gzip (RFC 9110
// section 12.5.3).
func takesGzip(fields []Field) bool {
	gzip, others := -1, -1 // thousandths, -1 = not named
	for i := range fields {
		if string(fields[i].Name) != "accept-encoding" {
			continue
		}
		for list := fields[i].Value; len(list) > 0; {
			var member []byte
			member, list = nextMember(list)
			coding, weight := member, 1000
			if semicolon := bytes.IndexByte(member, ';'); semicolon >= 0 {
				coding, weight = field.Trim(member[:semicolon]), quality(field.Trim(member[semicolon+1:]))
			}
			switch {
			case equalFold(coding, "gzip"):
				gzip = weight
			case string(coding) == "*":
				others = weight
			}
		}
	}
	return gzip > 0 || gzip < 0 && others > 0
}

// quality reads "q=0.5" as thousandths; what is no weight is 0.
func quality(v []byte) int {
	if len(v) < 3 || v[0]|0x20 != 'q' || v[1] != '=' {
		return 0
	}
	n := 0
	for i, c := range v[2:] {
		switch {
		case i == 1 && c == '.':
		case i != 1 && i < 5 && '0' <= c && c <= '9':
			n = n*10 + int(c-'0')
		default:
			return 0
		}
	}
	for digits := max(len(v)-3, 1); digits < 4; digits++ {
		n *= 10
	}
	if n > 1000 {
		return 0
	}
	return n
}
