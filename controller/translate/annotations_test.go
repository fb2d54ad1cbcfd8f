package translate

import (
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/proxy/field"
	"turnout/routing"
)

// TestFirstValidValue is section B: the annotation if it is valid, then the router's
// option if it is, then the default.
func TestFirstValidValue(t *testing.T) {
	for _, c := range []struct {
		id, annotation, option string
		balance                balancer.Algorithm
	}{
		{"C069", "RoundRobin", "leastconn", balancer.LeastConn},
		{"both", "source", "leastconn", balancer.Source},
		{"none", "static-rr", "hdr(host)", balancer.Random},
		{"part of the value", "source ", "leastconn\n", balancer.Random},
	} {
		got := translated(t, Options{Defaults: Defaults{LoadBalance: c.option}}, terminated("edge", "", annotationBalance, c.annotation))
		if got.Spec.Balance != c.balance {
			t.Errorf("%s: %v", c.id, got.Spec.Balance)
		}
	}
	for _, c := range []struct {
		id, annotation, option string
		want                   routing.ForwardedPolicy
	}{
		{"C071", "Append", "never", routing.ForwardedNever},
		{"C068", "append\nreplace", "never", routing.ForwardedNever},
		{"none", "Append", "Never", routing.ForwardedAppend},
	} {
		got := translated(t, Options{Defaults: Defaults{Forwarded: c.option}}, terminated("edge", "", annotationForwarded, c.annotation))
		if got.Spec.Policy.Forwarded != c.want {
			t.Errorf("%s: %v", c.id, got.Spec.Policy.Forwarded)
		}
	}
	for _, c := range [][3]string{{"a b", "env", "env"}, {"mine", "env", "mine"}, {"a=b", "e v", CookieName("ns", "r")}} {
		got := translated(t, Options{Defaults: Defaults{CookieName: c[1]}}, terminated("edge", "", annotationCookieName, c[0]))
		if got.Spec.Policy.CookieName != c[2] {
			t.Errorf("cookie %q, option %q: %q", c[0], c[1], got.Spec.Policy.CookieName)
		}
	}
}

// FuzzAnnotations: whatever annotations say, what comes out can be used, and what goes
// on the wire has no control characters.
func FuzzAnnotations(f *testing.F) {
	for _, s := range []string{"", "true", "30s", "append", "/x", `/v2\\1 # c`, "max-age=1;preload", "a_b-c", "Lax", "10.0.0.1 ::1/64,x", "7", "1d12h", "max-age=\"1\"\r\n"} {
		f.Add("edge", s, s, "%[req.hdr(x)]")
	}
	f.Fuzz(func(t *testing.T, termination, value, other, action string) {
		r := terminated(termination, "")
		for _, key := range []string{annotationBalance, annotationDisableCookies, annotationTimeout, annotationForwarded, annotationHSTS,
			annotationCookieName, annotationSameSite, annotationRewrite, annotationAdjustCase, annotationAllow, annotationRates} {
			r.Annotations[key] = value
		}
		for _, key := range []string{annotationTunnel, annotationWhite, annotationConcurrent, annotationRateTCP, annotationRateHTTP} {
			r.Annotations[key] = other
		}
		got := translated(t, Options{}, r).Spec.Policy
		for _, d := range []time.Duration{got.ServerTimeout, got.TunnelTimeout} {
			if d <= 0 || d > MaxTimespec {
				t.Fatalf("timeout %v", d)
			}
		}
		if strings.ContainsFunc(got.HSTS+got.CookieName+got.CookieAttributes, func(r rune) bool { return r < ' ' && r != '\t' || r >= 0x7f }) {
			t.Fatalf("%q %q %q", got.HSTS, got.CookieName, got.CookieAttributes)
		}
		if got.Rewrite != nil {
			path, _ := got.Rewrite.Apply([]byte("/a/b"), new(field.Arena), 1<<16)
			if strings.ContainsFunc(string(path), func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
				t.Fatalf("path %q", path)
			}
		}
	})
}
