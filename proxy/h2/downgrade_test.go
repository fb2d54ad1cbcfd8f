package h2

import (
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
)

// TestNothingReachesTheEndpoint: what HTTP/1.1 could not say, or would say as something else, ends at the router. The
// stream is reset or answered; the connection and its other streams go on.
func TestNothingReachesTheEndpoint(t *testing.T) {
	base := func(change ...string) []string {
		list := []string{":method", "GET", ":scheme", "http", ":authority", "app.test", ":path", "/"}
		for i := 0; i < len(change); i += 2 {
			found := false
			for j := 0; j < len(list); j += 2 {
				if list[j] == change[i] && strings.HasPrefix(change[i], ":") {
					list[j+1], found = change[i+1], true
				}
			}
			if !found {
				list = append(list, change[i], change[i+1])
			}
		}
		return list
	}
	const malformed = 0 // reset with PROTOCOL_ERROR
	for _, tc := range []struct {
		name   string
		status int
		fields []string
	}{
		{"CRLF in a value", malformed, base("x-a", "b\r\ncontent-length: 5")},
		{"LF in a value", malformed, base("x-a", "b\nc")},
		{"CR in a value", malformed, base("x-a", "b\rc")},
		{"NUL in a value", malformed, base("x-a", "b\x00c")},
		{"control character in a value", malformed, base("x-a", "b\x01c")},
		{"DEL in a value", malformed, base("x-a", "b\x7fc")},
		{"blank before a value", malformed, base("x-a", " b")},
		{"tab after a value", malformed, base("x-a", "b\t")},
		{"upper-case name", malformed, base("X-a", "b")},
		{"empty name", malformed, base("", "b")},
		{"colon in a name", malformed, base("x:a", "b")},
		{"blank in a name", malformed, base("x a", "b")},
		{"blank after a name", malformed, base("x-a ", "b")},
		{"CRLF in a name", malformed, base("x-a: b\r\nx-c", "d")},
		{"NUL in a name", malformed, base("x-\x00a", "b")},
		{"name beyond ASCII", malformed, base("x-ä", "b")},

		{"CRLF in the path", malformed, base(":path", "/ HTTP/1.1\r\nx-a: b\r\n\r\n")},
		{"blank in the path", 400, base(":path", "/a b")},
		{"fragment", 400, base(":path", "/a#b")},
		{"path beyond ASCII", 400, base(":path", "/ä")},
		{"empty path", malformed, base(":path", "")},
		{"path without slash", 400, base(":path", "a")},
		{"absolute path", 400, base(":path", "http://other.test/")},
		{"asterisk of GET", 400, base(":path", "*")},
		{"CRLF in the method", malformed, base(":method", "GET / HTTP/1.1\r\nx: y\r\n\r\nGET")},
		{"blank in the method", 400, base(":method", "GET /evil")},
		{"empty method", 400, base(":method", "")},
		{"other scheme", 400, base(":scheme", "ftp")},
		{"CRLF in the scheme", malformed, base(":scheme", "http\r\n")},

		{"CRLF in the authority", malformed, base(":authority", "app.test\r\nx-a: b")},
		{"blank in the authority", 400, base(":authority", "app.test x")},
		{"comma in the authority", 400, base(":authority", "evil.test,app.test")},
		{"userinfo", 400, base(":authority", "app.test@evil.test")},
		{"path in the authority", 400, base(":authority", "app.test/x")},
		{"empty authority", 400, base(":authority", "")},
		{"other Host", 400, base("host", "other.test")},
		{"two Hosts", 400, base("host", "app.test", "host", "other.test")},
		{"no authority", 400, []string{":method", "GET", ":scheme", "http", ":path", "/"}},

		{"transfer-encoding", malformed, base("transfer-encoding", "chunked")},
		{"connection", malformed, base("connection", "close")},
		{"keep-alive", malformed, base("keep-alive", "timeout=1")},
		{"proxy-connection", malformed, base("proxy-connection", "keep-alive")},
		{"upgrade", malformed, base("upgrade", "websocket")},
		{"te", malformed, base("te", "gzip")},
		{"te, more", malformed, base("te", "trailers, gzip")},
		{"length and no body", malformed, base("content-length", "10")},
		{"two lengths", malformed, base("content-length", "3", "content-length", "4")},
		{"list of lengths", malformed, base("content-length", "0, 0")},
		{"signed length", malformed, base("content-length", "+0")},
		{"empty length", malformed, base("content-length", "")},
		{"huge length", malformed, base("content-length", "99999999999999999999")},
		{"expectation", 417, base("expect", "100-Continue-now")},

		{"pseudo-field twice", malformed, append([]string{":path", "/"}, base()...)},
		{"pseudo-field after a field", malformed, append([]string{"x-a", "b"}, base()...)},
		{"unknown pseudo-field", malformed, append([]string{":x", "/"}, base()...)},
		{"status", malformed, append([]string{":status", "200"}, base()...)},
		{"no method", malformed, base()[2:]},
		{"no path", malformed, base()[:6]},
		{"protocol of GET", malformed, append([]string{":protocol", "websocket"}, base()...)},
		{"protocol twice", malformed, append([]string{":protocol", "websocket", ":protocol", "websocket"}, base(":method", "CONNECT")...)},
		{"protocol and length", malformed, append([]string{":protocol", "websocket"}, base(":method", "CONNECT", "content-length", "0")...)},
		{"protocol and no path", malformed, append([]string{":protocol", "websocket"}, base(":method", "CONNECT")[:6]...)},
		{"unknown protocol", 501, append([]string{":protocol", "connect-udp"}, base(":method", "CONNECT")...)},
		{"CONNECT", 405, []string{":method", "CONNECT", ":authority", "app.test:443"}},
		{"CONNECT with a path", malformed, base(":method", "CONNECT")[:8]},
		{"too many fields", 431, base(strings.Split(strings.Repeat("x-a,b,", 101)+"x-a,b", ",")...)},
		{"too many bytes", 431, base("x-a", strings.Repeat("v", 40000), "x-b", strings.Repeat("v", 30000))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod(1, always(ok("good")))
			r.route("app", "app.test", nil, p.Addr)
			r.route("evil", "evil.test", nil, p.Addr)
			c := r.connect()
			c.sendBlock(1, true, c.block(tc.fields...))
			c.run()
			if a := c.stream(1); tc.status == malformed {
				c.wantReset(1, http2.ErrCodeProtocol)
			} else if len(a.status) != 3 || a.status != http2StatusText(tc.status) || !a.ended || c.goAway != nil {
				t.Fatalf("answer %+v, GOAWAY %v, want status %d", a, c.goAway, tc.status)
			}
			if len(p.Conns) != 0 {
				t.Fatalf("the endpoint was connected, and got %q", p.Requests)
			}
			c.get(3, "/")
			c.run()
			c.want(3, 200, "good")
			r.wantQuiet()
		})
	}
}

// TestReasonWithoutAnExchange: what never becomes an exchange is answered with its reason too, if answers have theirs.
func TestReasonWithoutAnExchange(t *testing.T) {
	for _, on := range []bool{true, false} {
		r := newRigOn(t, memnet.New(1), func(c *proxy.Config) { c.ReasonHeader = on })
		c := r.connect()
		c.sendBlock(1, true, c.block(":method", "CONNECT", ":scheme", "http", ":authority", "app.test", ":path", "/", ":protocol", "connect-udp"))
		c.sendBlock(3, true, c.block(":method", "GET", ":scheme", "http", ":authority", "app.test", ":path", "/"))
		c.run()
		for id, want := range map[uint32]string{1: "x-turnout-reason: unsupported\n", 3: "x-turnout-reason: no-route\n"} {
			if got := c.stream(id).fields; strings.Contains(got, want) != on || strings.Contains(got, "x-turnout-reason") != on {
				t.Errorf("stream %d, with the option %v: %q", id, on, got)
			}
		}
	}
}

func http2StatusText(n int) string {
	return string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
}

// sendBlock writes a header list, in several frames when it is long.
func (c *client) sendBlock(id uint32, end bool, block []byte) {
	first := block[:min(len(block), 16384)]
	rest := block[len(first):]
	_ = c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndStream: end, EndHeaders: len(rest) == 0})
	for len(rest) > 0 {
		k := min(len(rest), 16384)
		_ = c.fr.WriteContinuation(id, k == len(rest), rest[:k])
		rest = rest[k:]
	}
}

// TestAcceptedForms: what is unusual and yet allowed.
func TestAcceptedForms(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fields []string
		want   string
	}{
		{"Host alone", []string{":method", "GET", ":scheme", "http", ":path", "/", "host", "App.test"}, "GET / HTTP/1.1\r\nhost: app.test\r\n"},
		{"both", []string{":method", "GET", ":scheme", "https", ":authority", "APP.test", ":path", "/", "host", "app.TEST"}, "GET / HTTP/1.1\r\nhost: app.test\r\n"},
		{"asterisk", []string{":method", "OPTIONS", ":scheme", "http", ":authority", "app.test", ":path", "*"}, "OPTIONS * HTTP/1.1\r\n"},
		{"trailers welcome", []string{":method", "GET", ":scheme", "http", ":authority", "app.test", ":path", "/", "te", "trailers"}, "GET / HTTP/1.1\r\nhost: app.test\r\nte: trailers\r\n"},
		{"bytes of the path", []string{":method", "GET", ":scheme", "http", ":authority", "app.test", ":path", "/a/../%2e;x=1//?a=1;b=2"}, "GET /a/../%2e;x=1//?a=1;b=2 HTTP/1.1\r\n"},
		{"same length twice", []string{":method", "GET", ":scheme", "http", ":authority", "app.test", ":path", "/", "content-length", "0", "content-length", "0"}, "GET / HTTP/1.1\r\nhost: app.test\r\nx-"},
		{"empty value", []string{":method", "GET", ":scheme", "http", ":authority", "app.test", ":path", "/", "x-a", ""}, "GET / HTTP/1.1\r\nhost: app.test\r\nx-a: \r\n"},
		{"order and repetition", []string{":method", "GET", ":scheme", "http", ":authority", "app.test", ":path", "/", "x-b", "1", "x-a", "2", "x-b", "3"}, "GET / HTTP/1.1\r\nhost: app.test\r\nx-b: 1\r\nx-a: 2\r\nx-b: 3\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod(1, always(ok("")))
			r.route("app", "app.test", nil, p.Addr)
			c := r.connect()
			c.headers(1, true, tc.fields...)
			c.run()
			c.want(1, 200, "")
			if !strings.HasPrefix(p.Requests[0], tc.want) {
				t.Errorf("the pod got %q, want it to begin with %q", p.Requests[0], tc.want)
			}
		})
	}
}

// TestBodyMustBeAsLongAsDeclared: a request that is not never looks whole to the endpoint, and its connection is not
// used again.
func TestBodyMustBeAsLongAsDeclared(t *testing.T) {
	for _, tc := range []struct {
		name string
		send func(c *client)
	}{
		{"short", func(c *client) { c.data(1, true, "abc") }},
		{"short, empty end", func(c *client) { c.data(1, false, "abc"); c.data(1, true, "") }},
		{"long", func(c *client) { c.data(1, true, "abcdef") }},
		{"long, in parts", func(c *client) { c.data(1, false, "abc"); c.data(1, false, "def") }},
		{"short, trailers", func(c *client) { c.data(1, false, "abc"); c.headers(1, true, "x-a", "b") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod(1, always(ok("good")))
			r.route("app", "app.test", nil, p.Addr)
			c := r.connect()
			c.request(1, false, "POST", "/", "content-length", "5")
			tc.send(c)
			c.run()
			c.wantReset(1, http2.ErrCodeProtocol)
			if len(p.Requests) != 0 {
				t.Errorf("the pod got a whole request: %q", p.Requests)
			}
			c.get(3, "/")
			c.run()
			c.want(3, 200, "good")
			if len(p.Conns) > 1 && !p.Conns[0].EOF() && !p.Conns[0].ResetSeen() {
				t.Error("the connection with half a request is still open")
			}
			r.wantQuiet()
		})
	}
}
