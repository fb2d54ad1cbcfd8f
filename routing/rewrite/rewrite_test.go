package rewrite

import (
	"bytes"
	"strings"
	"testing"

	"turnout/internal/wire/field"
)

// TestSanitize is section D.1. A single quote that is kept is written '\” there, for
// the configuration file.
func TestSanitize(t *testing.T) {
	for _, c := range []struct{ id, in, want string }{
		{"C121", `%%foo`, `%%foo\1`},
		{"C122", `%%%foo`, `%%%%%%foo\1`},
		{"C123", `%%%%foo`, `%%%%foo\1`},
		{"C124", `'foo'foo\'`, `foofoo'\''\1`},
		{"C126", `\\foo\\`, `\foo\\1`},
		{"C127", `\\\foo\\\`, `\\foo\\\1`},
		{"C128", `\\\\foo\\\\`, `\\foo\\\1`},
		{"C129", `# foo # foo`, ``},
		{"C131", `foo # foo`, `foo `},
		{"C132", `"foo"foo\"`, `foofoo"\1`},
		{"C133", `\\foo\"foo"\#foo\foo'foo\'#foo`, `\foo"foo#foofoofoo'\''`},
	} {
		want := strings.ReplaceAll(c.want, `'\''`, `'`)
		if got := Sanitize(c.in); got != want {
			t.Errorf("%s: %q, want %q", c.id, got, want)
		}
	}
}

// TestRewrite is section D.4 with the table of results, and what the paths of D.2 mean.
// Where the reference sends a request line that nobody can read, the target is
// percent-encoded.
func TestRewrite(t *testing.T) {
	for _, c := range []struct{ id, path, target, request, want string }{
		{"C151", "/app", "/", "/app/", "/"},
		{"C151", "/app", "/", "/app", "/"},
		{"C152", "/app", "/", "/app/x", "/x"},
		{"C156", "/app", "/v2", "/app/", "/v2/"},
		{"", "/app", "/v2", "/app", "/v2"},
		{"C157", "/app", "/v2", "/app/x", "/v2/x"},
		{"C158", "/app/", "/v2/", "/app/x", "/v2/x"},
		{"C159", "/app", "/v2/", "/app/x", "/v2//x"},
		{"C161", "", "/x", "/", "/x/"},
		{"C162", "", "/x", "/foo", "/x/foo"},
		{"C163", "/app", "/v2 # c", "/app/x", "/v2%20"},
		{"C164", "/app", `/a"b"`, "/app/x", "/ab/x"},
		{"C167", "/a.b", "/q", "/a.b/c", "/q/c"},
		{"C168", "/app", "/$1-0", "/app/x", "/$1-0/x"},
		{"C169", "/app", "/a b", "/app/x", "/a%20b/x"},
		{"C171", "/", "/z", "/foo", "/zfoo"},
		{"", "/", "/z", "/", "/z"},
		{"", "/", "/", "/foo", "/foo"},
		{"C172", "/app", "//", "/app/x", "///x"},
		{"C173", "/app", `/v2\\1`, "/app/x", "/v2/x/x"},
		{"", "/app", "/100%", "/app/x", "/100%/x"},
		{"", "/app", `/a"b"c`, "/app", "/abc"},
		{"C134", "/foo", "/n", "/foo/x", "/n/x"},
		{"C136", "/it's", "/n", "/it's/x", "/n/x"},
		{"C141", "/foo\r\nbar", "/n", "/foobar/x", "/n/x"},
		{"C137", "/'", "/n", "/'/x", "/n/x"},
		{"C138", "/''", "/n", "/''/x", "/n/x"},
		{"C139", "/foo\nbar", "/n", "/foobar/x", "/n/x"},
		{"C142", "/it's\r\n", "/n", "/it's/x", "/n/x"},
		{"C143", "/foo\n\n\nbar", "/n", "/foobar/x", "/n/x"},
		{"C144", "\r\n", "/n", "/x", "/n/x"},
		{"C147", "/foo'", "/", "/foo'/x", "/x"},
		{"whole", "/app", `/v2\\0`, "/app/x", "/v2/app/x/x"},
		{"no group", "/app", `/v2\\7`, "/app/x", "/v2/x"},
		{"hash", "/app", `/a\#b`, "/app", "/a%23b"},
		{"brackets", "/app", "/%[src]", "/app", "/%[src]"},
		{"UTF-8", "/app", "/ü", "/app", "/%C3%BC"},
		{"asterisk", "", "/x", "*", "*"},
		{"other path", "//", "/x", "/foo", "/foo"},
	} {
		var arena field.Arena
		if got, ok := Compile(c.path, c.target).Apply([]byte(c.request), &arena, 8192); string(got) != c.want || !ok {
			t.Errorf("%s: route %q, target %q, request %q: %q, want %q", c.id, c.path, c.target, c.request, got, c.want)
		}
	}
	for target, want := range map[string]bool{"/": true, "/v2": true, "v2": false, "": false, "http://x/": false, "/a\nb": false,
		"/" + strings.Repeat("a", MaxTarget-1): true, "/" + strings.Repeat("a", MaxTarget): false} {
		if IsTarget(target) != want {
			t.Errorf("IsTarget(%q) is not %v (C149, C166)", target, want)
		}
	}
}

// TestGrowth: a target cannot make a path as long as it likes.
func TestGrowth(t *testing.T) {
	var arena field.Arena
	r := Compile("/app", "/"+strings.Repeat(`\\1`, 1000))
	if got, ok := r.Apply([]byte("/app/"+strings.Repeat("x", 100)), &arena, 8192); ok {
		t.Errorf("%d bytes", len(got))
	}
}

// FuzzRewrite: whatever the annotation says, what is sent is a path that can stand in a
// request line.
func FuzzRewrite(f *testing.F) {
	for _, s := range []string{"/", "/v2", `/v2\\1`, "/a b", "/%", `/\'"#`, "/\x00", `/\\`, "/\\x41"} {
		f.Add("/app", s, "/app/x")
	}
	f.Fuzz(func(t *testing.T, path, target, request string) {
		if !IsTarget(target) || strings.ContainsFunc(request, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' }) {
			return
		}
		var arena field.Arena
		got, ok := Compile(path, target).Apply([]byte(request), &arena, 8192)
		if len(got) > len(request)+8192 {
			t.Fatalf("%d bytes, %v", len(got), ok)
		}
		if strings.HasPrefix(request, "/") && !bytes.HasPrefix(got, []byte("/")) {
			t.Fatalf("%q %q %q: %q is no path", path, target, request, got)
		}
		for _, c := range got {
			if c <= ' ' || c >= 0x7f || c == '#' {
				t.Fatalf("%q %q %q: %q", path, target, request, got)
			}
		}
	})
}
