package tlsmux

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"turnout/internal/reactor"
	"turnout/internal/wire/protocol"
)

// serveKeys is a service whose default certificate has an RSA key, or else one of ECDSA.
func serveKeys(t *testing.T, withRSA bool, policy PolicyConfig) *service {
	t.Helper()
	s := serve(t, Config{Policy: policyWith(t, policy), Terminated: func(*reactor.Conn, Info) reactor.Handler { return hello() }})
	if withRSA {
		s.options.DefaultCertificate = pairOf(t, newKey(rsa.GenerateKey(rand.Reader, 2048))(t))
		s.publish(t)
	}
	return s
}

// agreed runs s_client against s, sends a request and returns what was printed.
func agreed(t *testing.T, s *service, args ...string) string {
	t.Helper()
	in, out, wait := openssl(t, s, append(args, "-ign_eof")...)
	if _, err := io.WriteString(in, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	must(t, in.Close())
	_ = wait() // its exit status varies with the version
	return out.String()
}

// TestNamesOfSuites: what a name of OpenSSL stands for is what OpenSSL says, and both agree on the suite when it is the only one.
func TestNamesOfSuites(t *testing.T) {
	listed, err := exec.Command(tool(t, "openssl"), "ciphers", "-stdname", "ALL:COMPLEMENTOFALL:@SECLEVEL=0").Output()
	must(t, err)
	standard := map[string]string{} // by the name of OpenSSL
	for _, m := range regexp.MustCompile(`(?m)^(\S+)\s+- (\S+)`).FindAllStringSubmatch(string(listed), -1) {
		standard[m[2]] = m[1]
	}
	known := 0
	for name, id := range suiteNames {
		want, ok := standard[name]
		if !ok {
			continue // this OpenSSL was built without it
		}
		known++
		if got := strings.TrimSuffix(tls.CipherSuiteName(id), "_SHA256"); got != strings.TrimSuffix(want, "_SHA256") {
			t.Errorf("%s is %s, OpenSSL says %s", name, got, want)
		}
		t.Run(name, func(t *testing.T) {
			suites, _, err := ParseCiphers(name)
			must(t, err)
			s := serveKeys(t, !strings.Contains(name, "ECDSA"), PolicyConfig{CipherSuites: suites})
			if out := agreed(t, s, "-tls1_2", "-cipher", name+":@SECLEVEL=0"); !strings.Contains(out, "Cipher is "+name+"\n") || !strings.HasSuffix(out, "hi\nclosed\n") {
				t.Errorf("openssl says %s", out)
			}
		})
	}
	if known < 12 {
		t.Errorf("OpenSSL has only %d of %d suites", known, len(suiteNames))
	}
}

// TestKeyExchanges is every group with both versions, of OpenSSL, and of crypto/tls, which has those after quantum computers.
func TestKeyExchanges(t *testing.T) {
	for name, shown := range map[string]string{
		"X25519": "X25519", "secp256r1": "prime256v1", "secp384r1": "secp384r1", "secp521r1": "secp521r1",
		"X25519MLKEM768": "", "SecP256r1MLKEM768": "", "SecP384r1MLKEM1024": "",
	} {
		groups, _, err := ParseGroups(name)
		must(t, err)
		for _, version := range bothVersions {
			if shown == "" && version == tls.VersionTLS12 {
				continue // RFC 8446 section 4.2.7 groups only: TLS 1.2 has no such exchange
			}
			t.Run(name+" "+tls.VersionName(version), func(t *testing.T) {
				s := serveKeys(t, false, PolicyConfig{Curves: groups})
				c := s.client(t, &tls.Config{MinVersion: version, MaxVersion: version})
				must(t, c.Handshake())
				if got := c.ConnectionState().CurveID; got != groups[0] {
					t.Errorf("crypto/tls agreed on %s", got)
				}
				c.Close()
				if shown == "" {
					return
				}
				flag := map[uint16]string{tls.VersionTLS12: "-tls1_2", tls.VersionTLS13: "-tls1_3"}[version]
				if out := agreed(t, s, flag); !regexp.MustCompile(`Temp Key: (ECDH, )?`+shown).MatchString(out) || !strings.Contains(out, "hi\n") {
					t.Errorf("openssl says %s", out)
				}
			})
		}
	}
}

// TestOpenSSLAgreesOn is what remains to be agreed on: the suites of TLS 1.3, application protocols, names.
func TestOpenSSLAgreesOn(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-tls1_3 -ciphersuites TLS_AES_128_GCM_SHA256", "Cipher is TLS_AES_128_GCM_SHA256\n"},
		{"-tls1_3 -ciphersuites TLS_AES_256_GCM_SHA384", "Cipher is TLS_AES_256_GCM_SHA384\n"},
		{"-tls1_3 -ciphersuites TLS_CHACHA20_POLY1305_SHA256", "Cipher is TLS_CHACHA20_POLY1305_SHA256\n"},
		{"-alpn h2,http/1.1 -tls1_2", "ALPN protocol: h2\n"},
		{"-alpn http/1.1,h2 -tls1_3", "ALPN protocol: h2\n"},
		{"-alpn http/1.1", "ALPN protocol: http/1.1\n"},
		{"-alpn spdy/3", "No ALPN negotiated\n"},
		{"-noservername", "public key is 2048 bit\n"}, // the default certificate
		{"-servername nobody.test", "public key is 2048 bit\n"},
		{"-servername X.OWN.TEST", "public key is 256 bit\n"},
		{"-tls1_1 -cipher ALL:@SECLEVEL=0", "alert protocol version"},
		{"-tls1_2 -cipher DHE-RSA-AES128-GCM-SHA256", "alert handshake failure"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			s := serveKeys(t, true, PolicyConfig{Protocols: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}})
			out := agreed(t, s, strings.Fields(tt.args)...)
			if !strings.Contains(out, tt.want) || strings.Contains(tt.want, "alert") == strings.Contains(out, "hi\n") {
				t.Errorf("openssl says %s\nwant %q", out, tt.want)
			}
		})
	}
}

// TestOpenSSLResumes: a session of OpenSSL is resumed in another connection, and not under another name.
func TestOpenSSLResumes(t *testing.T) {
	for _, version := range []string{"-tls1_2", "-tls1_3"} {
		t.Run(version, func(t *testing.T) {
			s := serveKeys(t, false, PolicyConfig{})
			file := filepath.Join(t.TempDir(), "session")
			for _, visit := range []struct{ args, want string }{
				{"-sess_out " + file, "New, TLS"},
				{"-sess_in " + file, "Reused, TLS"},
				{"-servername other.test -sess_in " + file, "New, TLS"},
			} {
				out := agreed(t, s, append(strings.Fields(visit.args), version)...)
				if !strings.Contains(out, visit.want) || !strings.Contains(out, "hi\n") {
					t.Errorf("%s: openssl says %s\nwant %q", visit.args, out, visit.want)
				}
			}
		})
	}
}

// pairOf is a self-signed certificate for a key.
func pairOf(t *testing.T, key crypto.Signer) *tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "made for a test"}, DNSNames: []string{"*.default.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	leaf, err := x509.ParseCertificate(der)
	must(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func newKey[K crypto.Signer](key K, err error) func(*testing.T) crypto.Signer {
	return func(t *testing.T) crypto.Signer { t.Helper(); must(t, err); return key }
}

// TestKeysOfCertificates: every kind of key that a certificate may have is served, to OpenSSL and to crypto/tls.
func TestKeysOfCertificates(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	for _, key := range []struct {
		kind, size string
		make       func(*testing.T) crypto.Signer
	}{
		{"RSA-PSS", "2048 bit", newKey(rsa.GenerateKey(rand.Reader, 2048))},
		{"RSA-PSS", "3072 bit", newKey(rsa.GenerateKey(rand.Reader, 3072))},
		{"ECDSA", "256 bit", newKey(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))},
		{"ECDSA", "384 bit", newKey(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))},
		{"ECDSA", "521 bit", newKey(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))},
		{"Ed25519", "256 bit", newKey(edwards, err)},
	} {
		t.Run(key.kind+" "+key.size, func(t *testing.T) {
			s := serveKeys(t, false, PolicyConfig{})
			s.options.DefaultCertificate = pairOf(t, key.make(t))
			s.publish(t)
			s.roots.AddCert(s.options.DefaultCertificate.Leaf)
			for _, version := range bothVersions {
				must(t, s.client(t, &tls.Config{ServerName: "a.default.test", MinVersion: version, MaxVersion: version}).Handshake())
			}
			for _, version := range []string{"-tls1_2", "-tls1_3"} {
				out := agreed(t, s, version)
				if !strings.Contains(strings.ToLower(out), "peer signature type: "+strings.ToLower(key.kind)+"\n") || !strings.Contains(out, "public key is "+key.size) || !strings.Contains(out, "hi\n") {
					t.Errorf("openssl says %s", out)
				}
			}
		})
	}
}
