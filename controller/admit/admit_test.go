package admit

import (
	"strings"
	"testing"
)

func TestCheckHost(t *testing.T) {
	label63 := strings.Repeat("a", 63)
	for _, c := range []struct {
		id, host string
		reason   string
	}{
		{"C316", "www.example.test", ""},
		{"C317", label63 + ".example.test", ""},
		{"C318", label63 + "a.example.test", ReasonInvalidHost},
		{"C319", strings.Repeat("a", 92), ReasonInvalidHost},
		{"C321", strings.Repeat(label63[:30]+".", 9) + "t", ReasonInvalidHost},
		{"C322", "Www.example.test", ReasonInvalidHost},
		{"C323", "www.example.test.", ReasonInvalidHost},
		{"C324", "a_b.example.test", ReasonInvalidHost},
		{"C326", "a..b", ReasonInvalidHost},
		{"C327", "10.0.0.1", ""},
		{"C328", "localhost", ""},
		{"C329", "", ReasonNoHost},
	} {
		v := CheckHost(c.host)
		if v.Reason != c.reason || v.Admitted != (c.reason == "") {
			t.Errorf("%s: CheckHost(%q) = %+v, want reason %q", c.id, c.host, v, c.reason)
		}
	}
	if got := CheckHost("").Message; got != "no host value was defined for the route" {
		t.Errorf("message without host: %q", got)
	}
	want := `host name validation errors: spec.host: Invalid value: "a_b": host must conform to DNS 952 subdomain conventions, spec.host: Invalid value: "a_b": a lowercase RFC 1123 label`
	if got := CheckHost("a_b").Message; !strings.HasPrefix(got, want) {
		t.Errorf("message of an invalid host: %q", got)
	}
}

func TestCheckDomains(t *testing.T) {
	denied := Options{DeniedDomains: []string{"open.header.test", "block.it", "openshift.org"}}
	allowed := Options{AllowedDomains: []string{"stickshift.org", "kates.net"}}
	both := Options{
		DeniedDomains:  []string{"ops.openshift.org", "metrics.kates.net"},
		AllowedDomains: []string{"openshift.org", "kates.net"},
	}
	const (
		isDenied   = "host in list of denied domains"
		notAllowed = "host not in the allowed list of domains"
	)
	for _, c := range []struct {
		id      string
		options *Options
		host    string
		message string
	}{
		{"C331", &denied, "www.allow.it", ""},
		{"C332", &denied, "www.openshift.test", ""},
		{"C333", &denied, "open.header.test", isDenied},
		{"C334", &denied, "www.open.header.test", isDenied},
		{"C336", &denied, "franco.baresi.block.it", isDenied},
		{"C337", &denied, "openshift.org", isDenied},
		{"C338", &denied, "api.openshift.org", isDenied},
		{"C339", &denied, "xblock.it", ""},
		{"C341", &allowed, "www.stickshift.org", ""},
		{"C342", &allowed, "erno.r.kube.kates.net", ""},
		{"C343", &allowed, "www.open.header.test", notAllowed},
		{"C344", &allowed, "drive.ottomatic.org", notAllowed},
		{"C346", &both, "ops.openshift.org", isDenied},
		{"C347", &both, "log.ops.openshift.org", isDenied},
		{"C348", &both, "int.metrics.kates.net", isDenied},
		{"C349", &both, "www.block.it", notAllowed},
		{"C351", &both, "kates.net", ""},
		{"C352", &both, "", "no host value was defined for the route"}, // the check itself passes
	} {
		v := c.options.Check(c.host, "None")
		if v.Message != c.message || v.Admitted != (c.message == "") {
			t.Errorf("%s: Check(%q) = %+v, want message %q", c.id, c.host, v, c.message)
		}
		if c.message != "" && c.host != "" && v.Reason != ReasonNotAdmitted {
			t.Errorf("%s: reason %q", c.id, v.Reason)
		}
	}
}

func TestCheckWildcardPolicy(t *testing.T) {
	for _, c := range []struct {
		id      string
		allow   bool
		policy  string
		message string
	}{
		{"C353", false, "None", ""},
		{"C354", false, "Subdomain", "wildcard routes are not allowed"},
		{"C355", true, "Subdomain", ""},
		{"C356", true, "", "unknown wildcard policy "},
		{"C357", true, "nono", "unknown wildcard policy nono"},
	} {
		o := Options{AllowWildcard: c.allow}
		v := o.Check("www.example.test", c.policy)
		if v.Message != c.message || v.Admitted != (c.message == "") || c.message != "" && v.Reason != ReasonNotAdmitted {
			t.Errorf("%s: %+v, want message %q", c.id, v, c.message)
		}
	}
}

func TestHost(t *testing.T) {
	for _, c := range []struct {
		id, host, subdomain string
		options             Options
		want                string
	}{
		{"C522", "", "s", Options{Domain: "d.test"}, "s.d.test"},
		{"C523", "", "a.b", Options{Domain: "d.test"}, "a.b.d.test"},
		{"C524", "h.test", "s", Options{Domain: "d.test"}, "h.test"},
		{"C526", "", "s", Options{}, ""},
		{"C527", "", "", Options{HostTemplate: "${name}-${namespace}.t"}, "r-n.t"},
		{"C527 no braces", "", "", Options{HostTemplate: "$name-$namespace.t"}, "r-n.t"},
		{"C527 quotes", "", "", Options{HostTemplate: `"'${name}.t'"`}, "r.t"},
		{"C528", "h.test", "", Options{HostTemplate: "${name}.t"}, "h.test"},
		{"C529", "h.test", "", Options{HostTemplate: "${name}.t", OverrideHostname: true}, "r.t"},
		{"C530", "h.x.test", "", Options{HostTemplate: "${name}.t", OverrideDomains: []string{"x.test"}}, "r.t"},
		{"C530 itself", "x.test", "", Options{HostTemplate: "${name}.t", OverrideDomains: []string{"x.test"}}, "r.t"},
		{"C531", "h.y.test", "", Options{HostTemplate: "${name}.t", OverrideDomains: []string{"x.test"}}, "h.y.test"},
		{"C531 first label empty", ".x.test", "", Options{HostTemplate: "${name}.t", OverrideDomains: []string{"x.test"}}, ".x.test"},
		{"C532", "", "s", Options{Domain: "d.test", HostTemplate: "${name}.t"}, "s.d.test"},
		{"C533", "", "s", Options{Domain: "d.test", HostTemplate: "${name}.t", OverrideHostname: true}, "r.t"},
		{"C534", "", "", Options{HostTemplate: "${bogus}.t"}, ""},
	} {
		if got := c.options.Host("n", "r", c.host, c.subdomain); got != c.want {
			t.Errorf("%s: Host(%q, %q) = %q, want %q", c.id, c.host, c.subdomain, got, c.want)
		}
	}
}
