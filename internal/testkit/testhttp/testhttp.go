// Package testhttp asks for pages, in tests and benchmarks.
package testhttp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// Get asks for a page of a host, "" = that of the URL, over t, nil = that of net/http, and returns the answer's status and body.
// Redirects are not followed. An answer that cannot be read to its end is an error.
func Get(ctx context.Context, t http.RoundTripper, url, host string) (status int, body []byte, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, nil, fmt.Errorf("cannot make a request: %w", err)
	}
	if q.Host = host; host == "" {
		q.Host = q.URL.Host
	}
	if t == nil {
		t = http.DefaultTransport
	}
	a, err := t.RoundTrip(q)
	if err != nil {
		return 0, nil, fmt.Errorf("cannot ask: %w", err)
	}
	defer a.Body.Close()
	if body, err = io.ReadAll(a.Body); err != nil {
		return a.StatusCode, body, fmt.Errorf("cannot read an answer: %w", err)
	}
	return a.StatusCode, body, nil
}

// Ask is Get whose answer must be 200.
func Ask(ctx context.Context, t http.RoundTripper, url, host string) error {
	status, _, err := Get(ctx, t, url, host)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("cannot ask: status %d", status)
	}
	return err
}

// Page is Get over a connection of its own, within a minute; an error ends the test.
func Page(t testing.TB, url, host string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // t's own has ended when its cleanups run
	defer cancel()
	status, text, err := Get(ctx, &http.Transport{DisableKeepAlives: true}, url, host)
	if err != nil {
		t.Fatal(err)
	}
	return status, string(text)
}
