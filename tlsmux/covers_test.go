package tlsmux

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"
)

// TestCovers compares with crypto/x509 wherever that looks at DNS names.
func TestCovers(t *testing.T) {
	hosts := strings.Fields("a.test b.a.test c.b.a.test test aa.test .a.test x.b.a.test *.a.test other a.tes ..a.test")
	for _, tc := range []struct {
		names, common, covered string
	}{
		{"a.test", "other", "a.test"},
		{"A.Test b.a.TEST", "", "a.test b.a.test"},
		{"*.a.test", "", "b.a.test"},
		{"*.test", "", "a.test aa.test"},
		{"*.b.a.test a.test", "", "a.test c.b.a.test x.b.a.test"},
		{"*.", "", ""},
		{"*", "", ""},
		{"c*.b.a.test", "", ""},
		{"", "a.test", "a.test"},
		{"", "*.a.test", "b.a.test"},
		{"", "", ""},
	} {
		cert := &x509.Certificate{DNSNames: strings.Fields(tc.names), Subject: pkix.Name{CommonName: tc.common}}
		for _, host := range hosts {
			want := strings.Contains(" "+tc.covered+" ", " "+host+" ")
			if got := (*Names)(cert).Covers([]byte(host)); got != want && host != "*.a.test" && host != ".a.test" {
				t.Errorf("%q, %q: covers %q is %v", tc.names, tc.common, host, got)
			}
			if tc.names == "" || strings.HasPrefix(host, ".") || strings.HasPrefix(host, "*") {
				continue
			}
			if oracle := cert.VerifyHostname(host) == nil; oracle != want {
				t.Errorf("%q: crypto/x509 says %v of %q", tc.names, oracle, host)
			}
		}
	}
}

func TestCoversAllocatesNothing(t *testing.T) {
	cert := &x509.Certificate{DNSNames: []string{"own.test", "*.apps.test"}}
	host := []byte("a.apps.test")
	if n := testing.AllocsPerRun(100, func() {
		if !(*Names)(cert).Covers(host) {
			t.Fatal("not covered")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
