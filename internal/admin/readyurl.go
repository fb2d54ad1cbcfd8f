package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	readyURLPatience = 2 * time.Second // of a request to the URL, its answer included
	readyURLFresh    = time.Second     // how long its answer counts
	mostReadyAnswer  = 64 << 10        // bytes of the answer that are read
)

// ParseReadyURL reads what ROUTER_METRICS_READY_HTTP_URL may be.
func ParseReadyURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("allowed: a URL such as http://localhost:8080/healthz, of http or https")
	}
	return u, nil
}

// readyURL asks a URL whether the router is ready. However many ask it, there is one request at a time, and at most one a second.
type readyURL struct {
	url    *url.URL
	client http.Client
	any    bool // any answer will do

	mu    sync.Mutex
	asked time.Time
	found error
}

// newReadyURL: proxy has the connection begin with a PROXY header, as that of a client, and then any answer will do, as with the HAProxy router.
// Certificates are not verified, because the router has that of its clients and not one of localhost, and nothing is entrusted to who answers.
func newReadyURL(u *url.URL, proxy bool) *readyURL {
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	if proxy {
		transport.DialContext = dialProxied
	}
	return &readyURL{url: u, any: proxy, client: http.Client{Transport: transport, Timeout: readyURLPatience}}
}

// dialProxied connects and sends the PROXY header of a connection without a client.
func dialProxied(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err //nolint:wrapcheck // net/http has the words around it
	}
	if _, err := io.WriteString(c, "PROXY UNKNOWN\r\n"); err != nil {
		_ = c.Close()
		return nil, err //nolint:wrapcheck // the same
	}
	return c, nil
}

// check says why the URL does not answer well, nil if it does.
func (r *readyURL) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked.IsZero() || time.Since(r.asked) >= readyURLFresh {
		r.found = r.ask()
		r.asked = time.Now()
	}
	return r.found
}

func (r *readyURL) ask() error {
	request, err := http.NewRequest(http.MethodGet, r.url.String(), nil)
	if err != nil {
		return fmt.Errorf("cannot ask %s: %w", r.url.Redacted(), err)
	}
	request.Header.Set("User-Agent", "router-probe/turnout")
	response, err := r.client.Do(request)
	if err != nil {
		return err //nolint:wrapcheck // it names the URL
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, mostReadyAnswer)) // its status is what counts
	_ = response.Body.Close()
	if !r.any && (response.StatusCode < 200 || response.StatusCode > 399) {
		return fmt.Errorf("%s answers %d", r.url.Redacted(), response.StatusCode)
	}
	return nil
}
