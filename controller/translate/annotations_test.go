package translate

import (
	"testing"
	"time"

	"turnout/balancer"
	"turnout/routing"
)

// TestFirstValidValue is section B: the annotation if it is valid, then the router's
// option if it is, then the default.
func TestFirstValidValue(t *testing.T) {
	for _, c := range []struct {
		id, annotation, option string
		balance                balancer.Algorithm
	}{
		{"C064, part of the value is not the value", "123source", "leastconn", balancer.LeastConn},
		{"C064, the same at its end", "source456", "leastconn", balancer.LeastConn},
		{"C066, C067, neither is a word of ours", "anything", "", balancer.Random},
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

// TestBooleans is the other half of section B: what is not true is false, and what is neither has a note.
func TestBooleans(t *testing.T) {
	for _, c := range []struct {
		id, value   string
		want, noted bool
	}{
		{"C072", "true", true, false}, {"C073", "True", true, false}, {"C074", "TRUE", true, false}, {"C076", "1", true, false},
		{"C077", "tRuE", false, true}, {"C078", "yes", false, true}, {"C079", "on", false, true}, {"C081", " true", false, true},
		{"false", "F", false, false}, {"empty", "", false, true},
	} {
		got := translated(t, Options{}, terminated("edge", "", annotationDisableCookies, c.value))
		if disabled := got.Spec.Policy.CookieName == ""; disabled != c.want || (len(got.Notes) > 0) != c.noted {
			t.Errorf("%s: %q disables cookies: %v, notes %q", c.id, c.value, disabled, got.Notes)
		}
	}
}

// TestCheckInterval is section A.3.
func TestCheckInterval(t *testing.T) {
	for _, c := range []struct {
		id, termination string
		annotation      []string
		want            time.Duration
		notes           int
	}{
		{"C059", "", nil, 5 * time.Second, 0},
		{"C061", "", []string{annotationCheckInterval, "5000d"}, MaxTimespec, 1},
		{"C062", "", []string{annotationCheckInterval, "abc"}, 5 * time.Second, 1},
		{"C063", "passthrough", []string{annotationCheckInterval, "9000d"}, MaxTimespec, 1},
		{"a good one", "edge", []string{annotationCheckInterval, "2500ms"}, 2500 * time.Millisecond, 0},
		{"the shortest", "edge", []string{annotationCheckInterval, "1s"}, time.Second, 0},
		{"too often", "edge", []string{annotationCheckInterval, "250ms"}, time.Second, 1},
		{"much too often", "passthrough", []string{annotationCheckInterval, "1us"}, time.Second, 1},
		{"the router's own", "hasty", nil, 200 * time.Millisecond, 0},
		{"as the router's own", "hasty", []string{annotationCheckInterval, "200ms"}, 200 * time.Millisecond, 0},
		{"oftener than it", "hasty", []string{annotationCheckInterval, "100ms"}, 200 * time.Millisecond, 1},
	} {
		var o Options
		if c.termination == "hasty" {
			c.termination, o.Defaults.CheckInterval = "edge", 200*time.Millisecond
		}
		r := terminated(c.termination, "", c.annotation...)
		got := translated(t, o, r)
		if got.Spec.Check != c.want || len(got.Notes) != c.notes {
			t.Errorf("%s: every %v, want %v; notes %q, want %d", c.id, got.Spec.Check, c.want, got.Notes, c.notes)
		}
	}
}
