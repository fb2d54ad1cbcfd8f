package router

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"turnout/test/kube/internal/pods"
)

// Response is what a client gets.
type Response struct {
	Code   int
	Header http.Header
	Pod    pods.Answer // of the pod that answered; zero when the router answered itself
	Cert   string      // common name of the certificate; "" without TLS
	Serial string      // its serial number
}

// Get asks the router for a URL, over a connection of its own, as a client would whose
// name server knows the router. The URL's scheme chooses the port.
func (r *Router) Get(rawURL string) (Response, error) {
	c := r.Client(false)
	defer c.http.CloseIdleConnections()
	return c.Get(rawURL)
}

// Client asks a router.
type Client struct {
	http *http.Client
}

// Client makes a client of the router. With keepAlive it uses one connection for many
// requests to one scheme and host.
func (r *Router) Client(keepAlive bool) *Client {
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(r.IP, port))
	}
	return &Client{http: &http.Client{
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives: !keepAlive, DialContext: dial,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // tests compare certificates
		},
	}}
}

// Get asks for a URL.
func (c *Client) Get(rawURL string) (Response, error) {
	resp, err := c.http.Get(rawURL)
	if err != nil {
		return Response{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Response{}, err
	}
	got := Response{Code: resp.StatusCode, Header: resp.Header}
	if resp.TLS != nil {
		leaf := resp.TLS.PeerCertificates[0]
		got.Cert, got.Serial = leaf.Subject.CommonName, leaf.SerialNumber.String()
	}
	if resp.Header.Get("Content-Type") == "application/json" {
		if err := json.Unmarshal(body, &got.Pod); err != nil {
			return got, fmt.Errorf("cannot read the answer of a pod: %w", err)
		}
	}
	return got, nil
}
