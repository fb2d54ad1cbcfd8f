package tlsmux

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseVersion(t *testing.T) {
	for name, want := range map[string]uint16{"TLSv1.0": tls.VersionTLS10, "TLSv1.1": tls.VersionTLS11, "TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13} {
		if got, err := ParseVersion(name); err != nil || got != want {
			t.Errorf("%s: %#04x, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "tlsv1.2", "TLSv1", "SSLv3", "1.2"} {
		if _, err := ParseVersion(name); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

func TestParseCiphers(t *testing.T) {
	for _, c := range []struct {
		text    string
		want    []uint16
		unknown []string
	}{
		{"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384",
			[]uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384}, nil},
		{"DHE-RSA-AES128-GCM-SHA256:AES128-SHA::CAMELLIA", []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}, []string{"DHE-RSA-AES128-GCM-SHA256", "CAMELLIA"}},
		{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256:ECDHE-RSA-AES128-GCM-SHA256", []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}, nil},
		{"AES128-SHA:TLS_AES_128_GCM_SHA256:TLS_RSA_WITH_RC4_128_SHA", []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA},
			[]string{"TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_RC4_128_SHA"}},
	} {
		got, unknown, err := ParseCiphers(c.text)
		if err != nil || !slices.Equal(got, c.want) || !slices.Equal(unknown, c.unknown) {
			t.Errorf("%s: %v, unknown %v, %v", c.text, got, unknown, err)
		}
	}
	for _, text := range []string{"", ":", "Modern", "DHE-RSA-AES128-GCM-SHA256", "!aNULL"} {
		if _, _, err := ParseCiphers(text); err == nil {
			t.Errorf("%q leaves something", text)
		}
	}
}

// TestCipherSets: each set holds the one before it, and only "old" what crypto/tls calls insecure beyond CBC with SHA-256.
func TestCipherSets(t *testing.T) {
	sets := map[string][]uint16{}
	for _, name := range []string{"modern", "intermediate", "old"} {
		suites, unknown, err := ParseCiphers(name)
		if err != nil || len(unknown) > 0 {
			t.Fatalf("%s: %v %v", name, unknown, err)
		}
		sets[name] = suites
	}
	for _, pair := range [][2]string{{"modern", "intermediate"}, {"intermediate", "old"}} {
		for _, id := range sets[pair[0]] {
			if !slices.Contains(sets[pair[1]], id) {
				t.Errorf("%s is in %s and not in %s", tls.CipherSuiteName(id), pair[0], pair[1])
			}
		}
	}
	for _, id := range sets["intermediate"] {
		if name := tls.CipherSuiteName(id); !strings.HasPrefix(name, "TLS_ECDHE_") || strings.Contains(name, "3DES") {
			t.Errorf("intermediate has %s", name)
		}
	}
	// A caller may do with a set what it wants.
	sets["modern"][0] = 0
	if again, _, _ := ParseCiphers("modern"); again[0] == 0 {
		t.Error("the set is shared")
	}
}

// TestCiphersLacking: of the suites that a set has in the HAProxy router, each is in the set or is reported as missing.
func TestCiphersLacking(t *testing.T) {
	both := func(names ...string) (all []string) {
		for _, n := range names {
			all = append(all, "ECDHE-ECDSA-"+n, "ECDHE-RSA-"+n)
		}
		return all
	}
	modern := both("AES256-GCM-SHA384", "CHACHA20-POLY1305", "AES128-GCM-SHA256", "AES256-SHA384", "AES128-SHA256")
	intermediate := slices.Concat(modern, both("AES128-SHA", "AES256-SHA", "DES-CBC3-SHA"), []string{
		"DHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES256-GCM-SHA384", "DHE-RSA-AES128-SHA256", "DHE-RSA-AES256-SHA256", "DHE-RSA-AES128-SHA", "DHE-RSA-AES256-SHA",
		"EDH-RSA-DES-CBC3-SHA", "AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-SHA256", "AES256-SHA256", "AES128-SHA", "AES256-SHA", "DES-CBC3-SHA",
	})
	for set, want := range map[string][]string{"modern": modern, "intermediate": intermediate, "old": append(intermediate, "DHE-DSS", "CAMELLIA", "SEED")} {
		suites, _, err := ParseCiphers(set)
		if err != nil {
			t.Fatal(err)
		}
		got := CiphersLacking(set)
		for _, id := range suites {
			if name := SuiteName(id); slices.Contains(got, name) {
				t.Errorf("%s: %s is in it and reported as missing", set, name)
			} else {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", set, diff)
		}
	}
	if got := CiphersLacking("AES128-SHA"); got != nil {
		t.Errorf("a list lacks %v", got)
	}
	if got := SuiteName(tls.TLS_AES_128_GCM_SHA256); got != "TLS_AES_128_GCM_SHA256" {
		t.Errorf("a suite of TLS 1.3 is called %s", got)
	}
}

func TestParseGroups(t *testing.T) {
	got, unknown, err := ParseGroups("X25519MLKEM768:X25519:secp256r1:prime256v1:brainpoolP256r1:P-521")
	want := []tls.CurveID{tls.X25519MLKEM768, tls.X25519, tls.CurveP256, tls.CurveP521}
	if err != nil || !slices.Equal(got, want) || !slices.Equal(unknown, []string{"brainpoolP256r1"}) {
		t.Errorf("%v, unknown %v, %v", got, unknown, err)
	}
	if _, unknown, err := ParseGroups("ffdhe2048"); err == nil || !slices.Equal(unknown, []string{"ffdhe2048"}) {
		t.Errorf("unknown %v, %v", unknown, err)
	}
}

func TestParseSuites13(t *testing.T) {
	unwanted, unknown, err := ParseSuites13("TLS_AES_128_GCM_SHA256:TLS_AES_128_CCM_SHA256")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}, unwanted); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"TLS_AES_128_CCM_SHA256"}, unknown); diff != "" {
		t.Error(diff)
	}
	if _, _, err := ParseSuites13("ECDHE-RSA-AES128-GCM-SHA256"); err == nil {
		t.Error("a suite of TLS 1.2 is enough")
	}
}
