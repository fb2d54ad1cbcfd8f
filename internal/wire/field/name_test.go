package field

import (
	"strings"
	"testing"
)

// Classes of names with a meaning for proxies, clients or pods.
var (
	framing = []string{"Content-Length", "Transfer-Encoding", "TE", "Trailer"}
	hop     = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Upgrade", "HTTP2-Settings"}
	routing = []string{"Host", ":authority", ":path", ":method", ":scheme", ":status"}
	id      = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "x_forwarded_for", "Proxy", "X-SSL", "X-SSL-Client-CN", "x_ssl_client_verify", "X-SSL-Issuer"}
	loop    = []string{"CDN-Loop", "Via"}
	other   = []string{"Cookie", "Set-Cookie", "Authorization", "WWW-Authenticate", "Proxy-Authorization", "Strict-Transport-Security", "Location", "Expect", "Date", "Content-Type", "Sec-WebSocket-Key", "Accept-Encoding", "Range", "traceparent"}
	free    = []string{"X-Session", "x-session", "Session", "X-Tenant_1", "!#$%&'*+-.^_`|~09az"}
	broken  = []string{"", " ", "a b", "a:b", "a\r\nb", "\u00fc", "a\x00", strings.Repeat("a", 1025)}
)

// TestNamesByUse checks every class of field names with every use.
func TestNamesByUse(t *testing.T) {
	changes := []Use{SetRequest, AddRequest, DeleteRequest, ChangeResponse}
	for _, c := range []struct {
		class   string
		names   []string
		refused []Use // besides Carry
		carry   bool  // may be carried
	}{
		{"framing", framing, changes, false},
		{"hop-by-hop", hop, changes, false},
		{"routing", routing[:1], []Use{AddRequest, DeleteRequest}, false},
		{"pseudo-fields", routing[1:], changes, false},
		{"identity", id, nil, false}, // the router sends pods these fields about clients
		{"loops", loop[:1], []Use{SetRequest, AddRequest, DeleteRequest}, false},
		{"other proxies' loops", loop[1:], []Use{SetRequest, DeleteRequest}, false},
		{"expectations", []string{"Expect"}, []Use{SetRequest, AddRequest, DeleteRequest}, false},
		{"others that HTTP defines", other, []Use{}, false},
		{"names without a meaning", free, nil, true},
		{"no names", broken, changes, false},
	} {
		for _, name := range c.names {
			for _, use := range changes {
				want := true
				for _, r := range c.refused {
					want = want && r != use
				}
				if name == "Expect" && use != ChangeResponse {
					want = false
				}
				for _, spelling := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
					if err := CheckName(use, spelling); (err == nil) != want {
						t.Errorf("%s: use %d of %.40q: %v", c.class, use, spelling, err)
					}
				}
			}
			for _, spelling := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
				made, err := NewCarriedName(spelling)
				if (err == nil) != c.carry || made.IsSet() != c.carry || c.carry && made.String() != strings.ToLower(name) {
					t.Errorf("%s: %.40q is carried as %q: %v", c.class, spelling, made, err)
				}
				if err != nil && IsToken(spelling) && !strings.Contains(err.Error(), spelling) {
					t.Errorf("%s: the error does not name %q: %v", c.class, spelling, err)
				}
			}
		}
	}
}

// FuzzCheckName checks that every accepted name is a token and that letter case makes no
// difference.
func FuzzCheckName(f *testing.F) {
	for _, list := range [][]string{framing, hop, routing, id, loop, other, free, broken} {
		for _, name := range list {
			f.Add(uint8(Carry), name)
			f.Add(uint8(SetRequest), name)
		}
	}
	f.Fuzz(func(t *testing.T, use uint8, name string) {
		u := Use(use) % (Carry + 1)
		err := CheckName(u, name)
		if err == nil && (!IsToken(name) || strings.ContainsAny(name, " \t\r\n:,;")) {
			t.Errorf("use %d of %q", u, name)
		}
		if other := CheckName(u, strings.ToUpper(name)); IsToken(name) && (err == nil) != (other == nil) {
			t.Errorf("use %d of %q depends on letter case: %v, %v", u, name, err, other)
		}
	})
}
