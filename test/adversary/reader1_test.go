package adversary

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// head1 is the head of an HTTP/1.1 message.
type head1 struct {
	status       int // of an answer
	method, path string
	host         string
	fields       http.Header
}

// reader1 reads what the router says over HTTP/1.1, byte by byte if need be. net/http judges the heads, so that everything the
// router sends must be grammatical; the bodies are counted here.
type reader1 struct {
	answers bool          // it reads answers, not requests
	method  func() string // answers: of the request that the next final answer belongs to
	onHead  func(h *head1)
	onBody  func(p []byte)
	onEnd   func()
	tunnel  func(p []byte) // after a 101, or what else begins a tunnel; nil: there is none

	buf     []byte
	mode    mode1
	left    int64 // bytes of the body, or of the chunk
	head    *head1
	tunnels bool
	in      *bufio.Reader
	err     error
}

type mode1 uint8

const (
	inHead mode1 = iota
	inLength
	inChunkSize
	inChunk
	inChunkEnd
	inTrailers
	inClose // the body lasts until the connection ends
)

// midway says that a message has begun and not ended.
func (r *reader1) midway() bool { return r.mode != inHead || len(r.buf) > 0 }

// feed reads more. After an error it reads nothing any more.
func (r *reader1) feed(p []byte) error {
	r.buf = append(r.buf, p...)
	for r.err == nil && len(r.buf) > 0 {
		if r.tunnels {
			if r.tunnel != nil {
				r.tunnel(r.buf)
			}
			r.buf = nil
			return nil
		}
		more, err := r.step()
		r.err = err
		if !more {
			break
		}
	}
	return r.err
}

// eof says whether the end of the connection was the end of a message.
func (r *reader1) eof() error {
	if r.mode == inClose {
		r.end()
		return nil
	}
	if r.midway() && !r.tunnels {
		return errors.New("the connection ended within a message")
	}
	return nil
}

func (r *reader1) end() {
	r.mode, r.head = inHead, nil
	r.onEnd()
}

func (r *reader1) step() (more bool, err error) {
	switch r.mode {
	case inHead:
		return r.readHead()
	case inLength, inChunk, inClose:
		return r.readBody(), nil
	case inChunkSize:
		line, ok := r.line()
		if !ok {
			return false, nil
		}
		size, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseUint(size, 16, 40)
		if err != nil {
			return false, fmt.Errorf("chunk size %q", line)
		}
		r.left, r.mode = int64(n), inChunk
		if n == 0 {
			r.mode = inTrailers
		}
	case inChunkEnd:
		line, ok := r.line()
		if !ok {
			return false, nil
		}
		if line != "" {
			return false, fmt.Errorf("chunk ends with %q", line)
		}
		r.mode = inChunkSize
	case inTrailers:
		line, ok := r.line()
		if !ok {
			return false, nil
		}
		if line == "" {
			r.end()
		} else if !strings.Contains(line, ":") {
			return false, fmt.Errorf("trailer %q", line)
		}
	}
	return true, nil
}

func (r *reader1) line() (string, bool) {
	i := bytes.Index(r.buf, []byte("\r\n"))
	if i < 0 {
		return "", false
	}
	line := string(r.buf[:i])
	r.buf = r.buf[i+2:]
	return line, true
}

func (r *reader1) readBody() bool {
	n := len(r.buf)
	if r.mode != inClose {
		n = int(min(int64(n), r.left))
	}
	r.left -= int64(n)
	part := r.buf[:n:n]
	r.buf = r.buf[n:]
	r.onBody(part)
	if r.left == 0 && r.mode == inLength {
		r.end()
	} else if r.left == 0 && r.mode == inChunk {
		r.mode = inChunkEnd
	}
	return true
}

func (r *reader1) readHead() (bool, error) {
	i := bytes.Index(r.buf, []byte("\r\n\r\n"))
	if i < 0 {
		return false, nil
	}
	raw := r.buf[:i+4]
	if r.in == nil {
		r.in = bufio.NewReader(nil)
	}
	r.in.Reset(bytes.NewReader(raw))
	var err error
	if r.answers {
		err = r.answerHead()
	} else {
		err = r.requestHead()
	}
	if err != nil {
		return false, fmt.Errorf("%w in %.300q", err, raw)
	}
	r.buf = r.buf[i+4:]
	h := r.head
	bodyless := r.mode == inHead
	r.onHead(h)
	if bodyless && !r.tunnels {
		r.head = nil
		if !r.answers || h.status >= 200 {
			r.end()
		}
	}
	return true, nil
}

func (r *reader1) requestHead() error {
	q, err := http.ReadRequest(r.in)
	if err != nil {
		return err //nolint:wrapcheck // the caller says where
	}
	r.head = &head1{method: q.Method, path: q.RequestURI, host: q.Host, fields: q.Header}
	r.frame(q.TransferEncoding, q.ContentLength)
	return nil
}

func (r *reader1) answerHead() error {
	q := &http.Request{Method: r.method()}
	a, err := http.ReadResponse(r.in, q)
	if err != nil {
		return err //nolint:wrapcheck // the caller says where
	}
	r.head = &head1{status: a.StatusCode, method: q.Method, fields: a.Header}
	switch {
	case a.StatusCode == http.StatusSwitchingProtocols:
		r.tunnels = true
	case a.StatusCode < 200 || a.StatusCode == http.StatusNoContent || a.StatusCode == http.StatusNotModified || q.Method == http.MethodHead:
	case len(a.TransferEncoding) == 0 && a.ContentLength < 0:
		r.mode = inClose
	default:
		r.frame(a.TransferEncoding, a.ContentLength)
	}
	return nil
}

func (r *reader1) frame(coding []string, length int64) {
	switch {
	case len(coding) > 0:
		r.mode = inChunkSize
	case length > 0:
		r.mode, r.left = inLength, length
	}
}
