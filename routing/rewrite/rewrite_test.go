package rewrite

import (
	"bytes"
	"strings"
	"testing"

	"turnout/internal/wire/field"
	"turnout/internal/work"
)

// TestSanitize: what a target replaces by. A single quote that is kept is written '\” there, for
// the configuration file.
func TestSanitize(t *testing.T) {
	for _, c := range []struct{ id, in, want string }{
		{"target %%foo replaces by %%foo\\1", `%%foo`, `%%foo\1`},
		{"target %%%foo replaces by %%%%%%foo\\1", `%%%foo`, `%%%%%%foo\1`},
		{"target %%%%foo replaces by %%%%foo\\1", `%%%%foo`, `%%%%foo\1`},
		{"target 'foo'foo\\' replaces by foofoo'\\''\\1", `'foo'foo\'`, `foofoo'\''\1`},
		{"target \\\\foo\\\\ replaces by \\foo\\\\1", `\\foo\\`, `\foo\\1`},
		{"target \\\\\\foo\\\\\\ replaces by \\\\foo\\\\\\1", `\\\foo\\\`, `\\foo\\\1`},
		{"target \\\\\\\\foo\\\\\\\\ replaces by \\\\foo\\\\\\1", `\\\\foo\\\\`, `\\foo\\\1`},
		{"target # foo # foo replaces by \"\"", `# foo # foo`, ``},
		{"target foo # foo replaces by foo", `foo # foo`, `foo `},
		{"target \"foo\"foo\\\" replaces by foofoo\"\\1", `"foo"foo\"`, `foofoo"\1`},
		{"target \\\\foo\\\"foo\"\\#foo\\foo'foo\\'#foo replaces by \\foo\"foo#foofoofoo'\\''", `\\foo\"foo"\#foo\foo'foo\'#foo`, `\foo"foo#foofoofoo'\''`},
	} {
		want := strings.ReplaceAll(c.want, `'\''`, `'`)
		if got := Sanitize(c.in); got != want {
			t.Errorf("%s: %q, want %q", c.id, got, want)
		}
	}
}

// TestRewrite is the table of results, and what odd paths mean.
// Where the reference sends a request line that nobody can read, the target is
// percent-encoded.
func TestRewrite(t *testing.T) {
	for _, c := range []struct{ id, path, target, request, want string }{
		{"path /app with target / makes / of /app/", "/app", "/", "/app/", "/"},
		{"path /app with target / makes / of /app/", "/app", "/", "/app", "/"},
		{"path /app with target / makes /x of /app/x", "/app", "/", "/app/x", "/x"},
		{"path /app with target /v2 makes /v2/ of /app/", "/app", "/v2", "/app/", "/v2/"},
		{"", "/app", "/v2", "/app", "/v2"},
		{"path /app with target /v2 makes /v2/x?q of /app/x?q", "/app", "/v2", "/app/x", "/v2/x"},
		{"path /app/ with target /v2/ makes /v2/x of /app/x", "/app/", "/v2/", "/app/x", "/v2/x"},
		{"path /app with target /v2/ makes /v2//x of /app/x", "/app", "/v2/", "/app/x", "/v2//x"},
		{"path \"\" with target /x makes /x/ of /", "", "/x", "/", "/x/"},
		{"path \"\" with target /x makes /x/foo of /foo", "", "/x", "/foo", "/x/foo"},
		{"path /app with target /v2 # c makes /v2 of /app/x", "/app", "/v2 # c", "/app/x", "/v2%20"},
		{"path /app with target /a\"b\" makes /ab/x of /app/x", "/app", `/a"b"`, "/app/x", "/ab/x"},
		{"path /a.b with target /q makes /q/c of /a.b/c", "/a.b", "/q", "/a.b/c", "/q/c"},
		{"path /app with target /$1-0 makes /$1-0/x of /app/x", "/app", "/$1-0", "/app/x", "/$1-0/x"},
		{"path /app with target /a b makes /a b/x (invalid request line sent) of /app/x", "/app", "/a b", "/app/x", "/a%20b/x"},
		{"path / with target /z makes /zfoo of /foo", "/", "/z", "/foo", "/zfoo"},
		{"", "/", "/z", "/", "/z"},
		{"", "/", "/", "/foo", "/foo"},
		{"path /app with target // makes ///x of /app/x", "/app", "//", "/app/x", "///x"},
		{"path /app with target /v2\\\\1 makes /v2/x/x of /app/x", "/app", `/v2\\1`, "/app/x", "/v2/x/x"},
		{"", "/app", "/100%", "/app/x", "/100%/x"},
		{"", "/app", `/a"b"c`, "/app", "/abc"},
		{"path /foo is matched as /foo", "/foo", "/n", "/foo/x", "/n/x"},
		{"path /it's is matched as /it'\\''s", "/it's", "/n", "/it's/x", "/n/x"},
		{"path /foo CR LF bar is matched as /foobar", "/foo\r\nbar", "/n", "/foobar/x", "/n/x"},
		{"path ' is matched as '\\''", "/'", "/n", "/'/x", "/n/x"},
		{"path '' is matched as '\\'''\\''", "/''", "/n", "/''/x", "/n/x"},
		{"path /foo LF bar is matched as /foobar", "/foo\nbar", "/n", "/foobar/x", "/n/x"},
		{"path /it's CR LF is matched as /it'\\''s", "/it's\r\n", "/n", "/it's/x", "/n/x"},
		{"path /foo LF LF LF bar is matched as /foobar", "/foo\n\n\nbar", "/n", "/foobar/x", "/n/x"},
		{"path CR LF is matched as \"\"", "\r\n", "/n", "/x", "/n/x"},
		{"path /foo' with target / is ^/foo'/?(.*)$ -> /\\1", "/foo'", "/", "/foo'/x", "/x"},
		{"whole", "/app", `/v2\\0`, "/app/x", "/v2/app/x/x"},
		{"no group", "/app", `/v2\\7`, "/app/x", "/v2/x"},
		{"hash", "/app", `/a\#b`, "/app", "/a%23b"},
		{"brackets", "/app", "/%[src]", "/app", "/%[src]"},
		{"UTF-8", "/app", "/ü", "/app", "/%C3%BC"},
		{"asterisk", "", "/x", "*", "*"},
		{"other path", "//", "/x", "/foo", "/foo"},
	} {
		var arena field.Arena
		if got, ok := Compile(c.path, c.target).Apply([]byte(c.request), &arena, 8192, new(work.Of(work.Request))); string(got) != c.want || !ok {
			t.Errorf("%s: route %q, target %q, request %q: %q, want %q", c.id, c.path, c.target, c.request, got, c.want)
		}
	}
	for target, want := range map[string]bool{"/": true, "/v2": true, "v2": false, "": false, "http://x/": false, "/a\nb": false,
		"/" + strings.Repeat("a", MaxTarget-1): true, "/" + strings.Repeat("a", MaxTarget): false} {
		if IsTarget(target) != want {
			t.Errorf("IsTarget(%q) is not %v (path /app with target v2 is annotation ignored, path /app with target nope makes /app/x of /app/x)", target, want)
		}
	}
}

// TestGrowth: a target cannot make a path as long as it likes.
func TestGrowth(t *testing.T) {
	var arena field.Arena
	r := Compile("/app", "/"+strings.Repeat(`\\1`, 1000))
	if got, ok := r.Apply([]byte("/app/"+strings.Repeat("x", 100)), &arena, 8192, new(work.Of(work.Request))); ok {
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
		got, ok := Compile(path, target).Apply([]byte(request), &arena, 8192, new(work.Of(work.Request)))
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
