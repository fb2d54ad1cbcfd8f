package tlsmux

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"turnout/internal/reactor"
	"turnout/tlsmux/clientcert"
)

// echConfigs offers encryption of the ClientHello to a key that nobody has, for a host that stands outside in the clear.
func echConfigs(t *testing.T, public string) []byte {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	must(t, err)
	content := append([]byte{7, 0, 0x20}, u16(key.PublicKey().Bytes())...) // any number, X25519 with HKDF-SHA256
	content = append(content, u16([]byte{0, 1, 0, 1})...)                  // HKDF-SHA256, AES-128-GCM
	content = append(append(content, 64), u8([]byte(public)...)...)
	content = append(content, u16()...)
	return u16([]byte{0xfe, 0x0d}, u16(content))
}

// TestEncryptedHelloIsJudgedByItsOutside: no key for encrypted ClientHellos is here, so nobody can say what is inside. The
// name outside decides about everything, and gets around nothing.
func TestEncryptedHelloIsJudgedByItsOutside(t *testing.T) {
	dial := func(s *service, outside string) error {
		c := tls.Client(s.dial(t), &tls.Config{
			ServerName: "x.own.test", RootCAs: s.roots, MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: echConfigs(t, outside),
			EncryptedClientHelloRejectionVerify: func(tls.ConnectionState) error { return nil },
		})
		return c.Handshake()
	}
	s := serve(t, Config{})
	var rejected *tls.ECHRejectionError
	if err := dial(s, "shared.test"); !errors.As(err, &rejected) || len(rejected.RetryConfigList) > 0 {
		t.Errorf("error %v, want that encryption is rejected", err)
	}
	if i := get(t, "connection", s.infos); i.ServerName != "shared.test" || i.Own {
		t.Errorf("decided by %q, own certificate %v", i.ServerName, i.Own)
	}

	trust := clientcert.NewTrust(bundleOf(t, issueClient(t, nil, "ca")), nil)
	s = serve(t, Config{Policy: policyWith(t, PolicyConfig{ClientAuth: clientcert.Required, Trust: trust})})
	if err := dial(s, "shared.test"); err == nil {
		t.Error("let in")
	}
	get(t, "refusal", s.failed)
	if n := s.mux.Stats().Terminated.Load(); n != 0 {
		t.Errorf("%d sessions without a certificate", n)
	}

	m := serveMemory(t, Config{})
	sent := clientHello(t, &tls.Config{ServerName: "x.own.test", MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: echConfigs(t, "pass.test")})
	m.net.Connect(m.addr).Write(sent)
	m.net.Run()
	if i := <-m.passed; i.ServerName != "pass.test" {
		t.Errorf("passed through to %q", i.ServerName)
	}
}

// TestRenegotiation: a second handshake on a connection of TLS 1.2 is refused, and it ends.
func TestRenegotiation(t *testing.T) {
	closed := make(chan error, 1)
	s := serve(t, Config{Terminated: func(*reactor.Conn, Info) reactor.Handler {
		return &funcs{closed: func(_ *reactor.Conn, err error) { closed <- err }}
	}})
	in, out, wait := openssl(t, s, "-tls1_2")
	out.count(t, "Verify return code", 1)
	if _, err := io.WriteString(in, "R\n"); err != nil {
		t.Fatal(err)
	}
	if err := get(t, "end of the connection", closed); err == nil {
		t.Error("ended without a reason")
	}
	_ = wait()
	if text := out.String(); !strings.Contains(text, "RENEGOTIATING") || !strings.Contains(text, "alert") && !strings.Contains(text, "no renegotiation") {
		t.Errorf("openssl says %s", text)
	}
}

// TestSecondHello: whatever comes in a second ClientHello, after HelloRetryRequest, the name of the first one counts: a
// handshake with another name fails (RFC 8446 section 4.1.2).
func TestSecondHello(t *testing.T) {
	s := serve(t, Config{Policy: policyWith(t, PolicyConfig{Curves: []tls.CurveID{tls.CurveP384}})})
	for _, tt := range []struct {
		name string
		fail string
	}{{"x.own.test", ""}, {"y.own.test", "illegal parameter"}} {
		cfg := s.trusting(&tls.Config{ServerName: "x.own.test", MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP384}})
		c := tls.Client(&renamed{Conn: s.dial(t), from: "x.own.test", to: tt.name}, cfg)
		if err := c.Handshake(); (err != nil) != (tt.fail != "") || err != nil && !strings.Contains(err.Error(), tt.fail) {
			t.Errorf("second hello for %s: %v", tt.name, err)
		}
		if tt.fail != "" {
			get(t, "refusal", s.failed)
			continue
		}
		if i := get(t, "connection", s.infos); i.ServerName != "x.own.test" {
			t.Errorf("decided by %q", i.ServerName)
		}
	}
}

// renamed changes the server name in everything that is sent in the clear but the first ClientHello.
type renamed struct {
	net.Conn
	from, to string
	begun    bool
}

func (c *renamed) Write(p []byte) (int, error) {
	if !c.begun {
		c.begun = true
		return c.Conn.Write(p)
	}
	_, err := c.Conn.Write([]byte(strings.ReplaceAll(string(p), c.from, c.to)))
	return len(p), err
}
