package admit

import (
	"bytes"
	"crypto/tls"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	routev1 "github.com/openshift/api/route/v1"

	"turnout/internal/keypair"
)

// sameAsText checks that what was read is what is written in the settings to be used.
func sameAsText(t *testing.T, parsed *tls.Certificate, out *routev1.TLSConfig) {
	t.Helper()
	if out.Certificate == "" {
		if parsed != nil {
			t.Fatal("a certificate of no text")
		}
		return
	}
	want, err := tls.X509KeyPair([]byte(out.Certificate+"\n"+out.CACertificate), []byte(out.Key))
	switch {
	case err != nil:
		t.Fatalf("admitted, but it cannot be served: %v", err)
	case parsed == nil || !slices.EqualFunc(parsed.Certificate, want.Certificate, bytes.Equal):
		t.Fatal("another chain than in the text")
	case !parsed.Leaf.Equal(want.Leaf) || !keypair.Belongs(parsed.PrivateKey, want.Leaf):
		t.Fatal("another certificate or key than in the text")
	}
}

// FuzzTLS looks that what is admitted can be served, that cleaning is done in one go, and
// that no key is shown in a message.
func FuzzTLS(f *testing.F) {
	ca := issue(f, how{name: "ca", ca: true}, nil)
	good := issue(f, how{name: "www.example.test"}, &ca)
	key := good.keyPEM(f)
	for _, seed := range [][4]string{
		{"edge", good.pem, key, ca.pem}, {"reencrypt", good.pem + ca.pem, key, ""}, {"edge", key + good.pem, "", ""},
		{"edge", "Bag Attributes\n" + good.pem, key + "\ntrailing", ""}, {"passthrough", "", "", ""}, {"", "", "", ""},
		{"edge", good.pem, "-----BEGIN EC PARAMETERS-----\nAAAA\n-----END EC PARAMETERS-----\n" + key, ""},
		{"edge", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", "-----BEGIN X-----\nA: b\n\n-----END X-----\n", "x"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, termination, cert, key, cas string) {
		in := &routev1.TLSConfig{
			Termination: routev1.TLSTerminationType(termination), Certificate: cert, Key: key, CACertificate: cas, DestinationCACertificate: "",
		}
		before := *in
		out, parsed, v := TLS(in, tlsNow, nil)
		if *in != before {
			t.Fatal("the argument was changed")
		}
		if !v.Admitted {
			if v.Reason != ReasonInvalid || v.Message == "" || out != nil {
				t.Fatalf("refused with %+v", v)
			}
			if len(key) > 40 && strings.Contains(v.Message, key) {
				t.Fatalf("the key is shown in %q", v.Message)
			}
			return
		}
		sameAsText(t, parsed, out)
		again, _, v := TLS(out, tlsNow, nil)
		if !v.Admitted {
			t.Fatalf("what was cleaned is refused: %s", v.Message)
		}
		if diff := cmp.Diff(out, again); diff != "" {
			t.Fatalf("cleaned twice is another: %s", diff)
		}
	})
}
