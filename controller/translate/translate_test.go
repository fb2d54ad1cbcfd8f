package translate

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"turnout/balancer"
	"turnout/controller/endpoints"
	"turnout/internal/certchain"
	"turnout/internal/target"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/wire/field"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// TestParseTimespec: times as they are written.
func TestParseTimespec(t *testing.T) {
	for _, c := range []struct {
		id, in string
		want   time.Duration
		err    error
	}{
		{"time 1m (leading blank) is an error of syntax", " 1m", 0, ErrTimespecSyntax}, {"time 1m (trailing blank) is an error of syntax", "1m ", 0, ErrTimespecSyntax}, {"time 1 m is an error of syntax", "1 m", 0, ErrTimespecSyntax},
		{"time 0 is an error of syntax", "0", 0, ErrTimespecSyntax}, {"time \"\" is an error of syntax", "", 0, ErrTimespecSyntax}, {"time +100 is an error of syntax", "+100", 0, ErrTimespecSyntax},
		{"time -100 is an error of syntax", "-100", 0, ErrTimespecSyntax}, {"time -1us is an error of syntax", "-1us", 0, ErrTimespecSyntax}, {"time 123ns is an error of syntax", "123ns", 0, ErrTimespecSyntax},
		{"time invalid is an error of syntax", "invalid", 0, ErrTimespecSyntax}, {"time 1 is 1 ms", "1", time.Millisecond, nil}, {"time 1us is 1 us", "1us", time.Microsecond, nil},
		{"time 1s is 1 s", "1s", time.Second, nil}, {"time 1m is 60 s", "1m", time.Minute, nil}, {"time 1h is 3600 s", "1h", time.Hour, nil},
		{"time 1d is 86400 s", "1d", 24 * time.Hour, nil}, {"time 9223372036854ms is valid", "9223372036854ms", 9223372036854 * time.Millisecond, nil},
		{"time 9223372036s is valid", "9223372036s", 9223372036 * time.Second, nil}, {"time 153722867m is valid", "153722867m", 153722867 * time.Minute, nil},
		{"time 2562047h is valid", "2562047h", 2562047 * time.Hour, nil}, {"time 9223372036854776us is an overflow", "9223372036854776us", 0, ErrTimespecRange},
		{"time 9223372036855ms is an overflow", "9223372036855ms", 0, ErrTimespecRange}, {"time 9223372037s is an overflow", "9223372037s", 0, ErrTimespecRange},
		{"time 153722868m is an overflow", "153722868m", 0, ErrTimespecRange}, {"time 106752d is an overflow", "106752d", 0, ErrTimespecRange},
		{"time 18446744073709551615us is an overflow", "18446744073709551615us", 0, ErrTimespecRange}, {"leading zero", "01s", 0, ErrTimespecSyntax},
	} {
		if got, err := ParseTimespec(c.in); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: ParseTimespec(%q) = %v, %v, want %v, %v", c.id, c.in, got, err, c.want, c.err)
		}
	}
}

// TestClipTimespec: times as they are used; 0 = not a time.
func TestClipTimespec(t *testing.T) {
	day := 24 * time.Hour
	for _, c := range []struct {
		id, in string
		want   time.Duration
	}{
		{"time \"\" is none", "", 0}, {"time s is none", "s", 0}, {"time 01s is none", "01s", 0}, {"time 1.5.8.9 is none", "1.5.8.9", 0}, {"time 1.5s is none", "1.5s", 0}, {"time +-+ is none", "+-+", 0},
		{"time 1d12h is none", "1d12h", 0}, {"time foo is none", "foo", 0}, {"time 2562047.99h is none", "2562047.99h", 0}, {"time 10 is 10 ms", "10", 10 * time.Millisecond},
		{"time 10d is used as it is", "10d", 10 * day}, {"time 24d is used as it is", "24d", 24 * day}, {"time 2147483647ms is used as it is", "2147483647ms", MaxTimespec}, {"time 25d is cut to 2147483647ms", "25d", MaxTimespec},
		{"time 1000h is cut to 2147483647ms", "1000h", MaxTimespec}, {"time 2147483648 is cut to 2147483647ms", "2147483648", MaxTimespec}, {"time 9223372036855ms is cut to 2147483647ms", "9223372036855ms", MaxTimespec},
		{"time 9223372036854776us is cut to 2147483647ms", "9223372036854776us", MaxTimespec}, {"time 922337203685477581ms is cut to 2147483647ms", "922337203685477581ms", MaxTimespec},
		{"time 9223372036854775807 is cut to 2147483647ms", "9223372036854775807", MaxTimespec}, {"time 9999999999999999 is cut to 2147483647ms", "9999999999999999", MaxTimespec},
	} {
		if got, ok := ClipTimespec(c.in); got != c.want || ok != (c.want != 0) {
			t.Errorf("%s: ClipTimespec(%q) = %v, %v, want %v", c.id, c.in, got, ok, c.want)
		}
	}
}

// TestHSTS is the table of the annotation.
func TestHSTS(t *testing.T) {
	for value, want := range map[string]bool{
		"max-age=99999;includeSubDomains": true, "max-age=99999 ;  includesubdomains;  PREload": true, `max-age="99999"`: true,
		`max-age  =  "99999"`: true, "max-age=99999;includesubdomains;preload;wrongdirective": false,
		"max-age=99999;includesubdomain": false, "max-age=1;": false,
		"max-age=31536000;preload;includeSubDomains": true, "includeSubDomains;max-age=31536000;preload": true,
		"MAX-AGE=1;IncludeSubdomains": true, "max-age = 0 ; preload": true, "max-age=0": true,
		"max-age=31536000,includeSubDomains": false, "max-age=-1": false, "max-age=abc": false, "includeSubDomains": false,
		" max-age=1": false, "max-age=1 ": false, "max-age=1 ; foo": false, "": false, `max-age="1`: false, "preload;preload;max-age=1": true,
		"preload max-age=1": false, "max-age=1;preload;max-age=2": false,
	} {
		if got := isHSTS(value); got != want {
			t.Errorf("isHSTS(%q) = %v", value, got)
		}
	}
}

func TestCookieName(t *testing.T) {
	for id, c := range map[string][3]string{
		"route ns1:plain: cookie name 93e7b2b447b1e4262f3ceab034ef62c9": {"ns1", "plain", "93e7b2b447b1e4262f3ceab034ef62c9"},
		"route ns1:rw: cookie name 0faa8e455f815c400bff5790a925c125":    {"ns1", "rw", "0faa8e455f815c400bff5790a925c125"},
	} {
		if got := CookieName(c[0], c[1]); got != c[2] {
			t.Errorf("%s: %s", id, got)
		}
	}
}

// terminated returns a route of ns/r with a tls section, none for "".
func terminated(termination, policy string, annotations ...string) *routev1.Route {
	r := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", UID: "u"}}
	r.Spec.To = routev1.RouteTargetReference{Kind: "Service", Name: "a", Weight: new(int32)}
	*r.Spec.To.Weight = 100
	r.Spec.WildcardPolicy = routev1.WildcardPolicyNone
	if termination != "" {
		r.Spec.TLS = &routev1.TLSConfig{
			Termination:                   routev1.TLSTerminationType(termination),
			InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyType(policy),
		}
	}
	r.Annotations = make(map[string]string)
	for i := 0; i < len(annotations); i += 2 {
		r.Annotations[annotations[i]] = annotations[i+1]
	}
	return r
}

func translator(t *testing.T, o Options) *Translator {
	t.Helper()
	tr, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// one is a service with one endpoint, whose name it takes.
func one(name string) *endpoints.Set {
	addr := testaddr.Parse("10.0.0.1:8080")
	return &endpoints.Set{Service: name, Endpoints: []endpoints.Endpoint{{ID: "ept:" + name, Addr: addr, Port: "http", H2C: true}}}
}

func translated(t *testing.T, o Options, r *routev1.Route) *Result {
	t.Helper()
	return translator(t, o).Route(Input{Route: r, Host: "h.test", TLS: r.Spec.TLS, Service: one})
}

// TestBalance is the table of default algorithms.
func TestBalance(t *testing.T) {
	for _, c := range []struct {
		id, termination string
		services        int
		lb, tcp, value  string
		want            balancer.Algorithm
		notes           int
	}{
		{"edge, 1 active service: random", "edge", 1, "", "", "", balancer.Random, 0},
		{"edge, 2 active services: roundrobin", "edge", 2, "", "", "", balancer.RoundRobin, 0},
		{"edge, 2 active services, default leastconn, annotation source: source", "edge", 2, "leastconn", "", "source", balancer.Source, 0},
		{"edge, 1 active service, default bogus: random", "edge", 1, "bogus", "", "", balancer.Random, 0},
		{"edge, 1 active service, annotation Source: random", "edge", 1, "", "", "Source", balancer.Random, 1},
		{"passthrough, 1 active service: source", "passthrough", 1, "", "", "", balancer.SourceConsistent, 0},
		{"passthrough, 1 active service, default leastconn, TCP default roundrobin: roundrobin", "passthrough", 1, "leastconn", "roundrobin", "", balancer.RoundRobin, 0},
		{"passthrough, 2 active services, default leastconn, TCP default source: roundrobin", "passthrough", 2, "leastconn", "source", "", balancer.RoundRobin, 0},
	} {
		r := terminated(c.termination, "")
		if c.value != "" {
			r.Annotations[annotationBalance] = c.value
		}
		for i := 1; i < c.services; i++ {
			r.Spec.AlternateBackends = append(r.Spec.AlternateBackends, routev1.RouteTargetReference{Name: "b", Weight: new(int32)})
			*r.Spec.AlternateBackends[0].Weight = 1
		}
		got := translated(t, Options{Defaults: Defaults{LoadBalance: c.lb, TCPBalance: c.tcp}}, r)
		if got.Spec.Balance != c.want || len(got.Notes) != c.notes {
			t.Errorf("%s: %v, want %v; notes %q", c.id, got.Spec.Balance, c.want, got.Notes)
		}
	}
}

func TestCookies(t *testing.T) {
	hash := CookieName("ns", "r")
	const plain = "; path=/; HttpOnly"
	for _, c := range []struct {
		id, termination, policy, sameSite, name string
		wantName, wantAttributes                string
		notes                                   int
	}{
		{"none, same-site Strict: none", "", "", "Strict", "", hash, plain, 1},
		{"edge Redirect, same-site Lax: Secure; SameSite=Lax", "edge", "Redirect", "Lax", "", hash, plain + "; Secure; SameSite=Lax", 0},
		{"reencrypt \"\", same-site Strict: Secure; SameSite=Strict", "reencrypt", "", "Strict", "", hash, plain + "; Secure; SameSite=Strict", 0},
		{"edge None, same-site lax: Secure; SameSite=None", "edge", "None", "lax", "", hash, plain + "; Secure; SameSite=None", 1},
		{"edge Allow, same-site Strict: none", "edge", "Allow", "Strict", "", hash, plain, 1},
		{"name", "edge", "", "", "my_cookie-1", "my_cookie-1", plain + "; Secure; SameSite=None", 0},
		{"bad name", "edge", "", "", "my cookie", hash, plain + "; Secure; SameSite=None", 1},
		{"passthrough", "passthrough", "", "Lax", "x", "", "", 2},
	} {
		r := terminated(c.termination, c.policy)
		if c.sameSite != "" {
			r.Annotations[annotationSameSite] = c.sameSite
		}
		if c.name != "" {
			r.Annotations[annotationCookieName] = c.name
		}
		got := translated(t, Options{}, r)
		if p := got.Spec.Policy; got.Spec.CookieName != c.wantName || p.CookieAttributes != c.wantAttributes || len(got.Notes) != c.notes {
			t.Errorf("%s: cookie %q %q, notes %q", c.id, got.Spec.CookieName, p.CookieAttributes, got.Notes)
		}
	}
	for value, on := range map[string]bool{"true": false, "True": false, "TRUE": false, "1": false, "tRuE": true, "yes": true, "on": true, " true": true, "false": true} {
		got := translated(t, Options{}, terminated("", "", annotationDisableCookies, value))
		if (got.Spec.CookieName != "") != on {
			t.Errorf("disable_cookies %q: cookie %q", value, got.Spec.CookieName)
		}
	}
	if got := translated(t, Options{Defaults: Defaults{CookieName: "fromenv"}}, terminated("", "")); got.Spec.CookieName != "fromenv" {
		t.Errorf("cookie name of the router: %q", got.Spec.CookieName)
	}
	if got := translated(t, Options{Defaults: Defaults{CookieName: "from env"}}, terminated("", "")); got.Spec.CookieName != hash {
		t.Errorf("invalid cookie name of the router: %q", got.Spec.CookieName)
	}
}

func TestTimeouts(t *testing.T) {
	for _, c := range []struct {
		name, termination string
		annotations       []string
		server, tunnel    time.Duration
		notes             int
	}{
		{"none", "edge", nil, 30 * time.Second, time.Hour, 0},
		{"server", "edge", []string{annotationTimeout, "5s"}, 5 * time.Second, time.Hour, 0},
		{"tunnel", "edge", []string{annotationTunnel, "5m"}, 30 * time.Second, 5 * time.Minute, 0},
		{"invalid", "edge", []string{annotationTimeout, "5 s", annotationTunnel, "x"}, 30 * time.Second, time.Hour, 2},
		{"clipped", "", []string{annotationTimeout, "5000d"}, MaxTimespec, time.Hour, 1},
		{"passthrough by timeout", "passthrough", []string{annotationTimeout, "5s"}, 30 * time.Second, 5 * time.Second, 0},
		{"passthrough by both", "passthrough", []string{annotationTimeout, "5s", annotationTunnel, "6s"}, 30 * time.Second, 6 * time.Second, 0},
		{"passthrough with an invalid one", "passthrough", []string{annotationTimeout, "5s", annotationTunnel, "x"}, 30 * time.Second, 5 * time.Second, 1},
	} {
		got := translated(t, Options{}, terminated(c.termination, "", c.annotations...))
		if p := got.Spec.Policy; p.ServerTimeout != c.server || p.TunnelTimeout != c.tunnel || p.ConnectTimeout != 5*time.Second || len(got.Notes) != c.notes {
			t.Errorf("%s: %+v, notes %q", c.name, p, got.Notes)
		}
	}
}

func TestForwardedAndHSTS(t *testing.T) {
	for _, c := range []struct {
		value, router string
		want          routing.ForwardedPolicy
		notes         int
	}{
		{"never", "", routing.ForwardedNever, 0}, {"if-none", "", routing.ForwardedIfNone, 0}, {"replace", "never", routing.ForwardedReplace, 0},
		{"Append", "never", routing.ForwardedNever, 1}, {"", "Never", routing.ForwardedAppend, 0}, {"append", "never", routing.ForwardedAppend, 0},
	} {
		r := terminated("edge", "")
		if c.value != "" {
			r.Annotations[annotationForwarded] = c.value
		}
		got := translated(t, Options{Defaults: Defaults{Forwarded: c.router}}, r)
		if got.Spec.Policy.Forwarded != c.want || len(got.Notes) != c.notes {
			t.Errorf("annotation %q, router %q: %v, notes %q", c.value, c.router, got.Spec.Policy.Forwarded, got.Notes)
		}
	}
	for _, c := range []struct{ id, termination, value, want string }{
		{"HSTS max-age=99999;includeSubDomains: verbatim", "edge", "max-age=99999;includeSubDomains", "max-age=99999;includeSubDomains"},
		{"HSTS max-age=99999 ; includesubdomains; PREload: verbatim", "edge", "max-age=99999 ;  includesubdomains;  PREload", "max-age=99999 ;  includesubdomains;  PREload"},
		{"HSTS max-age=\"99999\": verbatim with quotes", "reencrypt", `max-age="99999"`, `max-age="99999"`},
		{"HSTS max-age = \"99999\": verbatim", "edge", `max-age  =  "99999"`, `max-age  =  "99999"`},
		{"HSTS max-age=99999;includesubdomains;preload;wrongdirective: none", "edge", "max-age=99999;includesubdomains;preload;wrongdirective", ""},
		{"HSTS max-age=99999;includesubdomain: none", "reencrypt", "max-age=99999;includesubdomain", ""},
		{"HSTS max-age=1;: none", "reencrypt", "max-age=1;", ""},
		{"HSTS valid value on http route: none", "", "max-age=1", ""},
		{"passthrough", "passthrough", "max-age=1", ""},
	} {
		got := translated(t, Options{}, terminated(c.termination, "", annotationHSTS, c.value))
		if got.Spec.Policy.HSTS != c.want || (len(got.Notes) == 0) != (c.want != "") {
			t.Errorf("%s: %q, notes %q", c.id, got.Spec.Policy.HSTS, got.Notes)
		}
	}
}

// TestIdentity is how endpoints of re-encrypt routes are verified.
func TestIdentity(t *testing.T) {
	caA, caB := certificatePEM(t, "a"), certificatePEM(t, "b")
	route := func(ca string) *routev1.Route {
		r := terminated("reencrypt", "")
		r.Spec.TLS.DestinationCACertificate = ca
		r.Spec.AlternateBackends = []routev1.RouteTargetReference{{Name: "b"}}
		return r
	}
	for _, c := range []struct {
		name, own, router string
		verify            bool
		names             []string
		ca                string
	}{
		{"own CA", caA, caB, true, []string{"", ""}, caA},
		{"CA of the router", "", caB, true, []string{"a.ns.svc", "b.ns.svc"}, caB},
		{"none", "", "", false, []string{"", ""}, ""},
	} {
		tr := translator(t, Options{DestinationCA: []byte(c.router), UpstreamALPN: []protocol.Protocol{protocol.HTTP1}})
		r := route(c.own)
		in := Input{Route: r, Host: "h", TLS: r.Spec.TLS, Service: one}
		got := tr.Route(in)
		for i, target := range got.Spec.Targets {
			tls := target.TLS
			if tls == nil || tls.Verify != c.verify || tls.ServerName != c.names[i] || tls.SNI != "" || !slices.Equal(tls.ALPN, []protocol.Protocol{protocol.HTTP1}) {
				t.Fatalf("%s: target %d: %+v", c.name, i, tls)
			}
			if c.verify {
				if roots, err := certchain.ParseRoots(c.ca, false); err != nil || tls.Roots.Digest() != roots.Digest() {
					t.Errorf("%s: target %d: other roots", c.name, i)
				}
			}
			if target.Protocol != protocol.HTTP1 {
				t.Errorf("%s: h2c is spoken over TLS", c.name)
			}
		}
		if again := tr.Route(in); again.Spec.Targets[0].TLS != got.Spec.Targets[0].TLS {
			t.Errorf("%s: an identity was made twice", c.name)
		}
	}
	for _, torn := range []string{"no PEM", caA + caB[:len(caB)/2]} {
		if err := CheckDestinationCA([]byte(torn)); err == nil {
			t.Errorf("%.20q is taken", torn)
		}
	}
	if _, err := New(Options{DestinationCA: []byte("no PEM")}); err == nil {
		t.Error("a default destination CA without certificates is taken")
	}
	r := route("broken")
	got := translated(t, Options{}, r)
	if len(got.Spec.Targets) != 0 || !strings.Contains(got.Notes[0], "destinationCACertificate") {
		t.Errorf("a broken destination CA: targets %v, notes %q", got.Spec.Targets, got.Notes)
	}
}

func TestServices(t *testing.T) {
	weight := func(n int32) *int32 { return &n }
	for _, c := range []struct {
		id     string
		weight *int32
		want   int
	}{
		{"weight missing counts as 1", nil, 1}, {"weight 0 counts as 0", weight(0), 0}, {"weight -5 counts as 0", weight(-5), 0}, {"weight 1000 counts as 256", weight(1000), 256},
	} {
		r := terminated("", "")
		r.Spec.To.Weight = c.weight
		if got := services(r); got[0].weight != c.want {
			t.Errorf("%s: %+v", c.id, got)
		}
	}
	r := terminated("", "")
	r.Spec.AlternateBackends = []routev1.RouteTargetReference{{Name: "0", Weight: weight(1)}, {Name: "a", Weight: weight(7)}}
	got := services(r)
	if len(got) != 2 || got[0].name != "0" || got[1].weight != 7 {
		t.Errorf("a service named twice: %+v", got)
	}
}

// TestGolden compares whole results.
func TestGolden(t *testing.T) {
	r := terminated("edge", "Redirect", annotationTimeout, "10s", annotationBalance, "leastconn", annotationHSTS, "max-age=1")
	r.Spec.Path, r.Spec.WildcardPolicy = "/p", routev1.WildcardPolicySubdomain
	r.Spec.Port = &routev1.RoutePort{TargetPort: intstr.FromString("http")}
	r.Spec.TLS.Certificate, r.Spec.TLS.Key, r.Spec.TLS.CACertificate = "cert", "key", "ca"
	addr := netip.MustParseAddrPort("10.0.0.1:8080")
	want := routing.RouteSpec{
		Check:    5 * time.Second,
		RouteKey: routing.RouteKey{Namespace: "ns", Name: "r", UID: "u"}, Host: "h.test", Path: "/p", Wildcard: true,
		Termination: routing.TermEdge, Insecure: routing.InsecureRedirect,
		Certificate: &routing.CertificateSpec{Certificate: "cert", Key: "key", CA: "ca"},
		Policy: routing.Policy{
			ServerTimeout: 10 * time.Second, TunnelTimeout: time.Hour, ConnectTimeout: 5 * time.Second,
			CookieAttributes: "; path=/; HttpOnly; Secure; SameSite=None", HSTS: "max-age=1",
		},
		CookieName: CookieName("ns", "r"),
		Balance:    balancer.LeastConn,
		Targets:    []balancer.Target{{ID: "ept:a", Addr: testaddr.Of(addr), Weight: 1, Protocol: protocol.HTTP2, Service: "a"}},
	}
	compareAddr := cmpopts.EquateComparable(target.Addr{}, field.CarriedName{}, balancer.HTTPCheck{})
	got := translated(t, Options{}, r)
	if diff := cmp.Diff(want, *got.Spec, compareAddr); diff != "" {
		t.Errorf("edge: (-want +got):\n%s", diff)
	}
	if len(got.Notes) != 0 || !slices.Equal(got.Services, []string{"a"}) {
		t.Errorf("edge: notes %q, services %q", got.Notes, got.Services)
	}

	r = terminated("passthrough", "Redirect")
	want = routing.RouteSpec{
		Check:    5 * time.Second,
		RouteKey: want.RouteKey, Host: "h.test", Termination: routing.TermPassthrough, Insecure: routing.InsecureRedirect,
		Policy:  routing.Policy{ServerTimeout: 30 * time.Second, TunnelTimeout: time.Hour, ConnectTimeout: 5 * time.Second},
		Balance: balancer.SourceConsistent,
		Targets: []balancer.Target{{ID: "ept:a", Addr: testaddr.Of(addr), Weight: 1, Protocol: protocol.TCP, Service: "a"}},
	}
	if diff := cmp.Diff(want, *translated(t, Options{}, r).Spec, compareAddr); diff != "" {
		t.Errorf("passthrough: (-want +got):\n%s", diff)
	}

	r = terminated("", "")
	r.Spec.Port = &routev1.RoutePort{TargetPort: intstr.FromInt32(9090)}
	got = translated(t, Options{}, r)
	want = routing.RouteSpec{
		Check:    5 * time.Second,
		RouteKey: want.RouteKey, Host: "h.test",
		Policy: routing.Policy{
			ServerTimeout: 30 * time.Second, TunnelTimeout: time.Hour, ConnectTimeout: 5 * time.Second,
			CookieAttributes: "; path=/; HttpOnly",
		},
		CookieName: CookieName("ns", "r"),
	}
	if diff := cmp.Diff(want, *got.Spec, compareAddr, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("plain: (-want +got):\n%s", diff)
	}
	notes := []string{"service a has no endpoint with port 9090", "no endpoint can be chosen: requests are answered with 503"}
	if diff := cmp.Diff(notes, got.Notes); diff != "" {
		t.Errorf("plain: notes (-want +got):\n%s", diff)
	}
	got.Refill(func(name string) *endpoints.Set {
		s := one(name)
		s.Endpoints[0].Port = "9090"
		return s
	}, nil)
	if len(got.Spec.Targets) != 1 || len(got.Notes) != 0 {
		t.Errorf("targets after a change: %v, notes %q", got.Spec.Targets, got.Notes)
	}
}
