package redirect

import (
	"strings"
	"testing"

	"turnout/internal/wire/field"
	"turnout/internal/work"
	"turnout/routing/rewrite"
)

func TestLocation(t *testing.T) {
	for _, c := range []struct {
		what                    string
		target                  Target
		secure                  bool
		host, path, query, want string
	}{
		{"nothing else", Target{}, false, "a.test", "/p", "?q", "http://a.test/p?q"},
		{"nothing else, over TLS", Target{}, true, "a.test", "/p", "", "https://a.test/p"},
		{"to https", Target{Scheme: "https"}, false, "a.test", "/p", "?q", "https://a.test/p?q"},
		{"to http", Target{Scheme: "http"}, true, "a.test", "/p", "", "http://a.test/p"},
		{"host", Target{URL: rewrite.URL{Host: "b.test"}}, false, "a.test", "/", "", "http://b.test/"},
		{"port", Target{Port: 8080}, false, "a.test", "/", "", "http://a.test:8080/"},
		{"usual port", Target{Port: 80}, false, "a.test", "/", "", "http://a.test/"},
		{"usual port of TLS", Target{Port: 443}, true, "a.test", "/", "", "https://a.test/"},
		{"usual port of the other scheme", Target{Scheme: "https", Port: 80}, false, "a.test", "/", "", "https://a.test:80/"},
		{"path", Target{URL: rewrite.URL{Kind: rewrite.ReplacePath, Path: "/x"}}, false, "a.test", "/p", "?q", "http://a.test/x?q"},
		{"prefix", Target{URL: rewrite.URL{Kind: rewrite.ReplacePrefix, Prefix: "/p", Path: "/x"}}, false, "a.test", "/p/r", "", "http://a.test/x/r"},
		{"no path", Target{Scheme: "https"}, false, "a.test", "*", "?q", "https://a.test/"},
		{"an address of IPv6", Target{Scheme: "https", Port: 8443}, false, "[::1]", "/", "", "https://[::1]:8443/"},
	} {
		r, err := New(c.target)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if got, ok := r.Location(c.secure, []byte(c.host), []byte(c.path), []byte(c.query), &field.Arena{}, 100, new(work.Of(work.Request))); !ok || string(got) != c.want {
			t.Errorf("%s: %s (%t), want %s", c.what, got, ok, c.want)
		}
	}
	for status, lasting := range map[int]bool{0: false, 301: true, 302: false, 303: false, 307: false, 308: true} {
		if r, err := New(Target{Status: status}); err != nil || r.Lasting() != lasting || r.Status() != max(status, 302) && status != 301 {
			t.Errorf("status %d: %v", status, err)
		}
	}
	for _, bad := range []Target{{Status: 200}, {Scheme: "ftp"}, {Port: 65536}, {Port: -1}, {URL: rewrite.URL{Host: "a b"}}} {
		if _, err := New(bad); err == nil || !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	long, err := New(Target{URL: rewrite.URL{Kind: rewrite.ReplacePath, Path: "/" + strings.Repeat("x", 200)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := long.Location(false, nil, []byte("/"), nil, &field.Arena{}, 100, new(work.Of(work.Request))); ok {
		t.Error("a path grows beyond the bound")
	}
}

// TestLocationAllocatesNothing: what it makes lies in the arena.
func TestLocationAllocatesNothing(t *testing.T) {
	r, err := New(Target{Scheme: "https", Port: 8443, URL: rewrite.URL{Host: "b.test", Kind: rewrite.ReplacePrefix, Prefix: "/p", Path: "/x"}})
	if err != nil {
		t.Fatal(err)
	}
	arena, host, path, query := &field.Arena{}, []byte("a.test"), []byte("/p/r"), []byte("?q")
	r.Location(false, host, path, query, arena, 100, new(work.Of(work.Request)))
	if n := testing.AllocsPerRun(100, func() {
		arena.Reset()
		if _, ok := r.Location(false, host, path, query, arena, 100, new(work.Of(work.Request))); !ok {
			t.Error("no location")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
