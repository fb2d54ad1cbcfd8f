package cors

import (
	"fmt"
	"strings"
	"testing"

	"turnout/internal/wire/field"
)

func fields(lines ...string) []field.Field {
	var list []field.Field
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		list = append(list, field.Field{Name: []byte(name), Value: []byte(value)})
	}
	return list
}

func show(list []field.Field) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	return b.String()
}

func TestOrigins(t *testing.T) {
	for _, c := range []struct{ allowed, yes, no string }{
		{"*", "https://a.test http://b.test:1 null", ""},
		{"https://www.foo.com", "https://www.foo.com", "http://www.foo.com https://foo.com https://www.foo.com:8443 https://www.foo.com.evil null"},
		{"HTTPS://Www.Foo.com:443", "https://www.foo.com", "https://www.foo.com:444"},
		{"http://foo.com:8080", "http://foo.com:8080", "http://foo.com http://foo.com:80801"},
		{"https://*.bar.com", "https://www.bar.com https://xpto.www.bar.com", "https://bar.com https://.bar.com https://foobar.com https://www.bar.com:8443 http://www.bar.com https://evil.test/.bar.com"},
		{"https://*.bar.com:8443", "https://www.bar.com:8443", "https://www.bar.com https://www.bar.com:443"},
		{"https://*", "https://a https://a.b.c", "http://a https://a:8443 https://"},
		{"https://*:8443", "https://a:8443", "https://a https://a:1:8443"},
		{"http://[::1]:8080", "http://[::1]:8080", "http://[::1]"},
	} {
		r, err := New(Config{Origins: []string{c.allowed}})
		if err != nil {
			t.Errorf("%s: %v", c.allowed, err)
			continue
		}
		for _, o := range strings.Fields(c.yes) {
			if !r.allows([]byte(o)) {
				t.Errorf("%s does not allow %s", c.allowed, o)
			}
		}
		for _, o := range append(strings.Fields(c.no), "") {
			if r.allows([]byte(o)) {
				t.Errorf("%s allows %q", c.allowed, o)
			}
		}
	}
}

func TestWhatCannotBeCompiled(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Origins: []string{"www.foo.com"}}, "scheme://host"},
		{Config{Origins: []string{"ftp://foo.com"}}, "scheme://host"},
		{Config{Origins: []string{"https://foo.com/"}}, "scheme://host"},
		{Config{Origins: []string{"https://a@foo.com"}}, "scheme://host"},
		{Config{Origins: []string{"https://foo.com:0"}}, "ports are"},
		{Config{Origins: []string{"https://foo.com:"}}, "ports are"},
		{Config{Origins: []string{"https://fo*.com"}}, "beginning of a host"},
		{Config{Origins: []string{"https://*foo.com"}}, "beginning of a host"},
		{Config{Origins: []string{"https://*.*.com"}}, "beginning of a host"},
		{Config{Origins: []string{"https://foo com"}}, "no URL"},
		{Config{Methods: []string{"GET, PUT"}}, "no token"},
		{Config{Headers: []string{"x\r\ny"}}, "no token"},
		{Config{Expose: []string{""}}, "no token"},
	} {
		if r, err := New(c.cfg); err == nil || r != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.cfg, err, c.want)
		}
	}
}

func TestAnswers(t *testing.T) {
	ask := []string{"origin: https://a.test", "access-control-request-method: PUT", "access-control-request-headers: x-1, x-2"}
	all := []string{"*"}
	for _, c := range []struct {
		what         string
		cfg          Config
		permit, some string // the answer to a preflight, and to another request
	}{
		{"lists", Config{Origins: []string{"https://a.test"}, Methods: []string{"GET", "OPTIONS"}, Headers: []string{"x-1", "X-2"}, Expose: []string{"x-3", "x-4"}, Credentials: true, MaxAge: 3600},
			"access-control-allow-origin: https://a.test\naccess-control-allow-credentials: true\naccess-control-expose-headers: x-3, x-4\nvary: Origin\n" +
				"access-control-allow-methods: GET, OPTIONS\naccess-control-allow-headers: x-1, X-2\naccess-control-max-age: 3600\n",
			"content-type: a\naccess-control-allow-origin: https://a.test\naccess-control-allow-credentials: true\naccess-control-expose-headers: x-3, x-4\nvary: Origin\n"},
		{"nothing but an origin", Config{Origins: []string{"https://a.test"}},
			"access-control-allow-origin: https://a.test\nvary: Origin\naccess-control-max-age: 5\n", "content-type: a\naccess-control-allow-origin: https://a.test\nvary: Origin\n"},
		{"everything", Config{Origins: all, Methods: all, Headers: all, Expose: all},
			"access-control-allow-origin: *\naccess-control-expose-headers: *\naccess-control-allow-methods: PUT\naccess-control-allow-headers: x-1, x-2\naccess-control-max-age: 5\n",
			"content-type: a\naccess-control-allow-origin: *\naccess-control-expose-headers: *\n"},
		{"everything with credentials", Config{Origins: all, Methods: all, Headers: all, Expose: all, Credentials: true},
			"access-control-allow-origin: https://a.test\naccess-control-allow-credentials: true\nvary: Origin\naccess-control-allow-methods: PUT\naccess-control-allow-headers: x-1, x-2\naccess-control-max-age: 5\n",
			"content-type: a\naccess-control-allow-origin: https://a.test\naccess-control-allow-credentials: true\nvary: Origin\n"},
		{"another origin", Config{Origins: []string{"https://b.test"}, Methods: all, Credentials: true}, "vary: Origin\n", "content-type: a\nvary: Origin\n"},
		{"no origin", Config{Methods: all}, "vary: Origin\n", "content-type: a\nvary: Origin\n"},
	} {
		r, err := New(c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(r.Permit(nil, fields(ask...))); got != c.permit {
			t.Errorf("%s: preflight\n%swant\n%s", c.what, got, c.permit)
		}
		answer := fields("content-type: a", "access-control-allow-origin: https://evil.test", "access-control-max-age: 9")
		if got := show(r.Answer(answer, []byte("https://a.test"))); got != c.some {
			t.Errorf("%s: answer\n%swant\n%s", c.what, got, c.some)
		}
	}
	r, _ := New(Config{Origins: []string{"https://a.test"}, Headers: all, Credentials: true})
	if got := show(r.Permit(nil, fields(ask[:2]...))); strings.Contains(got, "allow-headers") {
		t.Errorf("headers are allowed that nobody asked for:\n%s", got)
	}
	if got := show(r.Answer(fields("a: b"), nil)); got != "a: b\nvary: Origin\n" {
		t.Errorf("an answer to a request without an origin:\n%s", got)
	}
}

func TestPreflight(t *testing.T) {
	both := fields("origin: https://a.test", "access-control-request-method: PUT")
	if !Preflight([]byte("OPTIONS"), both) {
		t.Error("a preflight is none")
	}
	if Preflight([]byte("GET"), both) || Preflight([]byte("OPTIONS"), both[:1]) || Preflight([]byte("OPTIONS"), both[1:]) {
		t.Error("another request is a preflight")
	}
}

func TestNoAllocations(t *testing.T) {
	r, _ := New(Config{Origins: []string{"https://b.test", "https://*.a.test"}, Methods: []string{"PUT"}, Credentials: true})
	request := fields("origin: https://w.a.test", "access-control-request-method: PUT")
	out := make([]field.Field, 0, 16)
	if n := testing.AllocsPerRun(100, func() {
		out = r.Permit(out[:0], request)
		out = r.Answer(out[:0], request[0].Value)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzOrigin looks for origins that are allowed though another host says them.
func FuzzOrigin(f *testing.F) {
	f.Add("https://*.bar.com", "https://evil.test/x.bar.com")
	f.Add("http://*:8080", "http://a:8080")
	f.Add("https://a.test:443", "https://a.test")
	f.Add("*", "null")
	f.Fuzz(func(t *testing.T, allowed, from string) {
		r, err := New(Config{Origins: []string{allowed}})
		if err != nil || !r.allows([]byte(from)) || allowed == "*" {
			return
		}
		want, _ := parse(allowed)
		host, ok := strings.CutPrefix(from, want.scheme)
		if !ok || strings.Contains(host, "/") || !strings.HasSuffix(host, want.host+want.port) || !want.suffix && host != want.host {
			t.Errorf("%q allows %q", allowed, from)
		}
	})
}
