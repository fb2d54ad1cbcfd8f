package proxy

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"turnout/balancer"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// forwardedBy is what the endpoint gets of forwarded fields when a client sends sent, a line each.
func forwardedBy(t *testing.T, policy routing.ForwardedPolicy, client Client, sent ...string) string {
	t.Helper()
	return forwardedAs(t, routing.Policy{Forwarded: policy}, client, sent...)
}

// forwardedAs is forwardedBy for a whole policy.
func forwardedAs(t *testing.T, policy routing.Policy, client Client, sent ...string) string {
	t.Helper()
	spec := routing.RouteSpec{RouteKey: routing.RouteKey{Namespace: "n", Name: "r", UID: "u"}, Host: "app.test", Policy: policy}
	table, rejected := routing.Compile(routing.Options{Registry: balancer.NewRegistry()}, nil, []routing.RouteSpec{spec})
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	cfg := &Config{Clock: at(0), MaxRewrite: DefaultMaxRewrite}
	ex := &Exchange{attempts: attempts{w: &Worker{cfg: cfg}, cfg: cfg}}
	ex.client, ex.route = client, table.Match(&routing.View{Host: []byte("app.test"), Path: []byte("/")}).Route
	ex.req = &Head{Method: []byte("GET"), Authority: []byte("app.test:81"), Path: []byte("/"), Minor: 1}
	if len(sent) > 0 && strings.HasPrefix(sent[0], "host: ") {
		ex.req.Authority = []byte(strings.TrimPrefix(sent[0], "host: "))
	}
	for _, line := range sent {
		name, value, _ := strings.Cut(line, ": ")
		ex.req.Fields = append(ex.req.Fields, Field{Name: []byte(name), Value: []byte(value)})
	}
	if _, failed := ex.requestPolicy(); failed != ReasonOK {
		t.Fatal(failed)
	}
	var lines []string
	for _, f := range ex.req.Fields {
		if string(f.Name) == "cdn-loop" { // no policy changes that
			continue
		}
		lines = append(lines, strings.TrimPrefix(string(f.Name), "x-forwarded-")+"="+string(f.Value))
	}
	return strings.Join(lines, " | ")
}

// TestForwardedPolicies: every field in every policy, for addresses of both families and every protocol of the client.
func TestForwardedPolicies(t *testing.T) {
	from := func(addr string) Client {
		return Client{Addr: netip.MustParseAddrPort(addr), Local: netip.MustParseAddrPort("10.0.0.1:8080")}
	}
	v4, v6, mapped := from("192.0.2.7:1"), from("[2001:db8::7]:1"), from("[::ffff:192.0.2.7]:1")
	zoned, tls, h2, prior := from("[fe80::7%eth0]:1"), v4, v4, v4
	tls.Secure, h2.Secure, h2.Agreed, prior.Secure = true, true, protocol.HTTP2, true
	h2.Local = netip.MustParseAddrPort("[2001:db8::1]:8443")
	all := []string{
		"x-forwarded-for: 9.9.9.9", "x-forwarded-host: evil.test", "x-forwarded-port: 1", "x-forwarded-proto: ftp, wss",
		"x-forwarded-proto-version: h3", "forwarded: for=9.9.9.9",
	}
	const theirs = "for=9.9.9.9 | host=evil.test | port=1 | proto=ftp, wss | proto-version=h3 | forwarded=for=9.9.9.9"
	for _, c := range []struct {
		name   string
		policy routing.ForwardedPolicy
		client Client
		sent   []string
		want   string
	}{
		{"append", routing.ForwardedAppend, v4, nil, `host=app.test:81 | port=8080 | proto=http | forwarded=for=192.0.2.7;host="app.test:81";proto=http | for=192.0.2.7`},
		{"append, IPv6", routing.ForwardedAppend, v6, nil, `host=app.test:81 | port=8080 | proto=http | forwarded=for="[2001:db8::7]";host="app.test:81";proto=http | for=2001:db8::7`},
		{"append, IPv4 in IPv6", routing.ForwardedAppend, mapped, nil, `host=app.test:81 | port=8080 | proto=http | forwarded=for=192.0.2.7;host="app.test:81";proto=http | for=192.0.2.7`},
		{"append, a zone", routing.ForwardedAppend, zoned, nil, `host=app.test:81 | port=8080 | proto=http | forwarded=for="[fe80::7]";host="app.test:81";proto=http | for=fe80::7`},
		{"append, TLS", routing.ForwardedAppend, tls, nil, `host=app.test:81 | port=8080 | proto=https | forwarded=for=192.0.2.7;host="app.test:81";proto=https | for=192.0.2.7`},
		{"append, HTTP/2", routing.ForwardedAppend, h2, nil, `host=app.test:81 | port=8443 | proto=https | proto-version=h2 | forwarded=for=192.0.2.7;host="app.test:81";proto=https | for=192.0.2.7`},
		{"append, to what the client says", routing.ForwardedAppend, h2, all, theirs + ` | host=app.test:81 | port=8443 | proto=https | proto-version=h2 | forwarded=for=192.0.2.7;host="app.test:81";proto=https | for=192.0.2.7`},
		{"replace", routing.ForwardedReplace, v4, all, `for=192.0.2.7 | host=app.test:81 | port=8080 | proto=http | forwarded=for=192.0.2.7;host="app.test:81";proto=http`},
		{"replace, IPv6", routing.ForwardedReplace, v6, all, `for=2001:db8::7 | host=app.test:81 | port=8080 | proto=http | forwarded=for="[2001:db8::7]";host="app.test:81";proto=http`},
		{"replace, HTTP/2", routing.ForwardedReplace, h2, all, `for=192.0.2.7 | host=app.test:81 | port=8443 | proto=https | proto-version=h2 | forwarded=for=192.0.2.7;host="app.test:81";proto=https`},
		{"if-none, nothing", routing.ForwardedIfNone, v6, nil, `host=app.test:81 | port=8080 | proto=http | forwarded=for="[2001:db8::7]";host="app.test:81";proto=http | for=2001:db8::7`},
		{"if-none, all", routing.ForwardedIfNone, h2, all, theirs},
		{"if-none, all but the version", routing.ForwardedIfNone, h2, append(append([]string{}, all[:4]...), all[5]), strings.Replace(theirs, " | proto-version=h3", "", 1) + " | proto-version=h2"},
		{"if-none, the scheme of the client", routing.ForwardedIfNone, v4, all[3:4], `proto=ftp, wss | host=app.test:81 | port=8080 | forwarded=for=192.0.2.7;host="app.test:81";proto=wss | for=192.0.2.7`},
		{"if-none, only its address", routing.ForwardedIfNone, prior, all[:1], `for=9.9.9.9 | host=app.test:81 | port=8080 | proto=https | forwarded=for=192.0.2.7;host="app.test:81";proto=https`},
		{"never", routing.ForwardedNever, h2, all, theirs},
		{"never, nothing", routing.ForwardedNever, v6, nil, ""},
	} {
		if got := forwardedBy(t, c.policy, c.client, c.sent...); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestForwardedPort: a route may say the port that clients connect to, where that of the socket means nothing to anybody.
func TestForwardedPort(t *testing.T) {
	v4 := Client{Addr: netip.MustParseAddrPort("192.0.2.7:1"), Local: netip.MustParseAddrPort("10.0.0.1:20000")}
	if got := forwardedAs(t, routing.Policy{ForwardedPort: 443}, v4); !strings.Contains(got, "| port=443 |") {
		t.Error(got)
	}
}

// forwardedModel is a Forwarded element (RFC 7239 section 4) with the parameters of the router: values are tokens or
// quoted-strings, and an address of IPv6 is in brackets (section 6.1).
var forwardedModel = regexp.MustCompile(`^for=(?:[0-9.]+|"\[[0-9a-f:.]+\]")(?:;host=(` + forwardedValue + `))?;proto=(` + forwardedValue + `)$`)

const forwardedValue = "[-!#$%&'*+.^_`|~0-9A-Za-z]+|" + `"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t \x21-\x7e\x80-\xff])*"`

// TestForwardedGrammar: whatever host and scheme are, the element is of the grammar and says them.
func TestForwardedGrammar(t *testing.T) {
	v4 := Client{Addr: netip.MustParseAddrPort("192.0.2.7:1"), Local: netip.MustParseAddrPort("10.0.0.1:8080")}
	for _, c := range []struct{ host, proto, want string }{
		{"app.test", "", "host=app.test;proto=http"},
		{"a_b.test", "", "host=a_b.test;proto=http"},
		{"app.test:8443", "", `host="app.test:8443";proto=http`},
		{"[2001:db8::1]", "", `host="[2001:db8::1]";proto=http`},
		{"[2001:db8::1]:8443", "", `host="[2001:db8::1]:8443";proto=http`},
		{`a"b\c`, "", `host="a\"b\\c";proto=http`},
		{"", "", "proto=http"},
		{"app.test", "https", "host=app.test;proto=https"},
		{"app.test", `x;for="y"`, `host=app.test;proto="x;for=\"y\""`},
		{"app.test", "a, b c", `host=app.test;proto="b c"`},
		{"app.test", "a,", "host=app.test;proto=http"},
	} {
		sent := []string{"host: " + c.host}
		if c.proto != "" {
			sent = append(sent, "x-forwarded-proto: "+c.proto)
		}
		_, got, _ := strings.Cut(forwardedBy(t, routing.ForwardedIfNone, v4, sent...), "forwarded=")
		got, _, _ = strings.Cut(got, " | ")
		if want := "for=192.0.2.7;" + c.want; got != want || !forwardedModel.MatchString(got) {
			t.Errorf("host %q, scheme %q: %s, want %s", c.host, c.proto, got, want)
		}
	}
}

// FuzzForwardedValue: a value is a token or a quoted-string that says the same.
func FuzzForwardedValue(f *testing.F) {
	for _, s := range []string{"a", "a:1", "", `"`, `\`, "[::1]", "a b", "~!|`^_*", "\xff\t"} {
		f.Add([]byte(s))
	}
	value, escaped := regexp.MustCompile(`^(?:`+forwardedValue+`)$`), regexp.MustCompile(`\\(.)`)
	f.Fuzz(func(t *testing.T, said []byte) {
		var clean, asRunes []rune // a rune per byte: that is what patterns match
		for _, c := range said {
			if c >= ' ' && c != 0x7f || c == '\t' {
				clean = append(clean, rune(c))
			}
		}
		raw := make([]byte, len(clean))
		for i, r := range clean {
			raw[i] = byte(r)
		}
		for _, c := range appendValue(nil, raw) {
			asRunes = append(asRunes, rune(c))
		}
		got := string(asRunes)
		if !value.MatchString(got) {
			t.Fatalf("%q gives %s", raw, got)
		}
		if inner, ok := strings.CutPrefix(got, `"`); ok {
			got = escaped.ReplaceAllString(strings.TrimSuffix(inner, `"`), "$1")
		}
		if got != string(clean) {
			t.Fatalf("%q is read as %q", raw, got)
		}
	})
}
