package admit

import (
	"fmt"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
)

// TestAuthorities: a certificate is accepted if any of the authorities vouches for it, directly or through others of them.
func TestAuthorities(t *testing.T) {
	ca := issue(t, how{name: "ca", ca: true}, nil)
	middle := issue(t, how{name: "middle", ca: true}, &ca)
	lower := issue(t, how{name: "lower", ca: true}, &middle)
	foreign := issue(t, how{name: "foreign", ca: true}, nil)
	for name, tt := range map[string]struct {
		signer identity
		cas    string
		good   bool
	}{
		"signed by it":                      {ca, ca.pem, true},
		"signed by one below it":            {middle, middle.pem + ca.pem, true},
		"the other way round":               {middle, ca.pem + middle.pem, true},
		"signed by two below it":            {lower, ca.pem + lower.pem + middle.pem, true},
		"one below is trusted on its own":   {middle, middle.pem, true},
		"two below is trusted on its own":   {lower, lower.pem + foreign.pem, true},
		"one below is missing":              {middle, ca.pem, false},
		"one of two below is missing":       {lower, middle.pem + ca.pem, false},
		"another":                           {ca, foreign.pem, false},
		"one below of another is no way in": {ca, foreign.pem + middle.pem, false},
	} {
		leaf := issue(t, how{name: "www.example.test"}, &tt.signer)
		config := &routev1.TLSConfig{Termination: "edge", Certificate: leaf.pem, Key: leaf.keyPEM(t), CACertificate: tt.cas}
		if _, _, v := TLS(config, tlsNow, nil); v.Admitted != tt.good {
			t.Errorf("%s: admitted: %v, want %v; %s", name, v.Admitted, tt.good, v.Message)
		}
	}
}

// TestAuthoritiesAreShared: routes with the same authorities share what was read of them, and what is wrong with them is
// reported to each.
func TestAuthoritiesAreShared(t *testing.T) {
	ca := issue(t, how{name: "ca", ca: true}, nil)
	known := new(Authorities)
	var first *byte
	for i := range 3 {
		leaf := issue(t, how{name: fmt.Sprintf("www-%d.example.test", i)}, &ca)
		_, parsed, v := TLS(&routev1.TLSConfig{Termination: "edge", Certificate: leaf.pem, Key: leaf.keyPEM(t), CACertificate: "\n" + ca.pem}, tlsNow, known)
		if !v.Admitted || len(parsed.Certificate) != 2 {
			t.Fatalf("not as it should be: %+v, %s", parsed, v.Message)
		}
		if first == nil {
			first = &parsed.Certificate[1][0]
		}
		if &parsed.Certificate[1][0] != first || &parsed.Certificate[0][0] == first {
			t.Error("the authority's certificate is kept more than once")
		}
	}
	wrong := &routev1.TLSConfig{Termination: "reencrypt", CACertificate: "nothing", DestinationCACertificate: "nothing"}
	_, _, want := TLS(wrong, tlsNow, nil)
	for range 2 {
		if _, _, got := TLS(wrong, tlsNow, known); got != want || got.Admitted {
			t.Errorf("judged %+v, want %+v", got, want)
		}
	}
}

// TestAuthoritiesAreBounded: what routes no longer use is forgotten.
func TestAuthoritiesAreBounded(t *testing.T) {
	known := new(Authorities)
	for i := range 2*knownAuthorities + 1 {
		TLS(&routev1.TLSConfig{Termination: "edge", CACertificate: fmt.Sprint(i)}, tlsNow, known)
	}
	if n := len(known.known); n == 0 || n > knownAuthorities {
		t.Errorf("%d fields are remembered", n)
	}
}

// TestLargeAuthoritiesAreBounded: so it is with fields that are large, and one that is larger than all may be is read and not kept.
func TestLargeAuthoritiesAreBounded(t *testing.T) {
	known := new(Authorities)
	read := func(size, i int) {
		TLS(&routev1.TLSConfig{Termination: "edge", CACertificate: fmt.Sprint(1000000+i) + strings.Repeat("x", size-7)}, tlsNow, known)
	}
	for i := range 50 {
		read(knownBytes/10, i)
		size := 0
		for key := range known.known {
			size += len(key.text)
		}
		if size > knownBytes || size != known.size || size == 0 {
			t.Fatalf("%d bytes are remembered, %d counted", size, known.size)
		}
	}
	before := len(known.known)
	if read(knownBytes+1, 0); len(known.known) != before {
		t.Errorf("%d fields are remembered, %d before", len(known.known), before)
	}
}
