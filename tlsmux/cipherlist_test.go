package tlsmux

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestCipherLists is what exclusions and keywords leave, and what is reported.
func TestCipherLists(t *testing.T) {
	const gcm, cbc = "ECDHE-RSA-AES128-GCM-SHA256", "AES128-SHA"
	for _, c := range []struct{ text, left, lacking, unknown string }{
		{gcm + ":" + cbc + ":!kRSA", gcm, "", ""}, // what is excluded is not offered
		{cbc + ":!" + cbc + ":" + gcm + ":" + cbc, gcm, "", ""},
		{cbc + ":-" + cbc + ":" + gcm, gcm, "", ""},
		{cbc + ":-" + cbc + ":" + gcm + ":" + cbc, gcm + " " + cbc, "", ""},
		{gcm + ":!TLS_RSA_WITH_AES_128_CBC_SHA:" + cbc, gcm, "", ""},
		{gcm + ":+" + cbc + ":@STRENGTH", gcm, "", ""}, // only the order
		{gcm + ":!aNULL:!eNULL:!EXPORT:!DES:!RC4:!MD5:!PSK:!aECDH:!EDH-DSS-DES-CBC3-SHA:!KRB5-DES-CBC3-SHA:!SRP:!DSS+AES", gcm, "", ""},
		{gcm + ":!AES128-SHA1", gcm, "", "!AES128-SHA1"}, // a slip
		{gcm + ":!DHE", gcm, "", ""},
		{"CHACHA20@STRENGTH:!ECDSA", "ECDHE-RSA-CHACHA20-POLY1305", "DHE-RSA-CHACHA20-POLY1305", ""},
		{gcm + ":@SECLEVEL=2:kPSK:DHE+AESGCM", gcm, "", "@SECLEVEL=2 kPSK DHE+AESGCM"},
		{gcm + "," + cbc + " AES256-SHA", gcm + " " + cbc + " AES256-SHA", "", ""},
		{"ECDHE+AESGCM+AES128", "ECDHE-ECDSA-AES128-GCM-SHA256 " + gcm, "", ""},
		{"AES128+AESGCM+aRSA", gcm + " AES128-GCM-SHA256", "DHE-RSA-AES128-GCM-SHA256", ""},
		{"AES128+AESGCM+aRSA:!DHE", gcm + " AES128-GCM-SHA256", "", ""},
		{"CHACHA20", "ECDHE-ECDSA-CHACHA20-POLY1305 ECDHE-RSA-CHACHA20-POLY1305", "DHE-RSA-CHACHA20-POLY1305", ""},
	} {
		suites, unknown, err := ParseCiphers(c.text)
		var left []string
		for _, id := range suites {
			left = append(left, SuiteName(id))
		}
		if err != nil || strings.Join(left, " ") != c.left || strings.Join(unknown, " ") != c.unknown {
			t.Errorf("%s: %v, unknown %v, %v", c.text, left, unknown, err)
		}
		if lacking := CiphersLacking(c.text); strings.Join(lacking, " ") != c.lacking {
			t.Errorf("%s: lacking %v", c.text, lacking)
		}
	}
	for _, text := range []string{"!aNULL", "HIGH:!ALL", "DHE:EDH", cbc + ":!SHA", "@STRENGTH", gcm + ":-ECDHE"} {
		if got, _, err := ParseCiphers(text); err == nil || !strings.Contains(err.Error(), "allowed: modern") {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// TestCipherListsAsOpenSSL has OpenSSL read the same lists. Debian builds it without 3DES.
func TestCipherListsAsOpenSSL(t *testing.T) {
	binary := tool(t, "openssl")
	words := strings.Fields("ALL HIGH MEDIUM kRSA RSA aRSA kECDHE kEECDH ECDHE EECDH ECDH aECDSA ECDSA kDHE kEDH DHE EDH DH AES AES128 AES256 AESGCM CHACHA20" +
		" SHA SHA1 SHA256 SHA384 TLSv1.2 TLSv1 TLSv1.0 SSLv3 aNULL CAMELLIA")
	lists := []string{
		"DEFAULT", "DEFAULT:!kRSA", "HIGH:DEFAULT", "HIGH:!aNULL:!MD5:@STRENGTH", "HIGH:!kRSA:!SHA", "ALL:-AES128:AES128-SHA", "ALL:!AES256:AES256-SHA",
		"ECDHE+AESGCM:ECDHE+CHACHA20:!ECDSA", "EECDH+AESGCM:EDH+AESGCM:AES256+EECDH:AES256+EDH", "HIGH:+kRSA", "AES128-SHA,AES256-SHA ECDHE-RSA-AES128-SHA",
		"ECDHE-RSA-AES128-GCM-SHA256:kEDH+AESGCM:!DSS", "ALL+AES128:-SHA+aRSA",
	}
	for _, w := range words {
		lists = append(lists, w, "ALL:-"+w, "HIGH:!"+w+":ALL")
	}
	pairs := strings.Fields("RSA aRSA ECDHE ECDSA DHE AES128 AESGCM CHACHA20 SHA SHA256 TLSv1.2 SSLv3")
	for i, w := range pairs {
		for _, v := range pairs[:i] {
			lists = append(lists, w+"+"+v)
		}
	}
	for _, list := range lists {
		out, err := exec.Command(binary, "ciphers", list).Output()
		var want []string
		for name := range strings.SplitSeq(strings.TrimSpace(string(out)), ":") {
			if _, ok := suiteNames[name]; ok && err == nil { // an error: nothing is left
				want = append(want, name)
			}
		}
		var got []string
		suites, _, _ := ParseCiphers(list)
		for _, id := range suites {
			if name := SuiteName(id); !strings.Contains(name, "DES") {
				got = append(got, name)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, openssl %v", list, got, want)
		}
	}
}

// FuzzParseCiphers: what was excluded for good is not there, whatever surrounds it.
func FuzzParseCiphers(f *testing.F) {
	for _, seed := range []string{"HIGH", "ALL:-AES:AES128-SHA", "DEFAULT:@STRENGTH", "a+b:+::!", "-ALL:ECDHE+AESGCM"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		suites, _, err := ParseCiphers("!kRSA:" + text + ":ECDHE")
		if err == nil && len(suites) == 0 {
			t.Fatal("neither a suite nor an error")
		}
		for _, id := range suites {
			if name := SuiteName(id); !strings.HasPrefix(name, "ECDHE-") {
				t.Errorf("%s is there", name)
			}
		}
	})
}
