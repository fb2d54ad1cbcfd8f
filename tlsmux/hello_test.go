package tlsmux

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

// clientHello returns what a crypto/tls client sends first.
func clientHello(t testing.TB, cfg *tls.Config) []byte {
	t.Helper()
	if cfg.ServerName == "" {
		cfg.InsecureSkipVerify = true
	}
	near, far := net.Pipe()
	defer far.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Client(near, cfg).Handshake() // ends with near
	}()
	head := make([]byte, recordHeader)
	if _, err := io.ReadFull(far, head); err != nil {
		t.Fatal(err)
	}
	hello := append(head, make([]byte, int(head[3])<<8+int(head[4]))...)
	if _, err := io.ReadFull(far, hello[recordHeader:]); err != nil {
		t.Fatal(err)
	}
	near.Close()
	<-done
	return hello
}

// fragmented cuts the message of a hello into records of at most size bytes.
func fragmented(hello []byte, size int) []byte {
	var out []byte
	for part := range slices.Chunk(hello[recordHeader:], size) {
		out = append(out, recordHandshake, 3, 1, byte(len(part)>>8), byte(len(part)))
		out = append(out, part...)
	}
	return out
}

// u16 is a 16-bit length-prefixed field.
func u16(parts ...[]byte) []byte {
	b := bytes.Join(parts, nil)
	return append([]byte{byte(len(b) >> 8), byte(len(b))}, b...)
}

func u8(b ...byte) []byte { return append([]byte{byte(len(b))}, b...) }

func ext(kind byte, body []byte) []byte { return append([]byte{0, kind}, u16(body)...) }

// sni is a server_name extension of host names.
func sni(names ...string) []byte {
	var list []byte
	for _, n := range names {
		list = append(append(list, 0), u16([]byte(n))...)
	}
	return ext(extServerName, u16(list))
}

// handmade is a ClientHello in one record; exts nil = no extensions field.
func handmade(exts ...[]byte) []byte {
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, u8()...)
	body = append(body, u16([]byte{0x13, 1})...)
	body = append(body, u8(0)...)
	if exts != nil {
		body = append(body, u16(exts...)...)
	}
	msg := append([]byte{typeClientHello, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
	return append([]byte{recordHandshake, 3, 1, byte(len(msg) >> 8), byte(len(msg))}, msg...)
}

func parseAll(p []byte) (Hello, bool, error) {
	var s HelloParser
	var h Hello
	done, err := s.Parse(p, &h)
	return h, done, err
}

func protocols(h *Hello) (out []string) {
	for p := range h.Protocols() {
		out = append(out, string(p))
	}
	return out
}

func TestHelloOfCryptoTLS(t *testing.T) {
	configs := map[string]*tls.Config{
		"no name":         {},
		"name":            {ServerName: "Shop.Example.COM"},
		"alpn":            {ServerName: "a.test", NextProtos: []string{"h2", "http/1.1"}},
		"1.2 only":        {ServerName: "a.test", MaxVersion: tls.VersionTLS12},
		"long list":       {ServerName: strings.Repeat("a.", 126) + "b", NextProtos: []string{strings.Repeat("x", 255), "y"}},
		"one small curve": {ServerName: "a.test", CurvePreferences: []tls.CurveID{tls.CurveP256}},
	}
	for name, cfg := range configs {
		t.Run(name, func(t *testing.T) {
			whole := clientHello(t, cfg)
			for _, size := range []int{1 << 14, 1000, 5, 4, 3, 1} {
				bytes := fragmented(whole, size)
				var s HelloParser
				for n := range bytes { // every prefix needs more
					var h Hello
					if done, err := s.Parse(bytes[:n], &h); done || err != nil {
						t.Fatalf("records of %d: %d of %d bytes: done %v, %v", size, n, len(bytes), done, err)
					}
				}
				var h Hello
				done, err := s.Parse(append(bytes, "what follows"...), &h)
				if !done || err != nil {
					t.Fatalf("records of %d: done %v, %v", size, done, err)
				}
				if want := strings.ToLower(cfg.ServerName); h.ServerName != want || h.HasServerName != (want != "") {
					t.Errorf("ServerName %q, %v; want %q", h.ServerName, h.HasServerName, want)
				}
				if got := protocols(&h); !slices.Equal(got, cfg.NextProtos) {
					t.Errorf("protocols %q, want %q", got, cfg.NextProtos)
				}
				if !h.Supports(tls.VersionTLS12) || h.Supports(tls.VersionTLS13) != (cfg.MaxVersion == 0) || h.Supports(0x0305) {
					t.Errorf("versions are wrong")
				}
				if h.Size != len(whole)-recordHeader {
					t.Errorf("Size %d, want %d", h.Size, len(whole)-recordHeader)
				}
			}
		})
	}
}

func TestHelloErrors(t *testing.T) {
	ok := handmade(sni("a.test"))
	change := func(i int, b byte) []byte {
		p := slices.Clone(ok)
		p[i] = b
		return p
	}
	alpn := func(list []byte) []byte { return handmade(ext(extALPN, list)) }
	noise := ext(200, make([]byte, 65000))
	tests := []struct {
		name string
		in   []byte
		want error
	}{
		{"http", []byte("GET / HTTP/1.1\r\n"), ErrNotTLS},
		{"first byte", []byte{0x80}, ErrNotTLS},
		{"alert first", []byte{recordAlert, 3, 3, 0, 2, 2, 0}, ErrNotTLS},
		{"version 2", []byte{recordHandshake, 2}, ErrNotTLS},
		{"empty record", []byte{recordHandshake, 3, 1, 0, 0}, ErrHelloRecord},
		{"record too long", []byte{recordHandshake, 3, 1, 0x40, 1}, ErrHelloOverflow},
		{"another message", change(5, 2), ErrHelloMessage},
		{"another record in between", append(fragmented(ok, 10)[:15], recordAlert), ErrHelloRecord},
		{"bad version in between", append(fragmented(ok, 10)[:15], recordHandshake, 9), ErrHelloRecord},
		{"message too long", []byte{recordHandshake, 3, 1, 0, 4, 1, 1, 0, 1}, ErrHelloTooBig},
		{"too many bytes", fragmented(handmade(sni("a.test"), noise), 1), ErrHelloTooBig},
		{"cut before the version", []byte{recordHandshake, 3, 1, 0, 5, 1, 0, 0, 1, 3}, ErrHelloMalformed},
		{"session too long", change(5+4+34, 33), ErrHelloMalformed},
		{"odd suites", change(5+4+36, 3), ErrHelloMalformed},
		{"no suites", change(5+4+36, 0), ErrHelloMalformed},
		{"no compression", change(5+4+39, 0), ErrHelloMalformed},
		{"extensions too short", change(len(ok)-16, 0), ErrHelloMalformed},
		{"extension too long", change(len(ok)-12, 200), ErrHelloMalformed},
		{"name twice", handmade(sni("a.test", "b.test")), ErrHelloMalformed},
		{"extension twice", handmade(sni("a.test"), sni("a.test")), ErrHelloMalformed},
		{"extension twice, once without host", handmade(ext(extServerName, u16(append([]byte{7}, u16([]byte("x"))...))), sni("a.test")), ErrHelloMalformed},
		{"no list of names", handmade(ext(extServerName, nil)), ErrHelloMalformed},
		{"empty list of names", handmade(ext(extServerName, u16())), ErrHelloMalformed},
		{"bytes after the list", handmade(ext(extServerName, append(u16(append([]byte{0}, u16([]byte("a"))...)), 0))), ErrHelloMalformed},
		{"name cut", handmade(ext(extServerName, u16([]byte{0, 0, 9, 'a'}))), ErrHelloMalformed},
		{"empty name", handmade(sni("")), ErrHelloName},
		{"trailing dot", handmade(sni("a.test.")), ErrHelloName},
		{"space", handmade(sni("a b")), ErrHelloName},
		{"NUL", handmade(sni("a.test\x00b")), ErrHelloName},
		{"UTF-8", handmade(sni("ä.test")), ErrHelloName},
		{"DEL", handmade(sni("a\x7f")), ErrHelloName},
		{"long name", handmade(sni(strings.Repeat("a", 256))), ErrHelloName},
		{"alpn empty", alpn(nil), ErrHelloMalformed},
		{"alpn without names", alpn(u16()), ErrHelloMalformed},
		{"alpn empty name", alpn(u16(u8())), ErrHelloMalformed},
		{"alpn cut", alpn(u16([]byte{9, 'a'})), ErrHelloMalformed},
		{"alpn twice", handmade(ext(extALPN, u16(u8('a'))), ext(extALPN, u16(u8('a')))), ErrHelloMalformed},
		{"versions odd", handmade(ext(extSupportedVersions, u8(3, 4, 3))), ErrHelloMalformed},
		{"versions empty", handmade(ext(extSupportedVersions, u8())), ErrHelloMalformed},
		{"versions and more", handmade(ext(extSupportedVersions, append(u8(3, 4), 0))), ErrHelloMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s HelloParser
			for n := range len(tt.in) + 1 {
				var h Hello
				done, err := s.Parse(tt.in[:n], &h)
				if done {
					t.Fatal("accepted")
				}
				if err != nil {
					if !errors.Is(err, tt.want) {
						t.Fatalf("error %v after %d bytes, want %v", err, n, tt.want)
					}
					return
				}
			}
			t.Fatalf("no error in %d bytes, want %v", len(tt.in), tt.want)
		})
	}
}

func TestHelloAccepted(t *testing.T) {
	tests := []struct {
		name, server string
		in           []byte
	}{
		{"no extensions field", "", handmade()},
		{"empty extensions", "", handmade([]byte{})},
		{"longest name", strings.Repeat("a", 255), handmade(sni(strings.Repeat("A", 255)))},
		{"another type of name", "a.test", handmade(ext(extServerName, u16(append([]byte{7}, u16([]byte("x"))...), append([]byte{0}, u16([]byte("a.test"))...))))},
		{"name behind others", "a.test", handmade(ext(99, make([]byte, 3000)), sni("a.test"))},
		{"three records of 16 KiB", "a.test", fragmented(handmade(ext(99, make([]byte, 40000)), sni("a.test")), maxRecord)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, done, err := parseAll(tt.in)
			if !done || err != nil || h.ServerName != tt.server {
				t.Fatalf("%q, %v, %v; want %q", h.ServerName, done, err, tt.server)
			}
		})
	}
}

func TestHelloParserReset(t *testing.T) {
	var s HelloParser
	for _, name := range []string{"first.test", "second.test"} {
		in := fragmented(handmade(sni(name)), 7)
		var h Hello
		if done, err := s.Parse(in, &h); !done || err != nil || h.ServerName != name {
			t.Fatalf("%q, %v, %v; want %q", h.ServerName, done, err, name)
		}
		s.Reset()
	}
}

func TestHelloAllocations(t *testing.T) {
	in := handmade(sni("shop.example.com"), ext(extALPN, u16(u8([]byte("h2")...))))
	var h Hello
	if n := testing.AllocsPerRun(100, func() {
		var s HelloParser
		if done, _ := s.Parse(in, &h); !done || !h.Offers("h2") {
			t.Fatal("not parsed")
		}
	}); n > 1 { // the name
		t.Errorf("%v allocations, want 1", n)
	}
	unnamed := fragmented(handmade(), 9)
	var s HelloParser
	if n := testing.AllocsPerRun(100, func() {
		s.Reset()
		if done, _ := s.Parse(unnamed, &h); !done {
			t.Fatal("not parsed")
		}
	}); n > 0 {
		t.Errorf("%v allocations without a name, want 0", n)
	}
}

// FuzzHello checks that the parser does not depend on how the bytes arrive, and that it never reads another name than
// crypto/tls does.
func FuzzHello(f *testing.F) {
	f.Add(handmade(sni("a.test")), byte(1))
	f.Add(fragmented(handmade(sni("A.test"), ext(extALPN, u16(u8('x')))), 5), byte(3))
	f.Add(clientHello(f, &tls.Config{ServerName: "b.test", MinVersion: tls.VersionTLS12, CurvePreferences: []tls.CurveID{tls.X25519}}), byte(200))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), byte(2))
	f.Add([]byte{recordHandshake, 3, 1, 0, 4, 1, 0, 0, 0}, byte(1))
	f.Fuzz(func(t *testing.T, in []byte, step byte) {
		whole, done, err := parseAll(in)
		if done && err != nil {
			t.Fatal("done with an error")
		}
		var s HelloParser
		for n := 0; ; n = min(n+1+int(step), len(in)) {
			var h Hello
			partDone, partErr := s.Parse(in[:n], &h)
			if partDone || partErr != nil || n == len(in) {
				if partDone != done || partErr != err || h.ServerName != whole.ServerName || h.Size != whole.Size {
					t.Fatalf("in parts: %v, %v, %q; at once: %v, %v, %q", partDone, partErr, h.ServerName, done, err, whole.ServerName)
				}
				break
			}
		}
		if err != nil { // refused: the parser may be stricter
			return
		}
		if name, ok := cryptoName(in); ok && (!done || !strings.EqualFold(name, whole.ServerName)) {
			t.Fatalf("crypto/tls accepts the name %q, the parser: %q, %v, %v", name, whole.ServerName, done, err)
		}
	})
}

// cryptoName is the server name crypto/tls reads, if it accepts the hello so far as to ask for a configuration.
func cryptoName(in []byte) (name string, ok bool) {
	stop := errors.New("seen")
	cfg := &tls.Config{MinVersion: tls.VersionTLS10, GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name, ok = h.ServerName, true
		return nil, stop
	}}
	_ = tls.Server(&fixedConn{r: bytes.NewReader(in)}, cfg).Handshake()
	return name, ok
}

// fixedConn is a connection with all input there.
type fixedConn struct {
	net.Conn
	r *bytes.Reader
}

func (c *fixedConn) Read(p []byte) (int, error)  { return c.r.Read(p) }
func (c *fixedConn) Write(p []byte) (int, error) { return len(p), nil }
func (c *fixedConn) Close() error                { return nil }

func BenchmarkHello(b *testing.B) {
	in := clientHello(b, &tls.Config{ServerName: "shop.example.com", NextProtos: []string{"h2", "http/1.1"}})
	b.ReportAllocs()
	for b.Loop() {
		if _, done, err := parseAll(in); !done {
			b.Fatal(err)
		}
	}
}
