// Package webhook is strategy Webhook: a server of the administrator's chooses a router for each route.
//
// It gets a POST with a Question, and answers 200 with an Answer, both as JSON (RFC 8259). docs/sharding.md shows them. Whatever else it does is
// an error that is taken to be transient: the route waits, its annotation says why, and the server is asked again after a pause.
package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"turnout/controller/shard"
	"turnout/internal/keypair"
	"turnout/internal/target"
)

// Bounds of questions.
const (
	DefaultTimeout = 5 * time.Second
	Concurrency    = 8        // questions at once
	maxAnswer      = 64 << 10 // bytes of an answer that are read
	maxQuoted      = 200      // bytes of an answer, or of what the server says is wrong, that are shown to users
	idle           = 90 * time.Second
)

// Config is which server is asked.
type Config struct {
	URL     string        // http or https
	CA      []byte        // PEM certificates that the server is verified against; empty: those of the system
	Timeout time.Duration // of a question, with connecting and reading the answer; 0: DefaultTimeout
}

// Question is what the server gets.
type Question struct {
	Version int      `json:"version"` // 1; fields may be added without another number
	Route   Route    `json:"route"`
	Routers []Router `json:"routers"` // those that may have the route, at least one, sorted by name
}

// Route is what the server gets to know of the route.
type Route struct {
	Namespace       string            `json:"namespace"`
	Name            string            `json:"name"`
	UID             string            `json:"uid"`
	Host            string            `json:"host,omitempty"` // absent: the system gives it a name
	Path            string            `json:"path,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
}

// Router is what the server gets to know of a router.
type Router struct {
	Name              string            `json:"name"`
	Labels            map[string]string `json:"labels,omitempty"`
	Domain            string            `json:"domain,omitempty"`
	Routes            int               `json:"routes"` // bound to it now
	RequestsPerSecond int               `json:"requestsPerSecond"`
	Capacity          int               `json:"capacity,omitempty"`         // routes; absent: no limit
	RequestsCapacity  int               `json:"requestsCapacity,omitempty"` // requests per second; absent: unknown
}

// Answer is what the server answers.
type Answer struct {
	Router string `json:"router"`          // name of one of those that were given
	Error  string `json:"error,omitempty"` // why there is none; shown to the route's user
}

// Hook is the strategy. It is made by New, may be used by many goroutines, and is closed by Close.
type Hook struct {
	url     string
	timeout time.Duration
	client  *http.Client
}

// New returns the strategy that asks a server. Proxies of the environment are not used, and redirects not followed. It asks nothing yet: an error is one of Config.
func New(config Config) (*Hook, error) {
	u, err := url.Parse(config.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("cannot use the URL of the webhook: it has to be a URL with http or https, such as https://chooser.example.com/")
	}
	// The URL is the administrator's, but its host name must not lead to the credentials of the
	// machine.
	var guard target.Guard
	guard.Set(target.NewPolicy(true, nil))
	t := &http.Transport{
		DialContext:     (&net.Dialer{Control: guard.Control}).DialContext,
		MaxConnsPerHost: Concurrency, MaxIdleConnsPerHost: Concurrency, IdleConnTimeout: idle, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxAnswer,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if len(config.CA) > 0 {
		if t.TLSClientConfig.RootCAs, err = authorities(config.CA); err != nil {
			return nil, fmt.Errorf("cannot use the caBundle of the webhook: %w", err)
		}
	}
	h := &Hook{url: config.URL, timeout: config.Timeout, client: &http.Client{
		Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if h.timeout <= 0 {
		h.timeout = DefaultTimeout
	}
	return h, nil
}

func authorities(text []byte) (*x509.CertPool, error) {
	blocks, err := keypair.Decode(text)
	if err != nil {
		return nil, err //nolint:wrapcheck // New says of what
	}
	pool := x509.NewCertPool()
	for _, b := range blocks {
		c, err := x509.ParseCertificate(b.Bytes)
		if b.Type != "CERTIFICATE" || err != nil {
			return nil, fmt.Errorf("a block of type %q is no certificate", b.Type)
		}
		pool.AddCert(c)
	}
	if len(blocks) == 0 {
		return nil, errors.New("there is no certificate in PEM")
	}
	return pool, nil
}

// Close ends connections that nothing is asked on.
func (h *Hook) Close() { h.client.CloseIdleConnections() }

// Concurrency is shard.Slow's.
func (h *Hook) Concurrency() int { return Concurrency }

// Schedule is shard.Strategy's. It waits for the answer, at most for the timeout.
func (h *Hook) Schedule(route *shard.Route, routers []*shard.Router) (*shard.Router, error) {
	answer, err := h.ask(question(route, routers))
	switch {
	case err != nil:
		return nil, err
	case answer.Error != "":
		return nil, errors.New("the webhook says: " + quote(answer.Error))
	}
	i := slices.IndexFunc(routers, func(r *shard.Router) bool { return r.Name == answer.Router })
	if i < 0 {
		return nil, fmt.Errorf("the webhook chose router %s, which is none of the %d that may have the route", quote(answer.Router), len(routers))
	}
	return routers[i], nil
}

func question(r *shard.Route, routers []*shard.Router) *Question {
	q := &Question{
		Version: 1,
		Route: Route{
			Namespace: r.Namespace, Name: r.Name, UID: r.UID, Host: r.Host, Path: r.Path, Labels: r.Labels.Map(), NamespaceLabels: r.NamespaceLabels.Map(),
		},
		Routers: make([]Router, len(routers)),
	}
	for i, e := range routers {
		q.Routers[i] = Router{
			Name: e.Name, Labels: e.Labels.Map(), Domain: e.Domain, Routes: e.Bound, RequestsPerSecond: e.RequestsPerSecond,
			Capacity: e.Capacity, RequestsCapacity: e.RequestsCapacity,
		}
	}
	return q
}

// ask sends a question and reads the answer.
func (h *Hook) ask(q *Question) (*Answer, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("cannot write the question to the webhook: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("cannot ask the webhook: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := h.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the webhook: %w", cause(err, h.timeout))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the answer of the webhook: %w", cause(err, h.timeout))
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("cannot read the answer of the webhook: it is longer than %d bytes", maxAnswer)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the webhook answered with status %d: %s", response.StatusCode, quote(string(text)))
	}
	answer := &Answer{}
	if err := json.Unmarshal(text, answer); err != nil {
		return nil, fmt.Errorf("cannot read the answer of the webhook: %w: %s", err, quote(string(text)))
	}
	return answer, nil
}

// cause is the part of an error that says what is wrong: what net/http puts around it has the URL, which may hold a secret.
func cause(err error, timeout time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v", timeout)
	}
	var around *url.Error
	if errors.As(err, &around) {
		return around.Err
	}
	return err
}

// quote is the beginning of a text of others, in quotation marks and without control characters.
func quote(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxQuoted)], "")
	return fmt.Sprintf("%q", text)
}
