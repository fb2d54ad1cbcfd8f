package sidebyside

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// patience is how long a conversation takes at most; a connection on which more is expected by then counts as silent.
const patience = 5 * time.Second

// probe is asked at the end to see whether the connection is kept.
const (
	probeHost = "probe.test"
	probe     = "GET /probe HTTP/1.1\r\nHost: " + probeHost + "\r\n\r\n"
)

// talk has a conversation with the router at addr, and returns what the client got.
func (c *conversation) talk(t *testing.T, addr string) []string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if c.frames != nil {
		return c.talkH2(conn)
	}
	if err := c.open(conn.(*net.TCPConn)); err != nil {
		return []string{ending(err)}
	}
	in := bufio.NewReader(conn)
	methods := c.methods()
	var got []string
	for i := 0; i < c.answers; {
		method := ""
		if i < len(methods) {
			method = methods[i]
		}
		text, status, last, err := c.readAnswer(in, method)
		if text != "" {
			got = append(got, text)
		}
		if err != nil {
			return append(got, ending(err))
		}
		if status == 101 {
			return append(got, c.talkOn(conn, in)...)
		}
		if status >= 200 {
			i++
		}
		if last {
			_, err := in.ReadByte()
			return append(got, ending(err))
		}
	}
	if c.eof {
		_, err := in.ReadByte()
		return append(got, ending(err))
	}
	return append(got, c.probe(conn, in))
}

// open sends the requests. The FIN of a client that ends its sending is in the segment of the last byte (TCP_CORK),
// as a FIN that comes later may come when the answer has been sent.
func (c *conversation) open(conn *net.TCPConn) error {
	if !c.eof {
		_, err := conn.Write(c.send)
		return err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var corked error
	if err := raw.Control(func(fd uintptr) {
		corked = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_CORK, 1)
	}); err != nil {
		return err
	}
	if corked != nil {
		return corked
	}
	if _, err := conn.Write(c.send); err != nil {
		return err
	}
	return conn.CloseWrite()
}

// probe sees whether the connection answers another request.
func (c *conversation) probe(conn net.Conn, in *bufio.Reader) string {
	text := probe
	if _, err := io.WriteString(conn, text); err != nil {
		return "closed"
	}
	_, status, _, err := c.readAnswer(in, "GET")
	switch {
	case err == nil && status == 200:
		return "kept"
	case err == nil:
		return fmt.Sprintf("out of step: %d", status)
	case ending(err) == "reset":
		return "closed" // it may have been closed when the probe came
	}
	return ending(err)
}

// talkOn sends what goes through a tunnel, and reads as much.
func (c *conversation) talkOn(conn net.Conn, in *bufio.Reader) []string {
	if _, err := conn.Write(c.tunnel); err != nil {
		return []string{ending(err)}
	}
	back := make([]byte, len(c.tunnel))
	n, err := io.ReadFull(in, back)
	if err != nil {
		return []string{fmt.Sprintf("tunnel %q", back[:n]), ending(err)}
	}
	return []string{fmt.Sprintf("tunnel %q", back)}
}

// methods are those of the requests, in order, as far as lines begin with them.
func (c *conversation) methods() (list []string) {
	for _, line := range strings.Split(string(c.send), "\r\n") {
		if words := strings.Fields(line); len(words) == 3 && strings.HasPrefix(words[2], "HTTP/") {
			list = append(list, words[0])
		}
	}
	return list
}

// readAnswer reads one answer; last says that the router announces that it closes.
func (c *conversation) readAnswer(in *bufio.Reader, method string) (text string, status int, last bool, err error) {
	head, err := readHead(in)
	if err != nil {
		if len(head) > 0 {
			text = fmt.Sprintf("%q", head)
		}
		return text, 0, false, err
	}
	line, fields := split(head)
	words := strings.SplitN(line, " ", 3)
	if len(words) > 1 {
		status, _ = strconv.Atoi(words[1])
	}
	for _, f := range fields {
		last = last || strings.EqualFold(f, "connection: close")
	}
	last = last && status >= 200 || strings.HasPrefix(line, "HTTP/1.0 ") && !slices.Contains(fields, "connection: keep-alive")
	body := ""
	if method != "HEAD" {
		body, err = readBody(in, fields, status)
	}
	text = c.anonymous(strings.Join(append([]string{line}, fields...), " | ")) + body
	if strings.HasSuffix(body, page) {
		text = "page " + strconv.Itoa(status)
	}
	return text, status, last, err
}

// ending is how a connection ended, or that it did not.
func ending(err error) string {
	switch {
	case err == nil:
		return "more than an answer"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "silent"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed"
	}
	return err.Error()
}

// talkH2 sends frames and reads until every stream has ended.
func (c *conversation) talkH2(conn net.Conn) []string {
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, err := io.WriteString(conn, http2.ClientPreface)
	err = errors.Join(err, f.WriteSettings())
	open := map[uint32]bool{}
	for _, line := range c.frames {
		words := strings.Split(line, " ")
		id, _ := strconv.Atoi(words[1])
		rest, end := words[2:], false
		if len(rest) > 0 && rest[0] == "END_STREAM" {
			rest, end = rest[1:], true
		}
		open[uint32(id)] = true
		if words[0] == "DATA" {
			err = errors.Join(err, f.WriteData(uint32(id), end, []byte(strings.Join(rest, " "))))
			continue
		}
		err = errors.Join(err, f.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(id), BlockFragment: block(rest...), EndHeaders: true, EndStream: end}))
	}
	got := map[uint32]string{}
	ids := []uint32{}
	add := func(id uint32, text string) {
		if _, known := got[id]; !known {
			ids = append(ids, id)
		}
		got[id] += " " + text
	}
	last := "kept"
	for len(open) > 0 && err == nil {
		var frame http2.Frame
		if frame, err = f.ReadFrame(); err != nil {
			last = ending(err)
			break
		}
		id := frame.Header().StreamID
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			fields := pairs(frame.Fields)
			if slices.Contains(fields, "content-type: text/html") {
				fields = slices.DeleteFunc(fields, func(f string) bool { return f[0] != ':' })
			}
			for i, f := range fields {
				if strings.HasPrefix(f, "sec-websocket-accept: ") {
					fields[i] = "sec-websocket-accept: of the router's key"
				}
			}
			add(id, c.anonymous(strings.Join(fields, " | ")))
			if frame.StreamEnded() {
				delete(open, id)
			}
		case *http2.DataFrame:
			if len(frame.Data()) > 0 {
				add(id, "|| "+quote(frame.Data()))
			}
			if frame.StreamEnded() {
				delete(open, id)
			}
		case *http2.RSTStreamFrame:
			add(id, "RST_STREAM("+frame.ErrCode.String()+")")
			delete(open, id)
		case *http2.GoAwayFrame:
			last = "GOAWAY(" + frame.ErrCode.String() + ")"
			open = nil
		}
	}
	slices.Sort(ids)
	var lines []string
	for _, id := range ids {
		lines = append(lines, fmt.Sprintf("stream %d:%s", id, got[id]))
	}
	return append(lines, last)
}
