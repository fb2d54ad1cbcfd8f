package tlsmux

import (
	"errors"
	"testing"
)

// TestServerNames is the table of docs/tls.md: what a client that names something gets, whatever else it offers. x.own.test has
// a certificate of its own.
func TestServerNames(t *testing.T) {
	s := newSite(t)
	grease := [][]byte{ext(0x0a, []byte{0, 4, 0x1a, 0x1a, 0, 29}), ext(0x2a, nil)} // RFC 8701
	const none = "(none)"
	for _, tt := range []struct{ what, name, want string }{
		{"no name", none, "default"},
		{"IPv4", "127.0.0.1", "default"},
		{"IPv6", "::1", "default"},
		{"IPv6 in brackets", "[::1]", "default"},
		{"unknown", "nobody.test", "default"},
		{"own", "x.own.test", "own"},
		{"upper case", "X.OWN.Test", "own"},
		{"passthrough, upper case", "Pass.Test", "pass"},
		{"below a passthrough host", "a.pass.test", "default"},
		{"with a port", "x.own.test:443", "default"},
		{"dot at the end", "x.own.test.", "refused"},
		{"passthrough, dot at the end", "pass.test.", "refused"},
		{"dot", ".", "refused"},
		{"empty", "", "refused"},
		{"blank", "x.own.test ", "refused"},
		{"zero", "x.own.test\x00", "refused"},
		{"beyond ASCII", "öwn.test", "refused"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			exts := grease
			if tt.name != none {
				exts = append([][]byte{sni(tt.name)}, grease...)
			}
			whole := handmade(exts...)
			for _, sent := range [][]byte{whole, fragmented(whole, 1)} {
				hello, done, err := parseAll(sent)
				if tt.want == "refused" {
					var bad *HelloError
					if !errors.As(err, &bad) || bad.Alert != AlertUnrecognizedName {
						t.Errorf("error %v, name %q; want the alert unrecognized_name", err, hello.ServerName)
					}
					continue
				}
				if err != nil || !done || hello.HasServerName != (tt.name != none) {
					t.Fatalf("complete %v, named %v, error %v", done, hello.HasServerName, err)
				}
				d := s.store.Load().SNI(hello.ServerName)
				if d.Own != (tt.want == "own") || (d.Passthrough != nil) != (tt.want == "pass") {
					t.Errorf("decided %+v, want %s", d, tt.want)
				}
				if def := s.options.DefaultCertificate; (d.Certificate == def) != (tt.want == "default") {
					t.Error("the default certificate in the wrong case")
				}
			}
		})
	}
}

// TestNamesOfOpenSSL is whole handshakes of a client that sends any name, which those of crypto/tls do not.
func TestNamesOfOpenSSL(t *testing.T) {
	for sent, want := range map[string]string{"127.0.0.1": "127.0.0.1", "X.OWN.test": "x.own.test", "[::1]": "[::1]"} {
		s := serve(t, Config{})
		in, _, wait := openssl(t, s, "-servername", sent)
		info := get(t, "connection", s.infos)
		must(t, in.Close())
		_ = wait() // its exit status varies with the version
		if info.ServerName != want || info.Own != (want == "x.own.test") {
			t.Errorf("%s: %+v", sent, info)
		}
	}
}
