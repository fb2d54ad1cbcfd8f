package proxy

import (
	"strings"
	"testing"

	"turnout/proxy/identity"
)

// TestOnlyTheRouterSaysWhoTheClientIs: what clients say in the name of the router is removed, in all its spellings; where
// clients are asked for certificates also if --mutual-tls-header-filter is off.
func TestOnlyTheRouterSaysWhoTheClientIs(t *testing.T) {
	anonymous := new(identity.Rules).Of(nil)
	sent := "x-ssl: 9, x-ssl-client-cn: admin, x_ssl_client_cn: admin, x-ssl_client-cn: admin, x_ssl: 9, x-ssl-issuer: y, x_ssl-issuer: y, x-ssl-client-subject: s, x-ssl-client-der: d"
	other := "x-ssl-other: o, x_other: p, x-sslx: q, x_ssl_client_notbeforehand: r, x: s"
	for _, c := range []struct {
		what string
		id   *identity.Identity
		keep bool
		want string // of what was sent
	}{
		{"nobody is asked", nil, false, ""},
		{"nobody is asked, fields are kept", nil, true, sent + ", "},
		{"asked", anonymous, false, ""},
		{"asked, fields are kept", anonymous, true, "x-ssl-client-subject: s, "},
	} {
		ex := &Exchange{attempts: attempts{cfg: &Config{KeepClientIdentity: c.keep}}}
		ex.client = Client{Identity: c.id}
		h := &Head{}
		for field := range strings.SplitSeq(sent+", "+other, ", ") {
			name, value, _ := strings.Cut(field, ": ")
			h.addField(name, []byte(value))
		}
		ex.stripRequest(h)
		var got []string
		for _, f := range h.Fields {
			got = append(got, string(f.Name)+": "+string(f.Value))
		}
		want := c.want + other
		if c.id != nil {
			for _, f := range c.id.Fields {
				want += ", " + string(f.Name) + ": " + string(f.Value)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", c.what, strings.Join(got, ", "), want)
		}
	}
}
