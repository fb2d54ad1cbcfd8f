package site

import (
	"context"
	"fmt"
	"io"
	"net/http"
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

// WriteZeros writes n bytes, a piece at a time, until that fails: the reader notices what is missing.
func WriteZeros(w io.Writer, n int64) {
	chunk := make([]byte, 256<<10)
	for ; n > 0; n -= int64(len(chunk)) {
		if _, err := w.Write(chunk[:min(n, int64(len(chunk)))]); err != nil {
			return
		}
	}
}
