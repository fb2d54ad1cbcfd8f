package rewrite

import (
	"strings"
	"testing"

	"turnout/internal/wire/field"
	"turnout/internal/work"
)

func TestURL(t *testing.T) {
	for _, c := range []struct {
		what, path, want string
		url              URL
	}{
		{"nothing", "/a/b", "/a/b", URL{}},
		{"the whole path", "/a/b", "/one", URL{Kind: ReplacePath, Path: "/one"}},
		{"the whole path, empty", "/a/b", "/", URL{Kind: ReplacePath}},
		{"no path", "*", "*", URL{Kind: ReplacePath, Path: "/one"}},
		{"what looks like a reference", "/a", `/%5C1$1%%`, URL{Kind: ReplacePath, Path: `/%5C1$1%%`}},
		{"blanks are encoded", "/a", "/b%20c", URL{Kind: ReplacePath, Path: "/b c"}},
		{"prefix", "/foo/bar", "/xyz/bar", URL{Kind: ReplacePrefix, Prefix: "/foo", Path: "/xyz"}},
		{"prefix by a path with a slash", "/foo/bar", "/xyz/bar", URL{Kind: ReplacePrefix, Prefix: "/foo", Path: "/xyz/"}},
		{"prefix with a slash", "/foo/bar", "/xyz/bar", URL{Kind: ReplacePrefix, Prefix: "/foo/", Path: "/xyz"}},
		{"both with a slash", "/foo/bar", "/xyz/bar", URL{Kind: ReplacePrefix, Prefix: "/foo/", Path: "/xyz/"}},
		{"nothing behind it", "/foo", "/xyz", URL{Kind: ReplacePrefix, Prefix: "/foo", Path: "/xyz"}},
		{"a slash behind it", "/foo/", "/xyz/", URL{Kind: ReplacePrefix, Prefix: "/foo", Path: "/xyz"}},
		{"by nothing", "/foo/bar", "/bar", URL{Kind: ReplacePrefix, Prefix: "/foo"}},
		{"by nothing, a slash behind it", "/foo/", "/", URL{Kind: ReplacePrefix, Prefix: "/foo"}},
		{"by nothing, nothing behind it", "/foo", "/", URL{Kind: ReplacePrefix, Prefix: "/foo", Path: "/"}},
		{"of everything", "/a", "/xyz/a", URL{Kind: ReplacePrefix, Prefix: "/", Path: "/xyz"}},
		{"no whole segment", "/foobar", "/foobar", URL{Kind: ReplacePrefix, Prefix: "/foo", Path: "/xyz"}},
		{"another path", "/bar", "/bar", URL{Kind: ReplacePrefix, Prefix: "/foo", Path: "/xyz"}},
	} {
		r, err := New(c.url)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if got, ok := r.Apply([]byte(c.path), &field.Arena{}, 100, new(work.Of(work.Request))); !ok || string(got) != c.want || r.Host() != nil {
			t.Errorf("%s: %s becomes %s (%t), want %s", c.what, c.path, got, ok, c.want)
		}
	}
	long, err := New(URL{Kind: ReplacePrefix, Prefix: "/p", Path: "/" + strings.Repeat("x", 200)})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := long.Apply([]byte("/p"), &field.Arena{}, 100, new(work.Of(work.Request))); ok {
		t.Error("a path grows beyond the bound")
	}
	if r, err := New(URL{Host: "other.test:8080"}); err != nil || string(r.Host()) != "other.test:8080" {
		t.Errorf("host: %v", err)
	}
	for _, bad := range []URL{
		{Host: "a b"}, {Host: "a\r\nx: y"}, {Host: "user@a"}, {Host: "a/b"}, {Kind: ReplacePath, Path: "a"}, {Kind: ReplacePath, Path: "/a?b"}, {Kind: ReplacePath, Path: "/a#b"},
		{Kind: ReplacePrefix, Path: "/" + strings.Repeat("a", MaxTarget)},
	} {
		if _, err := New(bad); err == nil || !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
