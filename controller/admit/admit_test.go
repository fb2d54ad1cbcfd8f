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
		{"www.example.test is a valid host", "www.example.test", ""},
		{"label of 63 characters + .example.test is a valid host", label63 + ".example.test", ""},
		{"label of 64 characters + .example.test is no valid host", label63 + "a.example.test", ReasonInvalidHost},
		{"label of 92 characters is no valid host", strings.Repeat("a", 92), ReasonInvalidHost},
		{"279 characters total is no valid host", strings.Repeat(label63[:30]+".", 9) + "t", ReasonInvalidHost},
		{"Www.example.test is no valid host", "Www.example.test", ReasonInvalidHost},
		{"www.example.test. is no valid host", "www.example.test.", ReasonInvalidHost},
		{"a_b.example.test is no valid host", "a_b.example.test", ReasonInvalidHost},
		{"a..b is no valid host", "a..b", ReasonInvalidHost},
		{"10.0.0.1 is a valid host", "10.0.0.1", ""},
		{"localhost is a valid host", "localhost", ""},
		{"\"\" is no valid host", "", ReasonNoHost},
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
		{"deny list, host www.allow.it: ok", &denied, "www.allow.it", ""},
		{"deny list, host www.openshift.test: ok", &denied, "www.openshift.test", ""},
		{"deny list, host open.header.test: denied", &denied, "open.header.test", isDenied},
		{"deny list, host www.open.header.test: denied", &denied, "www.open.header.test", isDenied},
		{"deny list, host franco.baresi.block.it: denied", &denied, "franco.baresi.block.it", isDenied},
		{"deny list, host openshift.org: denied", &denied, "openshift.org", isDenied},
		{"deny list, host api.openshift.org: denied", &denied, "api.openshift.org", isDenied},
		{"deny list, host xblock.it: ok", &denied, "xblock.it", ""},
		{"allow list, host www.stickshift.org: ok", &allowed, "www.stickshift.org", ""},
		{"allow list, host erno.r.kube.kates.net: ok", &allowed, "erno.r.kube.kates.net", ""},
		{"allow list, host www.open.header.test: not allowed", &allowed, "www.open.header.test", notAllowed},
		{"allow list, host drive.ottomatic.org: not allowed", &allowed, "drive.ottomatic.org", notAllowed},
		{"denied ops.openshift.org, metrics.kates.net, allowed openshift.org, kates.net, host ops.openshift.org: denied", &both, "ops.openshift.org", isDenied},
		{"denied ops.openshift.org, metrics.kates.net, allowed openshift.org, kates.net, host log.ops.openshift.org: denied", &both, "log.ops.openshift.org", isDenied},
		{"denied ops.openshift.org, metrics.kates.net, allowed openshift.org, kates.net, host int.metrics.kates.net: denied", &both, "int.metrics.kates.net", isDenied},
		{"denied ops.openshift.org, metrics.kates.net, allowed openshift.org, kates.net, host www.block.it: not allowed", &both, "www.block.it", notAllowed},
		{"denied ops.openshift.org, metrics.kates.net, allowed openshift.org, kates.net, host kates.net: ok", &both, "kates.net", ""},
		{"denied ops.openshift.org, metrics.kates.net, allowed openshift.org, kates.net, host \"\": passes this check", &both, "", "no host value was defined for the route"}, // the check itself passes
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
		{"wildcards not allowed, policy None: ok", false, "None", ""},
		{"wildcards not allowed, policy Subdomain: rejected, RouteNotAdmitted wildcard routes are not allowed", false, "Subdomain", "wildcard routes are not allowed"},
		{"wildcards allowed, policy Subdomain: ok", true, "Subdomain", ""},
		{"wildcards allowed, policy \"\": rejected, RouteNotAdmitted unknown wildcard policy", true, "", "unknown wildcard policy "},
		{"wildcards allowed, policy nono: rejected, RouteNotAdmitted unknown wildcard policy nono", true, "nono", "unknown wildcard policy nono"},
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
		{"no host, subdomain s, domain d.test: s.d.test", "", "s", Options{Domain: "d.test"}, "s.d.test"},
		{"no host, subdomain a.b, domain d.test: a.b.d.test", "", "a.b", Options{Domain: "d.test"}, "a.b.d.test"},
		{"host h.test, subdomain s, domain d.test: h.test", "h.test", "s", Options{Domain: "d.test"}, "h.test"},
		{"no host, subdomain s: \"\" -> rejected, NoHostValue", "", "s", Options{}, ""},
		{"no host, template ${name}-${namespace}.t: r-n.t", "", "", Options{HostTemplate: "${name}-${namespace}.t"}, "r-n.t"},
		{"no host, template ${name}-${namespace}.t: r-n.t no braces", "", "", Options{HostTemplate: "$name-$namespace.t"}, "r-n.t"},
		{"no host, template ${name}-${namespace}.t: r-n.t quotes", "", "", Options{HostTemplate: `"'${name}.t'"`}, "r.t"},
		{"host h.test, template ${name}.t: h.test", "h.test", "", Options{HostTemplate: "${name}.t"}, "h.test"},
		{"host h.test, template ${name}.t, override yes: r.t", "h.test", "", Options{HostTemplate: "${name}.t", OverrideHostname: true}, "r.t"},
		{"host within an override domain, by the template", "h.x.test", "", Options{HostTemplate: "${name}.t", OverrideDomains: []string{"x.test"}}, "r.t"},
		{"host within an override domain, by the template itself", "x.test", "", Options{HostTemplate: "${name}.t", OverrideDomains: []string{"x.test"}}, "r.t"},
		{"host h.y.test, template ${name}.t, override domains x.test: h.y.test", "h.y.test", "", Options{HostTemplate: "${name}.t", OverrideDomains: []string{"x.test"}}, "h.y.test"},
		{"host h.y.test, template ${name}.t, override domains x.test: h.y.test first label empty", ".x.test", "", Options{HostTemplate: "${name}.t", OverrideDomains: []string{"x.test"}}, ".x.test"},
		{"no host, subdomain s, domain d.test, template ${name}.t: s.d.test", "", "s", Options{Domain: "d.test", HostTemplate: "${name}.t"}, "s.d.test"},
		{"no host, subdomain s, domain d.test, template ${name}.t, override yes: r.t", "", "s", Options{Domain: "d.test", HostTemplate: "${name}.t", OverrideHostname: true}, "r.t"},
		{"no host, template ${bogus}.t: \"\"", "", "", Options{HostTemplate: "${bogus}.t"}, ""},
	} {
		if got := c.options.Host("n", "r", c.host, c.subdomain); got != c.want {
			t.Errorf("%s: Host(%q, %q) = %q, want %q", c.id, c.host, c.subdomain, got, c.want)
		}
	}
}
