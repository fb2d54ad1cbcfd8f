package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"time"
)

// fields are the values of a flag that may be repeated.
type fields []string

func (f *fields) String() string { return strings.Join(*f, ", ") }

func (f *fields) Set(text string) error {
	*f = append(*f, text)
	return nil
}

// get asks for a URL and prints the answer with its head. Certificates are not verified:
// the tests compare them themselves.
func get(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("get", flag.ContinueOnError)
	address := flags.String("address", "", "address to connect instead of the URL's host; the port stays")
	timeout := flags.Duration("timeout", 10*time.Second, "how long to wait")
	var header fields
	flags.Var(&header, "H", "NAME: VALUE of one more field")
	if err := flags.Parse(args); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, flags.Arg(0), nil)
	if err != nil {
		return err
	}
	for _, f := range header {
		name, value, _ := strings.Cut(f, ":")
		req.Header.Add(name, strings.TrimSpace(value))
	}
	client := &http.Client{
		Timeout:       *timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
				if _, port, err := net.SplitHostPort(to); err == nil && *address != "" {
					to = net.JoinHostPort(*address, port)
				}
				return new(net.Dialer).DialContext(ctx, network, to)
			},
		},
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := httputil.DumpResponse(resp, true)
	if err != nil {
		return err
	}
	if _, err := os.Stdout.Write(text); err != nil {
		return fmt.Errorf("cannot print the answer: %w", err)
	}
	return nil
}
