package option

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

func TestParseTimespec(t *testing.T) {
	good := func(in string, want time.Duration) {
		t.Helper()
		if got, err := ParseTimespec(in); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", in, got, err, want)
		}
	}
	bad := func(in string) {
		t.Helper()
		if got, err := ParseTimespec(in); err == nil {
			t.Errorf("%q: accepted as %v", in, got)
		}
	}
	good("1us", time.Microsecond)
	good("5500", 5500*time.Millisecond)
	good("5500ms", 5500*time.Millisecond)
	good("30s", 30*time.Second)
	good("2m", 2*time.Minute)
	good("1h", time.Hour)
	good("3d", 72*time.Hour)
	good("2147483647", maxTimespec)
	good("2147483648ms", maxTimespec)
	good("25d", maxTimespec)
	good("99999999999999999999d", maxTimespec)
	for _, in := range []string{"", "0", "0s", "01s", "-1s", "+1s", "1.5s", "1m30s", " 1s", "1s ", "1 s", "s", "1S", "1w", "1s\n"} {
		bad(in)
	}
}

func TestParseBool(t *testing.T) {
	for _, in := range []string{"1", "t", "T", "TRUE", "true", "True"} {
		if v, err := ParseBool(in); err != nil || !v {
			t.Errorf("%q: %v %v", in, v, err)
		}
	}
	for _, in := range []string{"0", "f", "F", "FALSE", "false", "False"} {
		if v, err := ParseBool(in); err != nil || v {
			t.Errorf("%q: %v %v", in, v, err)
		}
	}
	for _, in := range []string{"", "yes", "on", "enabled", " true", "tRUE", "2"} {
		if _, err := ParseBool(in); err == nil {
			t.Errorf("%q: accepted", in)
		}
	}
}

func TestParseListenAddr(t *testing.T) {
	for in, want := range map[string]string{
		":80": ":80", "0.0.0.0:80": "0.0.0.0:80", "127.0.0.1:0": "127.0.0.1:0", "[::]:443": "[::]:443",
		"[::1]:65535": "[::1]:65535", "localhost:8080": "127.0.0.1:8080",
	} {
		if got, err := ParseListenAddr(in); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", "80", "127.0.0.1", "::1:80", ":", ":http", ":65536", ":-1", "example.com:80", "256.0.0.1:80"} {
		if got, err := ParseListenAddr(in); err == nil {
			t.Errorf("%q: accepted as %q", in, got)
		}
	}
}

func TestParsePrefixes(t *testing.T) {
	for in, want := range map[string]string{
		"": "[]", "10.1.2.3/8": "[10.0.0.0/8]", "192.0.2.1, 2001:db8::/32,": "[192.0.2.1/32 2001:db8::/32]",
		"10.0.0.0/33": "error", "fe80::1%eth0": "error", "proxy.test": "error", "10.0.0.1 10.0.0.2": "error",
	} {
		got, err := ParsePrefixes(in)
		if text := fmt.Sprint(got); (err != nil) != (want == "error") || err == nil && text != want {
			t.Errorf("%q: %v, %v, want %s", in, got, err, want)
		}
	}
}

func TestParseSmallThings(t *testing.T) {
	if got := ParseList(" a, ,b,,c "); !reflect.DeepEqual(got, []string{"a", "b", "c"}) {
		t.Error(got)
	}
	refused := func(what, in string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s accepts %q", what, in)
		}
	}
	for _, in := range []string{"-1", "65536", "http", "+80", "8 0", ""} {
		_, err := ParsePort(in)
		refused("port", in, err)
	}
	for _, in := range []string{"-1", "1025", "two", ""} {
		_, err := ParseThreads(in)
		refused("threads", in, err)
	}
	for _, in := range []string{"a b", "ä", "a;b", "a="} {
		_, err := ParseCookieName(in)
		refused("cookie name", in, err)
	}
	for _, in := range []string{"Router.example.com", "a..b", "-a.b", "10.0.0.1", "a_b", "a.b."} {
		_, err := ParseDNSName(in)
		refused("DNS name", in, err)
	}
	if _, err := ParseDNSName("router-1.apps.example.com"); err != nil {
		t.Error(err)
	}
	for _, in := range []string{"0", "-1", "x", "1s", "+3"} {
		_, err := ParseSeconds(in)
		refused("seconds", in, err)
	}
	for _, in := range []string{"-1s", "45", "x"} {
		_, err := ParseDelay(in)
		refused("delay", in, err)
	}
}

func TestParseTypes(t *testing.T) {
	for text, want := range map[string]string{
		"text/html":                 "text/html",
		" text/html\t text/css ":    "text/html text/css",
		`"text/css; charset=utf-8"`: "text/css",
		`text/html "application/json; a=\"b c\"" text/css;charset=utf-8`: "text/html application/json text/css",
		"": "",
	} {
		if got, err := ParseTypes(text); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"text/html css", "text/", "/html", "text/html,text/css", `"text/html`, `"text/html"text`, `""`, `text"/html"`} {
		if got, err := ParseTypes(text); err == nil {
			t.Errorf("%s is taken for %q", text, got)
		}
	}
}

func TestParseConnections(t *testing.T) {
	for text, want := range map[string]int{"50000": 50000, "0": 0, "-1": 0, "auto": 0, "+7": 7} {
		if n, err := ParseConnections(text); err != nil || n != want {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"many", "1.5", "99999999999999999999"} {
		if _, err := ParseConnections(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestShown(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		"30s":                             "30s",
		"http://proxy:3128":               "http://proxy:3128",
		"http://ann:PLANTED@proxy:3128/":  "http://xxxxx@proxy:3128/",
		"https://PLANTED@proxy":           "https://xxxxx@proxy",
		"ann:PLANTED@proxy:3128":          "xxxxx@proxy:3128",
		"http://ann:PLAN@TED/x@proxy":     "http://xxxxx@TED/x@proxy",
		"ann:PLAN@TED/PLANTED@proxy:3128": "xxxxx@proxy:3128",
		"/etc/pki/a@b":                    "/etc/pki/a@b",
		"x-user:a-action:Set":             "x-user:a-action:Set",
	} {
		if got := (&Option{}).shown(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
		if got := (&Option{Secret: true}).shown(in); in != "" && got != hidden {
			t.Errorf("%q, which is secret, is shown as %q", in, got)
		}
	}
}
