package translate

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/endpoints"
	"turnout/internal/ratelimit"
)

// withAnnotations is a route with annotations, translated.
func withAnnotations(t *testing.T, tr *Translator, tls *routev1.TLSConfig, pairs ...string) *Result {
	t.Helper()
	r := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", Annotations: map[string]string{}}}
	r.Spec.To.Name = "s"
	for i := 0; i < len(pairs); i += 2 {
		r.Annotations["haproxy.router.openshift.io/"+pairs[i]] = pairs[i+1]
	}
	return tr.Route(Input{Route: r, Host: "a.test", TLS: tls, Service: func(string) *endpoints.Set { return &endpoints.Set{} }})
}

func newTranslator(t *testing.T) *Translator {
	t.Helper()
	tr, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// Where the HAProxy router lets everybody in by accident, what
// was meant counts here, or nobody.
func TestAllowListText(t *testing.T) {
	f := func(id, text, want string) {
		t.Helper()
		valid, _ := ParseAllowList(text)
		var got []string
		for _, p := range valid {
			got = append(got, strings.TrimSuffix(strings.TrimSuffix(p.String(), "/32"), "/128"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q gives %q, want %q", id, text, got, want)
		}
	}
	f("allow-list 192.168.1.0 2001:0db8:85a3:0000:0000:8a2e:0370:7334 172.16.14.10/24 2001:0db8:85a3::8a2e:370:10/64 64:ff9b::192.168.0.1 2600:14a0::/40 is effective as all six", "192.168.1.0 2001:0db8:85a3:0000:0000:8a2e:0370:7334 172.16.14.10/24 2001:0db8:85a3::8a2e:370:10/64 64:ff9b::192.168.0.1 2600:14a0::/40",
		"192.168.1.0 2001:db8:85a3::8a2e:370:7334 172.16.14.0/24 2001:db8:85a3::/64 64:ff9b::c0a8:1 2600:14a0::/40")
	f("allow-list 192.168.1.0 64:ff9b::192.168.0.1 172.16.14.10 is effective as all", "192.168.1.0 64:ff9b::192.168.0.1 172.16.14.10", "192.168.1.0 64:ff9b::c0a8:1 172.16.14.10")
	f("allow-list 192.168.1.0/16 172.16.14.10/24 2600:14a0::/40 is effective as all", "192.168.1.0/16 172.16.14.10/24 2600:14a0::/40", "192.168.0.0/16 172.16.14.0/24 2600:14a0::/40")
	f("allow-list 192.168.10.10 10.168.12.10/8 8.8.8.8 172.16.0.0/24 is effective as all", "192.168.10.10 10.168.12.10/8 8.8.8.8 172.16.0.0/24", "192.168.10.10 10.0.0.0/8 8.8.8.8 172.16.0.0/24")
	f("allow-list 192.168.15.15 is effective as one", "192.168.15.15", "192.168.15.15")
	f("allow-list with blanks around an address is effective as none, meant", " 192.168.10.10  ", "192.168.10.10")
	f("allow-list of blanks is effective as none", "   ", "")
	f("allow-list 192.168. is effective as none", "192.168.", "")
	f("allow-list 2001:0db8: is effective as none", "2001:0db8:", "")
	f("allow-list 192.168.10.5/64 is effective as none", "192.168.10.5/64", "")
	f("allow-list 2600:14a0::/256 is effective as none", "2600:14a0::/256", "")
	f("allow-list 192.168.1.0 2001:0db8:85a3:0000:0000:8a2e:0370 172.16.14.10/24 10. is effective as 192.168.1.0 172.16.14.10/24", "192.168.1.0 2001:0db8:85a3:0000:0000:8a2e:0370 172.16.14.10/24 10.", "192.168.1.0 172.16.14.0/24")
	f("allow-list 2001:0db8:85a3:0000:8a2e:0370:7334 2001:db8::2:1 ::ffff:192.168.0.1 :/40 is effective as 2001:db8::2:1 ::ffff:192.168.0.1", "2001:0db8:85a3:0000:8a2e:0370:7334 2001:db8::2:1 ::ffff:192.168.0.1 :/40", "2001:db8::2:1 ::ffff:192.168.0.1")
	f("allow-list 192.168.1 172.16.14.10/24 2600:14a0::/40 is effective as last two", "192.168.1 172.16.14.10/24 2600:14a0::/40", "172.16.14.0/24 2600:14a0::/40")
	f("allow-list 192.168.1./16 2600:14a0::/40 is effective as 2600:14a0::/40", "192.168.1./16 2600:14a0::/40", "2600:14a0::/40")
	f("allow-list 10.0.0.1,10.0.0.2 is effective as none, meant", "10.0.0.1,10.0.0.2", "10.0.0.1 10.0.0.2")
	f("commas and blanks", "10.0.0.1, 10.0.0.2 ,,\t10.0.0.3\n10.0.0.4", "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4")
	f("words", "localhost 999.1.1.1 1.2.3.4/33 192.168.1.1-192.168.1.5 fe80::1%eth0 1.2.3.4/ /8 1.2.3.4/08", "")
}

func TestAllowList(t *testing.T) {
	in, out := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	f := func(id string, open, first, second bool, pairs ...string) *Result {
		t.Helper()
		r := withAnnotations(t, newTranslator(t), nil, pairs...)
		list := r.Spec.Policy.Allow
		switch {
		case open && list != nil:
			t.Errorf("%s: there is a filter", id)
		case !open && list == nil:
			t.Errorf("%s: there is no filter", id)
		case !open && (list.Contains(in) != first || list.Contains(out) != second):
			t.Errorf("%s: %s %v, %s %v", id, in, list.Contains(in), out, list.Contains(out))
		}
		if closed := !open && !first && !second; r.Closed != closed {
			t.Errorf("%s: closed is %v", id, r.Closed)
		}
		return r
	}
	f("absent", true, false, false)
	f("empty", true, false, false, "ip_allowlist", "")
	f("allow-list of blanks is effective as none", true, false, false, "ip_allowlist", "   ")
	f("allow-list allowlist absent, whitelist 10.0.0.1 is effective as 10.0.0.1", false, true, false, "ip_whitelist", "10.0.0.1")
	f("empty, old name", false, true, false, "ip_allowlist", "", "ip_whitelist", "10.0.0.1")
	f("blank, old name", false, true, false, "ip_allowlist", " ", "ip_whitelist", "10.0.0.1")
	f("allow-list allowlist 10.0.0.1, whitelist 10.0.0.2 is effective as 10.0.0.1", false, true, false, "ip_allowlist", "10.0.0.1", "ip_whitelist", "10.0.0.2")
	f("allow-list allowlist bad, whitelist 10.0.0.2 is effective as none, denied", false, false, false, "ip_allowlist", "bad", "ip_whitelist", "10.0.0.2")
	f("allow-list 127.0.0.9, GET: 200, meant", false, true, false, "ip_allowlist", " 10.0.0.1")
	f("new line, meant", false, true, true, "ip_allowlist", "10.0.0.1\n10.0.0.2")
	f("each twice", false, true, true, "ip_allowlist", "10.0.0.2 10.0.0.1 10.0.0.2,10.0.0.1")
	r := f("allow-list nonsense, GET: 200, denied", false, false, false, "ip_allowlist", "nonsense")
	want := []string{
		`annotation haproxy.router.openshift.io/ip_allowlist: "nonsense" is not an address or CIDR; it is left out`,
		`annotation haproxy.router.openshift.io/ip_allowlist: no valid entry; nobody may connect`,
	}
	if !slices.Equal(r.Notes[:2], want) {
		t.Errorf("notes are %q", r.Notes)
	}
	r = f("many words", false, false, false, "ip_allowlist", strings.Repeat("x ", 100))
	if len(r.Notes) > maxNoted+3 {
		t.Errorf("%d notes", len(r.Notes))
	}
}

// TestAllowListsOfAnySize: in the HAProxy router a long list goes to a file of its own; all that can be seen of it is that
// every entry counts.
func TestAllowListsOfAnySize(t *testing.T) {
	for id, entries := range map[string]int{"an allow-list of 0 entries": 0, "an allow-list of 60 entries": 60, "an allow-list of 61 entries": 61, "an allow-list of 62 entries": 62, "an allow-list of 64 entries": 64, "an allow-list of 256 entries": 256, "an allow-list of 1024 entries": 1024} {
		var words []string
		for i := range entries {
			words = append(words, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String())
		}
		list := withAnnotations(t, newTranslator(t), nil, "ip_allowlist", strings.Join(words, " ")).Spec.Policy.Allow
		if entries == 0 {
			if list != nil {
				t.Errorf("%s: there is a filter", id)
			}
			continue
		}
		for _, word := range words {
			if !list.Contains(netip.MustParseAddr(word)) {
				t.Errorf("%s: %s is kept out", id, word)
			}
		}
		if outside := netip.AddrFrom4([4]byte{10, 0, byte(entries >> 8), byte(entries)}); list.Contains(outside) {
			t.Errorf("%s: %s is let in", id, outside)
		}
	}
}

func TestAllowListsAreShared(t *testing.T) {
	tr := newTranslator(t)
	list := func(text string) any {
		return withAnnotations(t, tr, nil, "ip_allowlist", text).Spec.Policy.Allow
	}
	if a := list("10.0.0.1 10.0.0.2"); a != list("10.0.0.2,10.0.0.1, 10.0.0.1") || a == list("10.0.0.1") {
		t.Error("lists of the same content are not one")
	}
	if list("none") != list("nobody") {
		t.Error("lists of nothing are not one")
	}
}

func TestRateLimits(t *testing.T) {
	f := func(want ratelimit.Limits, note string, pairs ...string) {
		t.Helper()
		r := withAnnotations(t, newTranslator(t), nil, pairs...)
		if got := r.Spec.Policy.Rates; got != want {
			t.Errorf("%q gives %+v, want %+v", pairs, got, want)
		}
		if note != "" && !strings.Contains(strings.Join(r.Notes, "\n"), note) {
			t.Errorf("%q: notes are %q", pairs, r.Notes)
		}
	}
	const on, concurrent, tcp, http = "rate-limit-connections", "rate-limit-connections.concurrent-tcp", "rate-limit-connections.rate-tcp", "rate-limit-connections.rate-http"
	at := func(n int) ratelimit.Limit { return ratelimit.Limit{On: true, N: n} }
	f(ratelimit.Limits{}, "")
	f(ratelimit.Limits{}, "", on, "true")
	f(ratelimit.Limits{}, "", concurrent, "3", tcp, "4")
	f(ratelimit.Limits{}, "", on, "yes", concurrent, "3")
	f(ratelimit.Limits{}, "", on, "false", concurrent, "3")
	f(ratelimit.Limits{Concurrent: at(3), TCP: at(4), HTTP: at(5)}, "", on, "TRUE", concurrent, "3", tcp, "4", http, "5")
	f(ratelimit.Limits{TCP: at(4)}, "is not a whole number", on, "1", concurrent, "3.5", tcp, "+4", http, "")
	f(ratelimit.Limits{HTTP: at(0), TCP: at(-7)}, "refuses everything", on, "t", http, "0", tcp, "-7")

	r := withAnnotations(t, newTranslator(t), &routev1.TLSConfig{Termination: "passthrough"}, on, "true", tcp, "3", http, "4")
	if want := (ratelimit.Limits{TCP: at(3)}); r.Spec.Policy.Rates != want {
		t.Errorf("passthrough: %+v", r.Spec.Policy.Rates)
	}
}

func TestPodConcurrentConnections(t *testing.T) {
	const key = "pod-concurrent-connections"
	for _, tls := range []*routev1.TLSConfig{nil, {Termination: "edge"}, {Termination: "reencrypt"}, {Termination: "passthrough"}} {
		f := func(want int, note string, pairs ...string) {
			t.Helper()
			r := withAnnotations(t, newTranslator(t), tls, pairs...)
			if got := r.Spec.Limit; got != want || r.Spec.Pool().Limit != want {
				t.Errorf("%q gives %d, want %d", pairs, got, want)
			}
			noted := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, key) && strings.Contains(n, note) })
			if noted != (note != "") {
				t.Errorf("%q: notes are %q", pairs, r.Notes)
			}
		}
		f(0, "")
		f(0, "", key, "0")
		f(10, "", key, "10")
		f(10, "", key, "+10")
		f(7, "", key, "007")
		for _, bad := range []string{"", " 1", "1 ", "1.5", "0x10", "1_000", "many", "99999999999999999999", "5\n"} {
			f(0, "is not a whole number; no limit is used", key, bad)
		}
		f(0, "is below 0; no limit is used", key, "-1")
	}
}
