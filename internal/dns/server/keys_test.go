package server

import (
	"fmt"
	"strings"
	"testing"
)

const keyFile = `
# of the secondaries
key "Secondary.example.com" {
	algorithm hmac-sha256;
	secret "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"; // 27 bytes
};
key other { secret b3RoZXItc2VjcmV0; /* the order is free */ algorithm "HMAC-SHA512"; }
`

func keys(t testing.TB) Keys {
	t.Helper()
	all, err := ParseKeys(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestParseKeys(t *testing.T) {
	all := keys(t)
	if len(all) != 2 || all[0] != (Key{"secondary.example.com.", "hmac-sha256.", "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"}) || all[1] != (Key{"other.", "hmac-sha512.", "b3RoZXItc2VjcmV0"}) {
		t.Errorf("%q", all)
	}
	if k, ok := all.find("Other"); !ok || k.Name != "other." {
		t.Error("not found")
	}
	if _, ok := all.find("third"); ok {
		t.Error("found")
	}
	var many []string
	for i := range MaxKeys + 1 {
		many = append(many, fmt.Sprintf("key k%d { algorithm hmac-sha256; secret aaaa; };", i))
	}
	for text, want := range map[string]string{
		"":                       "there is none",
		"key":                    "does not begin",
		"other {":                "does not begin",
		`key "a`:                 "quote does not end",
		"/* a":                   "comment does not end",
		"key a {":                "does not end",
		"key a { algorithm x":    "does not end",
		"key a { algorithm x; }": `algorithm "x": allowed: hmac-sha224, hmac-sha256`,
		"key a { algorithm hmac-md5.sig-alg.reg.int; secret aaaa; }": "allowed",
		"key a { algorithm hmac-sha256; }":                           "no secret",
		"key a { secret aaaa; }":                                     "no algorithm",
		"key a { algorithm hmac-sha256; secret ?; }":                 "no base64",
		"key a { algorithm hmac-sha256; secret ''; }":                "no base64",
		"key a { topsecret aaaa; }":                                  "besides",
		`key "" { }`:                                                 "name of a key",
		`key a..b { }`:                                               "name of a key",
		"key a { algorithm hmac-sha256; secret aaaa; }; key A { algorithm hmac-sha256; secret aaaa; };": "twice",
		strings.Join(many, ""): "more than 256",
		"key b { ":             "does not end",
		"key a { algorithm hmac-sha256; secret aaaa; } x": "does not begin",
	} {
		if _, err := ParseKeys(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		} else if strings.Contains(err.Error(), "topsecret") {
			t.Errorf("the error tells a secret: %v", err)
		}
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add(keyFile)
	f.Add("key a { algorithm hmac-sha256; secret aaaa; }; // x")
	f.Add(`key "a { /* `)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseKeys(text)
		if (err == nil) == (len(all) == 0) {
			t.Fatalf("%d keys, %v", len(all), err)
		}
		for _, k := range all {
			if found, ok := all.find(k.Name); !ok || found != k {
				t.Fatalf("%q is not found", k.Name)
			}
		}
	})
}
