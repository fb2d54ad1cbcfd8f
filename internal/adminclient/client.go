// Package adminclient asks the admin port of a running router.
package adminclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Client asks the admin port of a running router. Only Base is required.
type Client struct {
	Base           string      // its address, such as http://127.0.0.1:1936
	User, Password string      // "" = none
	Token          string      // bearer token; "" = none
	TLS            *tls.Config // nil = the system's
}

// ReadToken reads Token from a file; without a name nothing changes.
func (c *Client) ReadToken(file string) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read the token: %w", err)
	}
	c.Token = strings.TrimSpace(string(text))
	return nil
}

// mostAnswer is how many bytes of an answer are read.
const mostAnswer = 64 << 20

// JSON asks for a path and decodes the answer into value.
func (c *Client) JSON(ctx context.Context, path string, values url.Values, value any) error {
	var text bytes.Buffer
	if err := c.Ask(ctx, path, values, nil, &text); err != nil {
		return err
	}
	if err := json.Unmarshal(text.Bytes(), value); err != nil {
		return fmt.Errorf("cannot understand the router's answer: %w", err)
	}
	return nil
}

// Ask asks for a path and writes the answer to w. manifest is sent with POST, nil = GET.
func (c *Client) Ask(ctx context.Context, path string, values url.Values, manifest []byte, w io.Writer) error {
	base := c.Base
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil {
		return fmt.Errorf("cannot ask the router: %w", err)
	}
	u.Path, u.RawQuery = path, values.Encode()
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if manifest != nil {
		method, body = http.MethodPost, bytes.NewReader(manifest)
	}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return fmt.Errorf("cannot ask the router: %w", err)
	}
	if manifest != nil {
		r.Header.Set("Content-Type", "application/yaml")
	}
	switch {
	case c.Token != "":
		r.Header.Set("Authorization", "Bearer "+c.Token)
	case c.User != "":
		r.SetBasicAuth(c.User, c.Password)
	}
	transport := &http.Transport{TLSClientConfig: c.TLS, DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(r)
	if err != nil {
		return fmt.Errorf("cannot ask the router: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10)) // what there is of it
		return fmt.Errorf("the router at %s answers %s: %s", u.Host, answer.Status, strings.TrimSpace(string(text)))
	}
	n, err := io.Copy(w, io.LimitReader(answer.Body, mostAnswer+1))
	if err == nil && n > mostAnswer {
		err = errors.New("it is too long")
	}
	if err != nil {
		return fmt.Errorf("cannot read the router's answer: %w", err)
	}
	return nil
}
