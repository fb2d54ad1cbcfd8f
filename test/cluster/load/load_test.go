package load

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Helper()             {}
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) Error(args ...any)   { r.said = append(r.said, args[0].(string)) }
func (r *recorder) Errorf(_ string, args ...any) {
	r.said = append(r.said, args[0].(string))
}

// TestFailuresAreCounted: what fails fails the test, the first failures are shown, and what ends with the load is none.
func TestFailuresAreCounted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var c Clients
	n := 0
	c.Go(ctx, time.Microsecond, func(ctx context.Context) error {
		switch n++; {
		case n == 20:
			stop()
			return ctx.Err()
		case n > 1:
			return errors.New("it is broken")
		}
		return nil
	})
	r := new(recorder)
	if asked, failed := c.Wait(r); asked != 19 || failed != 18 {
		t.Errorf("%d of %d requests failed, want 18 of 19", failed, asked)
	}
	if len(r.said) != 1 || strings.Count(r.said[0], "it is broken") != mostFailures {
		t.Errorf("said %q", r.said)
	}
}

// TestSilenceIsNoSuccess: clients that never asked fail the test.
func TestSilenceIsNoSuccess(t *testing.T) {
	r := new(recorder)
	if new(Clients).Wait(r); len(r.said) != 1 {
		t.Errorf("said %q", r.said)
	}
}

// TestAsk: a pod's name says which Service it is of, and an answer of the router why it is one.
func TestAsk(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "app.test" {
			w.Header().Set("X-Turnout-Reason", "no-route")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("X-Pod-Name", "web-1-abc")
	}))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}}}
	if service, err := Ask(t.Context(), client, "app.test"); service != "web" || err != nil {
		t.Errorf("%q, %v", service, err)
	}
	if _, err := Ask(t.Context(), client, "nowhere.test"); err == nil || err.Error() != "nowhere.test: status 503, no-route" {
		t.Error(err)
	}
}

// TestTimes: the shares of none and of many.
func TestTimes(t *testing.T) {
	if got := Times(nil).String(); got != "p50 0s, p99 0s, longest 0s" {
		t.Error(got)
	}
	var ts Times
	for i := range 200 {
		ts = append(ts, time.Duration(200-i)*time.Millisecond)
	}
	if got := ts.String(); got != "p50 101ms, p99 199ms, longest 200ms" {
		t.Error(got)
	}
}
