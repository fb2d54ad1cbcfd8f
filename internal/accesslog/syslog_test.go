package accesslog

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// listenDatagrams receives messages.
func listenDatagrams(t *testing.T, network, address string) net.PacketConn {
	t.Helper()
	c, err := net.ListenPacket(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

func receive(t *testing.T, c net.PacketConn) string {
	t.Helper()
	buf := make([]byte, 64<<10)
	n, _, err := c.ReadFrom(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}

// TestSyslog: a message per line with the header of RFC 3164, cut to its length, over UDP and sockets.
func TestSyslog(t *testing.T) {
	for _, network := range []string{"udp", "unixgram"} {
		address := "127.0.0.1:0"
		if network == "unixgram" {
			address = filepath.Join(t.TempDir(), "log.sock")
		}
		c := listenDatagrams(t, network, address)
		s, err := NewSyslog(SyslogConfig{Address: c.LocalAddr().String(), Host: "router-1", Tag: "turnout[7]", MaxLength: 60})
		if err != nil {
			t.Fatal(err)
		}
		s.now = func() time.Time { return time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC) }
		long := strings.Repeat("x", 100)
		text := "{\"a\":1}\n{\"b\":2}\n" + long + "\n"
		if n, err := s.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
		const header = "<142>Nov  2 03:04:05 router-1 turnout[7]: "
		for _, want := range []string{header + `{"a":1}`, header + `{"b":2}`, (header + long)[:60]} {
			if got := receive(t, c); got != want {
				t.Errorf("%s: got %q, want %q", network, got, want)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSyslogReceiverComesAndGoes: lines without a receiver are lost, those after its return are not.
func TestSyslogReceiverComesAndGoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.sock")
	s, err := NewSyslog(SyslogConfig{Address: path, Facility: "local7"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	write := func(line string, ok bool) {
		t.Helper()
		if _, err := s.Write([]byte(line + "\n")); (err == nil) != ok {
			t.Errorf("%s: error %v", line, err)
		}
	}
	write("nobody", false)
	c := listenDatagrams(t, "unixgram", path)
	write("first", true)
	if got := receive(t, c); !strings.HasPrefix(got, "<190>") || !strings.HasSuffix(got, ": first") {
		t.Errorf("got %q", got)
	}
	c.Close()
	write("gone", false)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	c = listenDatagrams(t, "unixgram", path)
	write("back", true)
	if got := receive(t, c); !strings.HasSuffix(got, ": back") {
		t.Errorf("got %q", got)
	}
}

// TestSyslogOfALog: records become messages.
func TestSyslogOfALog(t *testing.T) {
	c := listenDatagrams(t, "udp", "127.0.0.1:0")
	s, err := NewSyslog(SyslogConfig{Address: c.LocalAddr().String(), Host: "h", Tag: "t", MaxLength: 4096})
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(Config{Writer: s})
	if err != nil {
		t.Fatal(err)
	}
	l.Log(sample())
	l.Log(sample())
	l.Close()
	for range 2 {
		if got := receive(t, c); !strings.Contains(got, ` h t: {"level":"info",`) || !strings.HasSuffix(got, "}") {
			t.Errorf("got %q", got)
		}
	}
	if got := l.Stats(); got.Written != 2 {
		t.Errorf("%+v", got)
	}
}

func TestSyslogConfig(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1:514": "udp 127.0.0.1:514", "127.0.0.1": "udp 127.0.0.1:514", "log.example.com:1514": "udp log.example.com:1514",
		"[2001:db8::1]:5514": "udp [2001:db8::1]:5514", "2001:db8::1": "udp [2001:db8::1]:514", "udp@10.0.0.1:1": "udp 10.0.0.1:1", "/run/log.sock": "unixgram /run/log.sock",
		"": "", ":514": "", "10.0.0.1:0": "", "10.0.0.1:x": "", "a b": "", "10.0.0.1:70000": "", "fd@1": "",
	} {
		network, address, err := ParseSyslogAddress(text)
		if got := strings.TrimSpace(network + " " + address); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	if _, err := NewSyslog(SyslogConfig{Address: "127.0.0.1", Facility: "local8"}); err == nil {
		t.Error("local8 is a facility")
	}
	if _, err := NewSyslog(SyslogConfig{}); err == nil {
		t.Error("no address is one")
	}
}
