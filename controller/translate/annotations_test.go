package translate

import (
	"testing"
	"time"

	"turnout/balancer"
	"turnout/routing"
)

// TestFirstValidValue: the annotation if it is valid, then the router's
// option if it is, then the default.
func TestFirstValidValue(t *testing.T) {
	for _, c := range []struct {
		id, annotation, option string
		balance                balancer.Algorithm
	}{
		{"pattern asd chooses asd from 123asd123, asd456, 123asd, asd, part of the value is not the value", "123source", "leastconn", balancer.LeastConn},
		{"pattern asd chooses asd from 123asd123, asd456, 123asd, asd, the same at its end", "source456", "leastconn", balancer.LeastConn},
		{"pattern |asd chooses none from anything, pattern asd| chooses none from anything, neither is a word of ours", "anything", "", balancer.Random},
		{"pattern balance pattern chooses leastconn from RoundRobin, leastconn", "RoundRobin", "leastconn", balancer.LeastConn},
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
		{"pattern append|replace|if-none|never chooses never from Append, never", "Append", "never", routing.ForwardedNever},
		{"pattern asd with multi-line flag chooses none from asd LF 123", "append\nreplace", "never", routing.ForwardedNever},
		{"none", "Append", "Never", routing.ForwardedAppend},
	} {
		got := translated(t, Options{Defaults: Defaults{Forwarded: c.option}}, terminated("edge", "", annotationForwarded, c.annotation))
		if got.Spec.Policy.Forwarded != c.want {
			t.Errorf("%s: %v", c.id, got.Spec.Policy.Forwarded)
		}
	}
	for _, c := range [][3]string{{"a b", "env", "env"}, {"mine", "env", "mine"}, {"a=b", "e v", CookieName("ns", "r")}} {
		got := translated(t, Options{Defaults: Defaults{CookieName: c[1]}}, terminated("edge", "", annotationCookieName, c[0]))
		if got.Spec.CookieName != c[2] {
			t.Errorf("cookie %q, option %q: %q", c[0], c[1], got.Spec.CookieName)
		}
	}
}

// TestBooleans is about words: what is not true is false, and what is neither has a note.
func TestBooleans(t *testing.T) {
	for _, c := range []struct {
		id, value   string
		want, noted bool
	}{
		{"boolean true is true", "true", true, false}, {"boolean True is true", "True", true, false}, {"boolean TRUE is true", "TRUE", true, false}, {"boolean 1 is true", "1", true, false},
		{"boolean tRuE is false", "tRuE", false, true}, {"boolean yes is false", "yes", false, true}, {"boolean on is false", "on", false, true}, {"boolean true after a blank is false", " true", false, true},
		{"false", "F", false, false}, {"empty", "", false, true},
	} {
		got := translated(t, Options{}, terminated("edge", "", annotationDisableCookies, c.value))
		if disabled := got.Spec.CookieName == ""; disabled != c.want || (len(got.Notes) > 0) != c.noted {
			t.Errorf("%s: %q disables cookies: %v, notes %q", c.id, c.value, disabled, got.Notes)
		}
	}
}

// TestCheckInterval: the annotation, within its bounds.
func TestCheckInterval(t *testing.T) {
	for _, c := range []struct {
		id, termination string
		annotation      []string
		want            time.Duration
		notes           int
	}{
		{"check interval absent on a route, termination none, is 5000ms", "", nil, 5 * time.Second, 0},
		{"check interval 5000d on a route, termination none, is 2147483647ms", "", []string{annotationCheckInterval, "5000d"}, MaxTimespec, 1},
		{"check interval abc on a route, termination none, is 5000ms", "", []string{annotationCheckInterval, "abc"}, 5 * time.Second, 1},
		{"check interval 9000d on a route, termination passthrough, is 2147483647ms", "passthrough", []string{annotationCheckInterval, "9000d"}, MaxTimespec, 1},
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
