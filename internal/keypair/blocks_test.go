package keypair

import (
	"bytes"
	"strings"
	"testing"
)

// filled is a block whose body takes several lines.
func filled(kind, fill string) string { return string(block(kind, []byte(strings.Repeat(fill, 100)))) }

func TestDecode(t *testing.T) {
	a, b := filled("CERTIFICATE", "a"), filled("X509 CRL", "b")
	for what, text := range map[string]string{
		"two":                   a + b,
		"comments":              "# one\n" + a + "\nsubject=/CN=x\n" + b + "the end",
		"no line break at last": a + strings.TrimSpace(b),
		"line ends of DOS":      strings.ReplaceAll(a+b, "\n", "\r\n"),
	} {
		blocks, err := Decode([]byte(text))
		if err != nil || len(blocks) != 2 || blocks[0].Type != "CERTIFICATE" || blocks[1].Type != "X509 CRL" {
			t.Errorf("%s: %d blocks, %v", what, len(blocks), err)
		}
	}
	for _, text := range []string{"", "hello", "# no block\n"} {
		if blocks, err := Decode([]byte(text)); err != nil || len(blocks) != 0 {
			t.Errorf("%q: %d blocks, %v", text, len(blocks), err)
		}
	}
	for what, text := range map[string]string{
		"the last is cut off":         a + b[:len(b)/2],
		"cut off within its end":      a + b[:len(b)-8],
		"the first is cut off":        a[:len(a)/2] + "\n" + b,
		"joined without a line break": strings.TrimSpace(a) + b,
		"no base64":                   a + strings.Replace(b, "YmJi", "!!!!", 1),
		"another end":                 a + strings.Replace(b, "END X509 CRL", "END CERTIFICATE", 1),
		"a mark in front":             "\ufeff" + a + b,
	} {
		if blocks, err := Decode([]byte(text)); err == nil {
			t.Errorf("%s: %d blocks and no error", what, len(blocks))
		}
	}
}

// FuzzDecode: what is taken as complete holds as many blocks as it begins.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(filled("CERTIFICATE", "a") + filled("X509 CRL", "b")))
	f.Add([]byte("-----BEGIN A-----\n-----BEGIN B-----\n-----END B-----\n"))
	f.Add([]byte("-----BEGIN A-----\nk: v\n\nYQ==\n-----END A-----"))
	f.Fuzz(func(t *testing.T, text []byte) {
		blocks, err := Decode(text)
		if begun := bytes.Count(text, []byte("-----BEGIN ")); err == nil && len(blocks) < begun {
			t.Errorf("%d blocks, %d begin", len(blocks), begun)
		}
	})
}

// TestParseBundle: the order of the blocks does not matter, what is torn or missing does.
func TestParseBundle(t *testing.T) {
	p, params := rsaPair(), string(block("EC PARAMETERS", []byte("x")))
	cert, key := string(p.cert), string(p.pkcs8)
	for what, tc := range map[string]struct {
		text string
		want string // of the error
	}{
		"certificate first":         {cert + key, ""},
		"key first, and parameters": {params + key + cert, ""},
		"an older name":             {strings.ReplaceAll(cert, "CERTIFICATE", "X509 CERTIFICATE") + key, ""},
		"no key":                    {cert, "no private key"},
		"no certificate":            {key, "no certificate"},
		"key with headers":          {cert + strings.Replace(key, "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\n\n", 1), "no private key"},
		"torn":                      {cert + key[:len(key)/2], "is torn"},
		"another's key":             {cert + string(otherRSA().pkcs8), "does not match"},
	} {
		pair, err := ParseBundle([]byte(tc.text))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", what, err, tc.want)
		}
		if err == nil && (len(pair.Certificate) != 1 || pair.PrivateKey == nil) {
			t.Errorf("%s: %+v", what, pair)
		}
		if has := HasKey([]byte(tc.text)); has != (tc.want == "" || tc.want == "no certificate" || tc.want == "does not match") {
			t.Errorf("%s: has a key: %v", what, has)
		}
	}
}
