package origin

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// receiver is a syslog receiver: it keeps every message.
type receiver struct {
	conn     net.PacketConn
	mu       sync.Mutex
	messages []string
}

// listen starts a receiver on an address that pods reach.
func listen(address string) (*receiver, error) {
	conn, err := net.ListenPacket("udp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, err
	}
	r := &receiver{conn: conn}
	go r.receive()
	return r, nil
}

// receive ends when the connection is closed.
func (r *receiver) receive() {
	buffer := make([]byte, 1<<16)
	for {
		n, _, err := r.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.messages = append(r.messages, string(buffer[:n]))
		r.mu.Unlock()
	}
}

// with is the first message that has all of these texts, "" without one.
func (r *receiver) with(texts ...string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
next:
	for _, m := range r.messages {
		for _, text := range texts {
			if !strings.Contains(m, text) {
				continue next
			}
		}
		return m
	}
	return ""
}

// message waits for a message that has all of these texts.
func (r *receiver) message(t testing.TB, texts ...string) string {
	t.Helper()
	var found string
	eventually(t, fmt.Sprintf("a message with %q", texts), func() error {
		if found = r.with(texts...); found == "" {
			return fmt.Errorf("none")
		}
		return nil
	})
	return found
}

// syslog are settings of a router that logs to the receiver.
func syslog(facility, access string) settings {
	to := shared.syslog.conn.LocalAddr().(*net.UDPAddr)
	return controlled(fmt.Sprintf("logging: {access: {destination: {type: Syslog, syslog: {address: %s, port: %d, facility: %s}}%s}}", to.IP, to.Port, facility, access))
}

// TestSyslogLogging: a line for a request reaches the receiver, with the facility that is set.
func TestSyslogLogging(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, syslog("local2", ""))
	host := n.served(r, "echo")
	n.got(r, "http://"+host+"/syslog-logging")
	m := shared.syslog.message(t, n.name+":echo", `"GET /syslog-logging HTTP/1.1"`)
	// RFC 3164 section 4.1.1: 18*8 is local2, 6 is info.
	if !strings.HasPrefix(m, "<150>") || !strings.Contains(m, " haproxy[") || !strings.Contains(m, " be_http:"+n.name+":echo/") {
		t.Errorf("message %q", m)
	}
}

// TestContainerLogging: lines for requests are what the pod writes.
func TestContainerLogging(t *testing.T) {
	t.Parallel()
	n, r := containerLogging(t, "")
	host := n.served(r, "echo")
	n.got(r, "http://"+host+"/container-logging")
	r.logged(t, `"GET /container-logging HTTP/1.1"`)
}

// TestContainerLoggingMaxLength: a line is as long as 8192 bytes, and no longer.
func TestContainerLoggingMaxLength(t *testing.T) {
	t.Parallel()
	lineLength(t, "8192", 8100, 8400)
}

// TestContainerLoggingMinLength: a line is cut at 480 bytes.
func TestContainerLoggingMinLength(t *testing.T) {
	t.Parallel()
	lineLength(t, "480", 470, 500)
}

// containerLogging makes a router that logs to its container's output.
func containerLogging(t *testing.T, length string) (namespace, *router) {
	t.Helper()
	s := env("ROUTER_SYSLOG_ADDRESS", "stdout", "ROUTER_LOG_LEVEL", "info")
	if length != "" {
		s.Env["ROUTER_LOG_MAX_LENGTH"] = length
	}
	return newNamespace(t, nil), with(t, s)
}

// lineLength asks for a long path and measures the line about it.
func lineLength(t *testing.T, limit string, least, most int) {
	t.Helper()
	n, r := containerLogging(t, limit)
	host := n.served(r, "echo")
	n.got(r, "http://"+host+"/"+strings.Repeat("x", 10000))
	eventually(t, "the line", func() error {
		for line := range strings.Lines(r.log(t)) {
			if !strings.Contains(line, n.name+":echo") || !strings.Contains(line, "GET /xxx") {
				continue
			}
			if len(line) < least || len(line) > most {
				t.Fatalf("a line of %d bytes, want %d to %d: %.100s", len(line), least, most, line)
			}
			return nil
		}
		return fmt.Errorf("there is none")
	})
}

// exactCookie is the cookie foo, nine bytes of it.
const exactCookie = "matchType: Exact, name: foo, maxLength: 9"

// captures are the settings of a router that captures fields and a cookie.
func captures(cookie string) settings {
	return syslog("local1", `, httpCaptureHeaders: {
    request: [{name: X-Forwarded-For, maxLength: 15}, {name: Host, maxLength: 60}, {name: X-Test-Header-1, maxLength: 15}],
    response: [{name: Content-Type, maxLength: 9}, {name: X-Test-Header-2, maxLength: 15}]},
  httpCaptureCookies: [{`+cookie+`}]`)
}

// TestHTTPHeaderCapture: captured fields of request and answer stand in the line in braces, in
// the order of the lists, cut to their lengths.
func TestHTTPHeaderCapture(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, captures(exactCookie))
	host := n.served(r, "echo")
	n.got(r, "http://"+host+"/capture?field=x-test-header-2:bar", "X-Test-Header-1: foo", "X-Forwarded-For: 192.0.2.7")
	m := shared.syslog.message(t, n.name+":echo", "GET /capture")
	if want := "{192.0.2.7|" + host + "|foo} {text/plai|bar}"; !strings.Contains(m, want) {
		t.Errorf("no %s in %s", want, m)
	}
}

// TestHTTPCookieCapture: the cookie of that name stands in the line, cut to its length, another
// whose name begins alike does not; with a prefix the first that begins so does.
func TestHTTPCookieCapture(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	exact, prefix := with(t, captures(exactCookie)), with(t, captures("matchType: Prefix, namePrefix: foo, maxLength: 9"))
	for _, c := range []struct {
		r     *router
		name  string
		sends string
		want  string
	}{
		{exact, "exact", "foobar=123; foo=xyzzypop", "foo=xyzzy"},
		{exact, "other", "foobaz=abc", "-"},
		{prefix, "prefix", "foobaz=abc; foo=x", "foobaz=ab"},
	} {
		host := n.served(c.r, c.name)
		n.got(c.r, "http://"+host+"/cookies", "Cookie: "+c.sends)
		m := shared.syslog.message(t, n.name+":"+c.name, "GET /cookies")
		if want := " " + c.want + " - --"; !strings.Contains(m, want) {
			t.Errorf("%s: no %q in %s", c.sends, want, m)
		}
	}
}

// TestCookieLen: a captured cookie may be longer than the 63 bytes that HAProxy keeps by
// default: of one with 64 bytes, 63 or all are in the line as the length says.
func TestCookieLen(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	cookie := "foo=" + strings.Repeat("a", 60)
	for _, length := range []int{63, 64} {
		r := with(t, captures(fmt.Sprintf("matchType: Exact, name: foo, maxLength: %d", length)))
		name := fmt.Sprintf("len%d", length)
		host := n.served(r, name)
		n.got(r, "http://"+host+"/cookielen", "Cookie: "+cookie)
		m := shared.syslog.message(t, n.name+":"+name, "GET /cookielen")
		if want := " " + cookie[:length] + " - --"; !strings.Contains(m, want) {
			t.Errorf("length %d: no %q in %s", length, want, m)
		}
	}
}
