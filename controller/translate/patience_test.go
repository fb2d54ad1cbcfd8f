package translate

import (
	"fmt"
	"testing"
	"time"

	"turnout/routing"
)

// TestPatience: deadlines and retries, and what is said about values that cannot be used.
func TestPatience(t *testing.T) {
	const on, attempts, backoff = annotationRetryOn, annotationRetryAttempts, annotationRetryBackoff
	for _, c := range []struct {
		annotations      []string
		request, attempt time.Duration
		retry            string // codes, attempts and backoff; "" = none
		notes            int
	}{
		{nil, 0, 0, "", 0},
		{[]string{annotationRequestTimeout, "7s", annotationAttemptTimeout, "500"}, 7 * time.Second, 500 * time.Millisecond, "", 0},
		{[]string{annotationRequestTimeout, "0", annotationAttemptTimeout, "soon"}, 0, 0, "", 2},
		{[]string{annotationRequestTimeout, "1000d"}, MaxTimespec, 0, "", 1},
		{[]string{on, "503,502 503"}, 0, 0, "[502 503] 1 0s", 0},
		{[]string{on, ""}, 0, 0, "[] 1 0s", 0},
		{[]string{on, "200, 5xx, 503, 600"}, 0, 0, "[503] 1 0s", 3},
		{[]string{attempts, "3", backoff, "250ms"}, 0, 0, "[] 3 250ms", 0},
		{[]string{on, "503", attempts, "0"}, 0, 0, "", 0},
		{[]string{on, "503", attempts, "11"}, 0, 0, "[503] 1 0s", 1},
		{[]string{on, "503", attempts, "-1", backoff, "never"}, 0, 0, "[503] 1 0s", 2},
		{[]string{on, "503", backoff, "2h"}, 0, 0, "[503] 1 1m0s", 1},
		{[]string{backoff, "1s"}, 0, 0, "", 1},
	} {
		got := translated(t, Options{}, terminated("edge", "", c.annotations...))
		p, retry := got.Spec.Policy, ""
		if p.Retry != nil {
			retry = fmt.Sprint(p.Retry.Codes, p.Retry.Attempts, " ", p.Retry.Backoff)
		}
		if p.RequestTimeout != c.request || p.AttemptTimeout != c.attempt || retry != c.retry || len(got.Notes) != c.notes {
			t.Errorf("%q: %v, %v, %q; notes %q", c.annotations, p.RequestTimeout, p.AttemptTimeout, retry, got.Notes)
		}
	}
	all := []string{annotationRequestTimeout, "7s", annotationAttemptTimeout, "1s", on, "503", attempts, "2", backoff, "1s"}
	if got := translated(t, Options{}, terminated("passthrough", "", all...)); got.Spec.Policy.Retry != nil || got.Spec.Policy.RequestTimeout != 0 || len(got.Notes) != 5 {
		t.Errorf("passthrough: %+v, notes %q", got.Spec.Policy, got.Notes)
	}
	tr := translator(t, Options{})
	retry := func() *routing.RetrySpec {
		r := terminated("", "", on, "503")
		return tr.Route(Input{Route: r, Host: "h.test", Service: one}).Spec.Policy.Retry
	}
	if first, again := retry(), retry(); first != again {
		t.Error("a route that is translated again is another one")
	}
}
