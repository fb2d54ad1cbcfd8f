package sidebyside

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // RFC 6455 section 4.2.2
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/internal/testkit"
)

// pod is the endpoint of a conversation, for one router.
type pod struct {
	c    *conversation
	addr string

	mu      sync.Mutex
	settled *sync.Cond // unread went down to 0
	unread  int        // requests whose head was read, and whose body was not
	got     []string
}

func startPod(t *testing.T, c *conversation) *pod {
	p := &pod{c: c}
	p.settled = sync.NewCond(&p.mu)
	p.addr = testkit.Serve(t, func(conn net.Conn) {
		if c.podH2 {
			p.serveH2(conn)
		} else {
			p.serve(conn)
		}
	})
	return p
}

// note remembers a request.
func (p *pod) note(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, line)
}

// begin says that a head was read. The request is known when end was called.
func (p *pod) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unread++
}

// end says that a body was read, or that no more of it comes.
func (p *pod) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unread--; p.unread == 0 {
		p.settled.Broadcast()
	}
}

// requests are those that the pod got. An answer before the body reaches the client while the body is still on its way to the pod: what was begun is waited for.
func (p *pod) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.unread > 0 {
		p.settled.Wait()
	}
	return slices.Clone(p.got)
}

// serve reads requests as bytes, and their bodies by their framing.
func (p *pod) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		head, err := readHead(in)
		if err != nil {
			return
		}
		p.begin()
		line, fields := split(head)
		answer := func() error {
			text := p.c.answer
			if text == nil {
				text = []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
			text = bytes.ReplaceAll(text, []byte("{accept}"), accept(fields))
			_, err := conn.Write(text)
			return err
		}
		if p.c.early && answer() != nil {
			p.end()
			return
		}
		body, err := readBody(in, fields, 0)
		if err == nil {
			p.note(p.describe(line, fields) + body)
		}
		p.end()
		if err != nil {
			return
		}
		if !p.c.early && answer() != nil || p.c.fin {
			return
		}
		if bytes.HasPrefix(p.c.answer, []byte("HTTP/1.1 101 ")) {
			_, _ = io.Copy(conn, in) // until the other side has enough
			return
		}
	}
}

// accept is what proves that the key of a WebSocket's handshake was understood (RFC 6455 section 4.2.2).
func accept(fields []string) []byte {
	for _, f := range fields {
		if key, ok := strings.CutPrefix(f, "sec-websocket-key: "); ok {
			sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // see above
			return []byte(base64.StdEncoding.EncodeToString(sum[:]))
		}
	}
	return nil
}

// describe is a head in one line.
func (p *pod) describe(line string, fields []string) string {
	fields = slices.DeleteFunc(slices.Clone(fields), func(f string) bool {
		switch f {
		case "x-forwarded-for: 127.0.0.1", "x-forwarded-host: " + p.c.host, "x-forwarded-proto: http", "forwarded: for=127.0.0.1;host=" + p.c.host + ";proto=http":
			return true
		}
		return strings.HasPrefix(f, "x-forwarded-port: ") || strings.HasPrefix(f, "cdn-loop: ")
	})
	for i, f := range fields {
		if strings.HasPrefix(f, "sec-websocket-key: ") && p.c.frames != nil {
			fields[i] = "sec-websocket-key: one of the router's" // which makes it of random bytes
		}
	}
	return p.c.anonymous(strings.Join(append([]string{line}, fields...), " | "))
}

// anonymous has the placeholder in the place of the host, and odd bytes as \xNN.
func (c *conversation) anonymous(s string) string {
	var b strings.Builder
	for _, c := range []byte(strings.ReplaceAll(s, c.host, "$H")) {
		if c < ' ' || c > '~' {
			fmt.Fprintf(&b, "\\x%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// readHead reads to the empty line.
func readHead(in *bufio.Reader) ([]byte, error) {
	var head []byte
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return head, err
		}
		if head = append(head, line...); bytes.HasSuffix(head, []byte("\r\n\r\n")) {
			return head, nil
		}
	}
}

// split is the first line of a head, and its fields in order, in which names are lower-case.
func split(head []byte) (line string, fields []string) {
	lines := strings.Split(strings.TrimSuffix(string(head), "\r\n\r\n"), "\r\n")
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ":")
		fields = append(fields, strings.ToLower(name)+": "+strings.TrimSpace(value))
	}
	slices.Sort(fields)
	return lines[0], fields
}

// readBody reads the body of a request, or of an answer with that status, and describes it.
func readBody(in *bufio.Reader, fields []string, status int) (string, error) {
	value := func(name string) (string, bool) {
		for _, f := range fields {
			if v, ok := strings.CutPrefix(f, name+": "); ok {
				return v, true
			}
		}
		return "", false
	}
	var body []byte
	var err error
	kind := ""
	length, sized := value("content-length")
	switch coding, coded := value("transfer-encoding"); {
	case status == http.StatusNoContent || status == http.StatusNotModified || status == http.StatusSwitchingProtocols || status/100 == 1:
		return "", nil
	case coded && strings.EqualFold(coding, "chunked"):
		kind = "chunked "
		body, err = io.ReadAll(httputil.NewChunkedReader(in))
		if err == nil {
			var trailers []byte
			if trailers, err = readTrailers(in); len(trailers) > 0 {
				_, list := split(append([]byte("\r\n"), trailers...))
				kind += "trailers " + strings.Join(list, " | ") + " "
			}
		}
	case sized:
		var n int
		if _, bad := fmt.Sscan(length, &n); bad != nil {
			return "", bad
		}
		body = make([]byte, n)
		var read int
		read, err = io.ReadFull(in, body)
		body = body[:read]
		if n == 0 {
			return "", nil
		}
	case status == 0:
		return "", nil
	default:
		kind = "to the end "
		body, err = io.ReadAll(in)
	}
	return " || " + kind + quote(body), err
}

// readTrailers reads to the empty line after the last chunk.
func readTrailers(in *bufio.Reader) ([]byte, error) {
	var all []byte
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		if string(line) == "\r\n" {
			if all == nil {
				return nil, nil
			}
			return append(all, line...), nil
		}
		all = append(all, line...)
	}
}

// page is what a router says itself, in its own words.
const page = "page"

// quote is a body for people.
func quote(b []byte) string {
	if bytes.Contains(bytes.ToLower(b), []byte("<html")) {
		return page
	}
	if len(b) > 40 {
		return fmt.Sprintf("%q and %d more", b[:20], len(b)-20)
	}
	return fmt.Sprintf("%q", b)
}

// serveH2 answers each request of a connection of HTTP/2.
func (p *pod) serveH2(conn net.Conn) {
	defer conn.Close()
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if f.WriteSettings() != nil {
		return
	}
	heads, bodies := map[uint32]string{}, map[uint32]string{}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			heads[frame.StreamID] = p.describe("HTTP/2", pairs(frame.Fields))
			if frame.StreamEnded() {
				err = p.answerH2(f, frame.StreamID, heads[frame.StreamID])
			}
		case *http2.DataFrame:
			bodies[frame.StreamID] += string(frame.Data())
			if frame.StreamEnded() {
				err = p.answerH2(f, frame.StreamID, heads[frame.StreamID]+" || "+quote([]byte(bodies[frame.StreamID])))
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *pod) answerH2(f *http2.Framer, id uint32, request string) error {
	p.note(request)
	if p.c.resets != 0 {
		return f.WriteRSTStream(id, http2.ErrCode(p.c.resets))
	}
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block(":status=200", "content-length=2"), EndHeaders: true}); err != nil {
		return err
	}
	return f.WriteData(id, true, []byte("ok"))
}

// pairs are fields as lines, sorted.
func pairs(list []hpack.HeaderField) (lines []string) {
	for _, f := range list {
		lines = append(lines, f.Name+": "+f.Value)
	}
	slices.Sort(lines)
	return lines
}

// block is a header block of pairs of a name and a value with = between them.
func block(list ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, pair := range list {
		i := strings.Index(pair[1:], "=") + 1
		_ = e.WriteField(hpack.HeaderField{Name: pair[:i], Value: pair[i+1:]}) // to a buffer
	}
	return b.Bytes()
}
