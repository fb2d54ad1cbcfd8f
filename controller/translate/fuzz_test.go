package translate

import (
	"math/big"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	routev1 "github.com/openshift/api/route/v1"

	"turnout/balancer"
	"turnout/internal/ratelimit"
	"turnout/internal/wire/field"
	"turnout/internal/work"
	"turnout/routing"
	"turnout/routing/header"
)

// The grammars of annotations a second time, as regular expressions: what the parsers are compared with.
var (
	timespecModel = regexp.MustCompile(`\A([1-9][0-9]*)(us|ms|s|m|h|d)?\z`)
	hstsModel     = regexp.MustCompile(`(?i)\A((includeSubDomains|preload)[ \t]*;[ \t]*)*max-age[ \t]*=[ \t]*([0-9]+|"[0-9]+")([ \t]*;[ \t]*(includeSubDomains|preload))*\z`)
	cookieModel   = regexp.MustCompile(`\A[a-zA-Z0-9_-]+\z`)
)

// FuzzTimespec: a time is what the pattern and arithmetic without bounds say.
func FuzzTimespec(f *testing.F) {
	for _, s := range []string{"30s", "1", "0", "01s", "1d12h", "106751d", "106752d", "2147483648", "9223372036854775808us", "1 s", "5m\n", "٣s"} {
		f.Add(s)
	}
	units := map[string]time.Duration{"us": time.Microsecond, "ms": time.Millisecond, "": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseTimespec(text)
		clipped, ok := ClipTimespec(text)
		m := timespecModel.FindStringSubmatch(text)
		if m == nil {
			if err != ErrTimespecSyntax || ok || clipped != 0 {
				t.Fatalf("%q is taken for %v, %v; clipped %v, %v", text, d, err, clipped, ok)
			}
			return
		}
		n, _ := new(big.Int).SetString(m[1], 10)
		n.Mul(n, big.NewInt(int64(units[m[2]])))
		if n.IsInt64() != (err == nil) || err == nil && int64(d) != n.Int64() || err != nil && err != ErrTimespecRange {
			t.Fatalf("%q is %v ns, not %v, %v", text, n, d, err)
		}
		want := MaxTimespec
		if n.IsInt64() && time.Duration(n.Int64()) < MaxTimespec {
			want = time.Duration(n.Int64())
		}
		if !ok || clipped != want {
			t.Fatalf("%q is clipped to %v, %v; want %v", text, clipped, ok, want)
		}
	})
}

// FuzzHSTS: the parser is the pattern.
func FuzzHSTS(f *testing.F) {
	for _, s := range []string{"max-age=1", `preload ; MAX-AGE = "0";includeSubDomains`, "max-age=1;", "max-age", "preload", "includesubdomains;preload;max-age=1\t;preload", "max-age=1;max-age=2", `max-age="1`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// Unicode folds ſ and K into ASCII letters; the grammar is ASCII.
		want := hstsModel.MatchString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r > 0x7f })
		if got := isHSTS(text); got != want {
			t.Fatalf("%q: %v, the pattern says %v", text, got, want)
		}
	})
}

// FuzzWords: annotations of one word take the words of their grammar as a whole and nothing else; what they do not take has
// no effect and is noted.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"", "true", "FALSE", "t", "append", "if-none", "Lax", "roundrobin", "RandOm", "a_b-c", "a b", "7", "-1", "+2", "1e3", "0x1", "99999999999999999999", "٣"} {
		f.Add(s)
	}
	numbers := regexp.MustCompile(`\A[+-]?[0-9]+\z`)
	f.Fuzz(func(t *testing.T, value string) {
		noted := func(r *Result, key string) bool {
			return slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "annotation "+key+":") })
		}
		check := func(key string, valid, effect bool, r *Result) {
			t.Helper()
			if !valid && (effect || !noted(r, key)) || valid && !effect {
				t.Fatalf("%s %q: valid %v, effect %v, notes %q", key, value, valid, effect, r.Notes)
			}
		}
		with := func(pairs ...string) *Result { return translated(t, Options{}, terminated("edge", "", pairs...)) }

		r := with(annotationCookieName, value)
		check(annotationCookieName, cookieModel.MatchString(value), r.Spec.CookieName == value, r)
		r = with(annotationForwarded, value)
		check(annotationForwarded, slices.Contains([]string{"append", "replace", "if-none", "never"}, value), r.Spec.Policy.Forwarded.String() == value, r)
		r = with(annotationSameSite, value)
		check(annotationSameSite, slices.Contains([]string{"Lax", "Strict", "None"}, value), strings.HasSuffix(r.Spec.Policy.CookieAttributes, "; SameSite="+value), r)
		r = with(annotationBalance, value)
		_, known := balancer.ParseAlgorithm(value)
		if !known && (r.Spec.Balance != with().Spec.Balance || !noted(r, annotationBalance)) {
			t.Fatalf("balance %q: %v, %q", value, r.Spec.Balance, r.Notes)
		}
		_, err := strconv.ParseBool(value)
		r = with(annotationDisableCookies, value)
		if off := r.Spec.CookieName == ""; off && err != nil || err != nil && !noted(r, annotationDisableCookies) {
			t.Fatalf("disable_cookies %q: off %v, %q", value, off, r.Notes)
		}
		r = with(annotationRates, "true", annotationRateHTTP, value)
		want := ratelimit.Limit{}
		if n, ok := new(big.Int).SetString(strings.TrimPrefix(value, "+"), 10); ok && numbers.MatchString(value) && n.IsInt64() {
			want = ratelimit.Limit{On: true, N: int(n.Int64())}
		}
		if got := r.Spec.Policy.Rates.HTTP; got != want || !want.On && !noted(r, annotationRateHTTP) {
			t.Fatalf("rate-http %q: %+v, want %+v, notes %q", value, got, want, r.Notes)
		}
	})
}

// FuzzAnnotations: whatever annotations say, what comes out can be used, says the same every time, and what goes on the
// wire has no control characters. An allow-list with anything in it never lets everybody in.
func FuzzAnnotations(f *testing.F) {
	for _, s := range []string{"", "true", "30s", "append", "/x", `/v2\\1 # c`, "max-age=1;preload", "a_b-c", "Lax", "10.0.0.1 ::1/64,x", "7", "1d12h", "max-age=\"1\"\r\n"} {
		f.Add("edge", s, s, "%[req.hdr(x)]")
	}
	f.Add("", "x", "10.0.0.0/8", "%[ssl_c_der,base64]")
	f.Add("passthrough", "1h", "30s", "a\x00")
	f.Fuzz(func(t *testing.T, termination, value, other, action string) {
		r := terminated(termination, "")
		for _, key := range []string{annotationBalance, annotationDisableCookies, annotationTimeout, annotationForwarded, annotationHSTS,
			annotationCookieName, annotationSameSite, annotationRewrite, annotationAdjustCase, annotationAllow, annotationRates, annotationPodConnections,
			annotationCheckPath, annotationOrigins, annotationRequestTimeout, annotationRetryOn, annotationRedirect, annotationMirror, annotationCanary, annotationCanaryHeader,
			annotationCanaryCookie} {
			r.Annotations[key] = value
		}
		for _, key := range []string{annotationTunnel, annotationCheckInterval, annotationWhite, annotationConcurrent, annotationRateTCP, annotationRateHTTP,
			annotationCheckHost, annotationCheckStatus, annotationMethods, annotationCredentials, annotationAttemptTimeout, annotationRetryAttempts,
			annotationRetryBackoff, annotationUpstreamHost, annotationMirrorPercent, annotationCanaryValue, annotationCanaryWeight} {
			r.Annotations[key] = other
		}
		set := routev1.RouteHTTPHeader{Name: "x-set", Action: routev1.RouteHTTPHeaderActionUnion{Type: routev1.Set, Set: &routev1.RouteSetHTTPHeader{Value: action}}}
		r.Spec.HTTPHeaders = &routev1.RouteHTTPHeaders{Actions: routev1.RouteHTTPHeaderActions{Request: []routev1.RouteHTTPHeader{set}}}
		tr := translator(t, Options{})
		in := Input{Route: r, Host: "h.test", TLS: r.Spec.TLS, Service: one}
		result := tr.Route(in)
		got := result.Spec.Policy
		if again := tr.Route(in); again.Spec.Policy != got || !slices.Equal(again.Notes, result.Notes) {
			t.Fatalf("translated again: %s", cmp.Diff(result.Notes, again.Notes))
		}
		if _, rejections := routing.CompileRules(routing.Options{Registry: balancer.NewRegistry()}, nil, result.Rules()); len(rejections) > 0 {
			t.Fatalf("the table has no use for it: %v", rejections)
		}
		for _, d := range []time.Duration{got.ServerTimeout, got.TunnelTimeout} {
			if d <= 0 || d > MaxTimespec {
				t.Fatalf("timeout %v", d)
			}
		}
		if strings.ContainsFunc(got.HSTS+result.Spec.CookieName+got.CookieAttributes, func(r rune) bool { return r < ' ' && r != '\t' || r >= 0x7f }) {
			t.Fatalf("%q %q %q", got.HSTS, result.Spec.CookieName, got.CookieAttributes)
		}
		if strings.TrimFunc(value+other, separates) != "" && got.Allow == nil {
			t.Fatalf("allow-lists %q and %q let everybody in", value, other)
		}
		if got.Rewrite != nil {
			path, _ := got.Rewrite.Apply([]byte("/a/b"), new(field.Arena), 1<<16, new(work.Of(work.Request)))
			if strings.ContainsFunc(string(path), func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
				t.Fatalf("path %q", path)
			}
		}
		if termination != "passthrough" {
			_, errs := header.Compile(header.Request, []header.Action{{Name: "x-set", Value: action}})
			if (got.RequestActions != nil) != (len(errs) == 0) {
				t.Fatalf("action %q: compiled %v, errors %v", action, got.RequestActions != nil, errs)
			}
		}
	})
}

// FuzzParseAllowList: every word is an entry or is called invalid, what is valid is understood again as it is written, and a
// list has the members of its entries and no other.
func FuzzParseAllowList(f *testing.F) {
	for _, s := range []string{"10.0.0.1", " 10.0.0.1,::1/64\n", "1.2.3.4/33 x", "fe80::1%a/3", "::ffff:1.2.3.4/96", "0.0.0.0/0", "::/0", "::ffff:0:0/90 1.2.3.4/31"} {
		f.Add(s, "1.2.3.4")
	}
	f.Add("10.0.0.0/8,192.168.0.0/16", "::ffff:10.0.0.1")
	f.Fuzz(func(t *testing.T, text, member string) {
		valid, invalid := ParseAllowList(text)
		if len(valid)+len(invalid) != len(strings.FieldsFunc(text, separates)) {
			t.Fatalf("%q: %d and %d words", text, len(valid), len(invalid))
		}
		var written []string
		for _, p := range valid {
			if !p.IsValid() || p != p.Masked() || p.Addr().Zone() != "" {
				t.Fatalf("%q gives %v", text, p)
			}
			written = append(written, p.String())
		}
		if again, none := ParseAllowList(strings.Join(written, ",")); len(none) > 0 || !slices.Equal(again, valid) {
			t.Fatalf("%q is read as %v, that as %v and %q", text, valid, again, none)
		}
		a, err := netip.ParseAddr(member)
		if err != nil || a.Zone() != "" {
			return
		}
		list := routing.NewAllowList(valid)
		if got, want := list.Contains(a), contains(valid, a); got != want {
			t.Fatalf("%v in %v: %v, want %v", a, valid, got, want)
		}
		for _, p := range valid {
			if !list.Contains(p.Addr()) {
				t.Fatalf("%v is not in %v", p.Addr(), valid)
			}
		}
	})
}

// contains compares bit by bit, IPv4 as it lies in IPv6.
func contains(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool {
		bits := p.Bits()
		if p.Addr().Is4() {
			bits += 96
		}
		x, y := p.Addr().As16(), a.As16()
		for i := range bits {
			if (x[i/8]^y[i/8])>>(7-i%8)&1 != 0 {
				return false
			}
		}
		return true
	})
}
