package translate

import (
	"fmt"
	"strings"
	"testing"

	"turnout/internal/wire/field"
	"turnout/internal/work"
)

// TestRedirectTo: where requests for http://h.test/a?q are sent, and what is said about addresses that cannot be used.
func TestRedirectTo(t *testing.T) {
	for _, c := range []struct {
		to, status string
		want       string // "" = nowhere
		notes      int
	}{
		{"https://new.test", "", "302 https://new.test/a?q", 0},
		{"https://new.test/", "301", "301 https://new.test/?q", 0},
		{"http://new.test:8080/x/%20y", "308", "308 http://new.test:8080/x/%20y?q", 0},
		{"https://new.test:443", "303", "303 https://new.test/a?q", 0},
		{"https://[2001:db8::1]:8443/", "307", "307 https://[2001:db8::1]:8443/?q", 0},
		{"https://new.test", "300", "302 https://new.test/a?q", 1},
		{"https://new.test", "0301", "302 https://new.test/a?q", 1},
		{"", "301", "", 1},
		{"new.test", "", "", 1},
		{"/path", "", "", 1},
		{"//new.test/", "", "", 1},
		{"javascript://new.test/", "", "", 1},
		{"HTTPS://new.test/", "", "", 1},
		{"https://", "", "", 1},
		{"https://user:secret@new.test/", "", "", 1},
		{"https://new.test?x", "", "", 1},
		{"https://new.test/?x", "", "", 1},
		{"https://new.test/#x", "", "", 1},
		{"https://new.test/a b", "", "", 1},
		{"https://new.test:0/", "", "", 1},
		{"https://new.test:70000/", "", "", 1},
		{"https://new.test/\r\nset-cookie: a=b", "", "", 1},
		{"https://new.test/" + strings.Repeat("x", maxRedirect), "", "", 1},
	} {
		annotations := []string{annotationRedirect, c.to}
		if c.status != "" {
			annotations = append(annotations, annotationRedirectStatus, c.status)
		}
		got := translated(t, Options{}, terminated("", "", annotations...))
		said := ""
		if r := got.Spec.Policy.Redirect; r != nil {
			location, _ := r.Location(false, []byte("h.test"), []byte("/a"), []byte("?q"), new(field.Arena), 8192, new(work.Of(work.Request)))
			said = fmt.Sprintf("%d %s", r.Status(), location)
		}
		if said != c.want || len(got.Notes) != c.notes {
			t.Errorf("%.100q, status %s: %q, want %q; notes %q", c.to, c.status, said, c.want, got.Notes)
		}
		if strings.Contains(strings.Join(got.Notes, " "), "secret") {
			t.Errorf("%q: a password is shown: %q", c.to, got.Notes)
		}
	}
	if got := translated(t, Options{}, terminated("edge", "", annotationRedirectStatus, "301")); len(got.Notes) != 1 {
		t.Errorf("a status alone: %q", got.Notes)
	}
	if got := translated(t, Options{}, terminated("passthrough", "", annotationRedirect, "https://new.test", annotationUpstreamHost, "x")); got.Spec.Policy.Redirect != nil || len(got.Notes) != 2 {
		t.Errorf("passthrough: %v, %q", got.Spec.Policy.Redirect, got.Notes)
	}
}

// TestUpstreamHost: endpoints get another host, beside another path or alone.
func TestUpstreamHost(t *testing.T) {
	for _, c := range []struct {
		host, target string
		want         string // host and what becomes of /app/x
		notes        int
	}{
		{"in.test", "", "in.test /app/x", 0},
		{"in.test:8443", "/v2", "in.test:8443 /v2/x", 0},
		{"[::1]:80", "", "[::1]:80 /app/x", 0},
		{"", "/v2", " /v2/x", 1},
		{"in.test/", "/v2", " /v2/x", 1},
		{"in test", "", "", 1},
		{"in.test\r\nx: y", "", "", 1},
		{"in.test:", "", "", 1},
		{"in.test", "no path", "in.test /app/x", 1},
		{strings.Repeat("x", 256), "", "", 1},
	} {
		r := terminated("edge", "", annotationUpstreamHost, c.host)
		r.Spec.Path = "/app"
		if c.target != "" {
			r.Annotations[annotationRewrite] = c.target
		}
		got, said := translated(t, Options{}, r), ""
		if rule := got.Spec.Policy.Rewrite; rule != nil {
			path, _ := rule.Apply([]byte("/app/x"), new(field.Arena), 8192, new(work.Of(work.Request)))
			said = string(rule.Host()) + " " + string(path)
		}
		if said != c.want || len(got.Notes) != c.notes {
			t.Errorf("%.100q, target %q: %q, want %q; notes %q", c.host, c.target, said, c.want, got.Notes)
		}
	}
}

// FuzzRedirect: whatever an address says, what clients are told is a line of printable characters that begins as the address does.
func FuzzRedirect(f *testing.F) {
	for _, s := range []string{"https://a.test", "http://a.test:80/x", "https://[::1]/", "https://a.test/%zz", "https://a.test/\n", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := translated(t, Options{}, terminated("", "", annotationRedirect, text))
		r := got.Spec.Policy.Redirect
		if r == nil {
			if len(got.Notes) == 0 {
				t.Fatalf("%q: neither a redirect nor a note", text)
			}
			return
		}
		location, ok := r.Location(false, []byte("h.test"), []byte("/"), nil, new(field.Arena), 1<<16, new(work.Of(work.Request)))
		if !ok || strings.ContainsFunc(string(location), func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			t.Fatalf("%q leads to %q", text, location)
		}
		if !strings.HasPrefix(string(location), "http://") && !strings.HasPrefix(string(location), "https://") {
			t.Fatalf("%q leads to %q", text, location)
		}
	})
}
