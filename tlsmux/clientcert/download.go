package clientcert

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"

	"turnout/internal/target"
)

// Limits of one download. A list in DER is held once while it is authenticated, a list in PEM three
// times.
const (
	maxListSize     = 64 << 20
	maxTextSize     = 16 << 20
	downloadTime    = time.Minute
	maxRedirections = 5
)

// Downloader returns a Fetch for an Updater. It uses HTTP without TLS: lists are signed, and
// certificates of their servers could not be verified without other lists. A list may take a
// minute, and 64 MiB in DER or 16 MiB in PEM. httpProxy is the URL of a proxy, "" = none. noProxy
// lists the hosts, domains and addresses without proxy, separated by commas. guard judges all
// addresses, including redirections, except the proxy's; nil = no check.
func Downloader(httpProxy, noProxy string, guard *target.Guard) func(ctx context.Context, address string) ([]byte, error) {
	return newDownloader(httpProxy, noProxy, guard).fetch
}

type downloader struct {
	client *http.Client
	limit  int64 // bytes
	time   time.Duration
}

func newDownloader(httpProxy, noProxy string, guard *target.Guard) *downloader {
	through := (&httpproxy.Config{HTTPProxy: httpProxy, NoProxy: noProxy}).ProxyFunc()
	return &downloader{limit: maxListSize, time: downloadTime, client: &http.Client{
		Transport: &http.Transport{
			Proxy:             func(r *http.Request) (*url.URL, error) { return through(r.URL) },
			DialContext:       dialer(httpProxy, guard),
			DisableKeepAlives: true, DisableCompression: true,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Scheme != "http" || len(via) > maxRedirections {
				return fmt.Errorf("redirected to %s", r.URL.Redacted())
			}
			return nil
		},
	}}
}

// dialer returns a DialContext that connects to the proxy unconditionally. guard judges all other
// addresses.
func dialer(httpProxy string, guard *target.Guard) func(ctx context.Context, network, address string) (net.Conn, error) {
	free, judged := &net.Dialer{}, &net.Dialer{}
	if guard != nil {
		judged.Control = guard.Control
	}
	proxy := ""
	if u, err := url.Parse(httpProxy); err == nil && u.Host != "" {
		proxy = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"https": "443"}[u.Scheme], "80"))
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == proxy {
			return free.DialContext(ctx, network, address)
		}
		return judged.DialContext(ctx, network, address)
	}
}

func (d *downloader) fetch(ctx context.Context, address string) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" {
		return nil, errors.New("only http is fetched")
	}
	ctx, cancel := context.WithTimeout(ctx, d.time)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := d.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // what was read is judged by itself
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	return readList(response.Body, d.limit)
}

// readList reads a list of at most limit bytes in DER. It allocates once, by the length at the
// beginning of the list.
func readList(from io.Reader, limit int64) ([]byte, error) {
	var begin [8]byte
	n, err := io.ReadFull(from, begin[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if n == 0 || begin[0] != tagSequence {
		text := min(limit, maxTextSize)
		data, err := io.ReadAll(io.LimitReader(io.MultiReader(bytes.NewReader(begin[:n]), from), text+1))
		if err == nil && int64(len(data)) > text {
			err = fmt.Errorf("more than %d bytes", text)
		}
		return data, err
	}
	length, ok := der(begin[:n]).length()
	switch {
	case !ok || length < n:
		return nil, errEncoding
	case int64(length) > limit:
		return nil, fmt.Errorf("%d bytes, more than %d", length, limit)
	}
	data := make([]byte, length)
	copy(data, begin[:n])
	_, err = io.ReadFull(from, data[n:])
	return data, err
}
