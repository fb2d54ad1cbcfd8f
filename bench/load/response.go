package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// BodySize is the length in bytes of every answer's body.
const BodySize = 128

// maxHead bounds the head of an answer, in bytes.
const maxHead = 8 << 10

var (
	headEnd          = []byte("\r\n\r\n")
	lineEnd          = []byte("\r\n")
	statusOK         = []byte("HTTP/1.1 200 ")
	statusSwitching  = []byte("HTTP/1.1 101 ")
	contentLength    = []byte("content-length")
	transferEncoding = []byte("transfer-encoding")
	connectionName   = []byte("connection")
	closeToken       = []byte("close")
)

// Reasons for which CheckAnswer refuses an answer.
var (
	ErrStatus  = errors.New("status is not HTTP/1.1 200")
	ErrHead    = errors.New("head is malformed or too long")
	ErrFraming = errors.New("content-length is not that of the expected body")
	ErrClose   = errors.New("keep-alive was refused")
	ErrBody    = errors.New("body is not the expected one")
	ErrExcess  = errors.New("bytes follow the body")
)

// Exchange is one request as the backend received it and the answer as the client did: heads without
// the empty line that ends them, and the answer's body. The caller owns them.
type Exchange struct {
	Request, Answer, Body []byte
}

// Body returns the body of upstream n that every answer carries unless a rig is configured otherwise: BodySize bytes that begin with its
// number. The caller owns the result.
func Body(n int) []byte { return sized(n, BodySize) }

// sized is Body of another size.
func sized(n, size int) []byte {
	b := fmt.Appendf(make([]byte, 0, size), "upstream %d ", n)
	for len(b) < size-1 {
		b = append(b, 'a'+byte(len(b)%26))
	}
	return append(b[:size-1], '\n')
}

// CheckAnswer looks for one complete answer with the given body at the start of p, which must hold
// everything received since the request was sent. It returns the answer's length, 0 as long as it is
// incomplete, or one of the Err values of this package. It does not keep p.
func CheckAnswer(p, body []byte) (int, error) {
	end, err := answerHead(p, len(body), false)
	if end == 0 || err != nil {
		return 0, err
	}
	switch got := p[end:]; {
	case len(got) > len(body):
		return 0, ErrExcess
	case !bytes.Equal(got, body[:len(got)]):
		return 0, ErrBody
	case len(got) < len(body):
		return 0, nil
	}
	return len(p), nil
}

// answerHead returns the length of the head at the start of p, 0 as long as it is incomplete. The answer must have a body of size
// bytes, and keep the connection open unless it is the last one on it.
func answerHead(p []byte, size int, last bool) (int, error) {
	if n := min(len(p), len(statusOK)); !bytes.Equal(p[:n], statusOK[:n]) {
		return 0, ErrStatus
	}
	end := bytes.Index(p, headEnd)
	if end < 0 {
		if len(p) > maxHead {
			return 0, ErrHead
		}
		return 0, nil
	}
	if err := checkHead(p[:end+len(lineEnd)], size); err != nil && !(last && errors.Is(err, ErrClose)) {
		return 0, err
	}
	return end + len(headEnd), nil
}

// checkHead reads the fields of a head, each ended by CRLF. The answer must be framed by exactly one
// Content-Length of size and must leave the connection open.
func checkHead(head []byte, size int) error {
	_, head, _ = bytes.Cut(head, lineEnd)
	lengths, closes := 0, false
	for len(head) > 0 {
		line, rest, _ := bytes.Cut(head, lineEnd)
		head = rest
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return ErrHead
		}
		switch {
		case bytes.EqualFold(name, contentLength):
			n, err := strconv.Atoi(string(bytes.TrimSpace(value)))
			if err != nil || n != size {
				return ErrFraming
			}
			lengths++
		case bytes.EqualFold(name, transferEncoding):
			return ErrFraming
		case bytes.EqualFold(name, connectionName):
			if bytes.EqualFold(bytes.TrimSpace(value), closeToken) {
				closes = true
			}
		}
	}
	switch {
	case lengths != 1:
		return ErrFraming
	case closes:
		return ErrClose
	}
	return nil
}
