package h1

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"turnout/internal/wire/http1"
	"turnout/proxy"
)

// MaxErrorFile bounds an error file in bytes.
const MaxErrorFile = 256 << 10

// ParseErrorFile reads an error file of the HAProxy router: a whole HTTP
// response, status line, fields, empty line and body, as it would be sent. Lines may
// end in LF alone, as editors leave them. A Content-Length must be that of the body;
// fields about the connection are left out, since it is the router's. The page owns its
// memory.
func ParseErrorFile(raw []byte) (*proxy.ErrorPage, error) {
	if len(raw) > MaxErrorFile {
		return nil, fmt.Errorf("cannot use error file: it has %d bytes, at most %d", len(raw), MaxErrorFile)
	}
	head, body, err := splitErrorFile(raw)
	if err != nil {
		return nil, fmt.Errorf("cannot use error file: %w", err)
	}
	var resp http1.Response
	if err := http1.ParseResponse(head, &resp, methodHead, http1.Limits{}); err != nil {
		return nil, fmt.Errorf("cannot use error file: %w", err)
	}
	switch {
	case resp.Status < 200 || resp.Status > 599 || resp.Status == 204 || resp.Status == 205 || resp.Status == 304:
		return nil, fmt.Errorf("cannot use error file: status %d is not that of an answer with a body", resp.Status)
	case resp.Body == http1.BodyChunked || fieldNamed(&resp, "transfer-encoding"):
		return nil, errors.New("cannot use error file: it has a Transfer-Encoding")
	case resp.ContentLength >= 0 && resp.ContentLength != int64(len(body)):
		return nil, fmt.Errorf("cannot use error file: Content-Length is %d, the body has %d bytes", resp.ContentLength, len(body))
	}
	page := &proxy.ErrorPage{Status: resp.Status, Reason: bytes.Clone(resp.Reason), Body: bytes.Clone(body)}
	for _, f := range resp.Fields {
		if name := string(f.Name); name != "content-length" && !http1.IsHopByHop(f.Name) {
			page.Fields = append(page.Fields, proxy.Field{Name: []byte(name), Value: bytes.Clone(f.Value)})
		}
	}
	return page, nil
}

func fieldNamed(resp *http1.Response, name string) bool {
	for _, f := range resp.Fields {
		if string(f.Name) == name {
			return true
		}
	}
	return false
}

// splitErrorFile returns the head with CRLF line ends, and the body as it is.
func splitErrorFile(raw []byte) (head, body []byte, err error) {
	var b strings.Builder
	for rest := raw; ; {
		line, after, ok := bytes.Cut(rest, []byte("\n"))
		if !ok {
			return nil, nil, errors.New("no empty line ends its head")
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		b.Write(line)
		b.WriteString("\r\n")
		if rest = after; len(line) == 0 {
			return []byte(b.String()), rest, nil
		}
	}
}
