package soak

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"sync"

	"golang.org/x/net/http2"
)

// streams is a connection of HTTP/2 that is opened when it is needed. Unlike the client of net/http it repeats nothing.
type streams struct {
	s    *scene
	host string

	c    *http2.ClientConn
	used int // turns
}

// What a connection of HTTP/2 is used for.
const (
	parallelStreams = 10
	mostTurns       = 200
)

func (t *streams) drop() {
	if t.c != nil {
		_ = t.c.Close()
		t.c = nil
	}
}

func (t *streams) connect() error {
	if t.used++; t.used%mostTurns == 0 {
		t.drop()
	}
	if t.c != nil {
		return nil
	}
	c, err := dial("", t.s.router.HTTPS, true, clientTLS(t.host, nil, "h2"))
	if err != nil {
		return err
	}
	if t.c, err = new(http2.Transport).NewClientConn(c); err != nil {
		_ = c.Close()
		return fmt.Errorf("cannot begin with HTTP/2: %w", err)
	}
	return nil
}

// turn asks for pages, several at once.
func (t *streams) turn() (int, error) {
	if err := t.connect(); err != nil {
		return 1, err
	}
	errs := make([]error, parallelStreams)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = t.page() })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return parallelStreams, err
		}
	}
	return parallelStreams, nil
}

func (t *streams) page() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+t.host+"/", http.NoBody)
	if err != nil {
		return fmt.Errorf("cannot make a request: %w", err)
	}
	resp, err := t.c.RoundTrip(q)
	if err != nil {
		return fmt.Errorf("cannot ask: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("cannot read an answer: %w", err)
	}
	if err := expect(resp); err != nil {
		return err
	}
	_, err = netip.ParseAddrPort(string(text))
	return err //nolint:wrapcheck // names what it got
}

// calls are streams that go both ways, as those of gRPC do.
type calls struct{ streams }

// messages of a call; each is answered before the next is sent.
const messages = 10

func (t *calls) turn() (int, error) {
	if err := t.connect(); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	in, out := io.Pipe()
	defer func() { _ = out.Close() }()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+t.host+"/stream", in)
	if err != nil {
		return 1, fmt.Errorf("cannot make a request: %w", err)
	}
	q.Header.Set("Content-Type", "application/grpc")
	q.Header.Set("TE", "trailers")
	resp, err := t.c.RoundTrip(q)
	if err != nil {
		return 1, fmt.Errorf("cannot call: %w", err)
	}
	defer resp.Body.Close()
	if err := expect(resp); err != nil {
		return 1, err
	}
	for i := range messages {
		message := fmt.Sprintf("message %d", i)
		if _, err := io.WriteString(out, message); err != nil {
			return 1, fmt.Errorf("cannot send message %d of a call: %w", i, err)
		}
		got := make([]byte, len(message))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != message {
			return 1, fmt.Errorf("message %d of a call came back as %q: %w", i, got, err)
		}
	}
	_ = out.Close()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
		return 1, fmt.Errorf("a call ended with %q: %w", rest, err)
	}
	if status := resp.Trailer.Get("Grpc-Status"); status != "0" {
		return 1, fmt.Errorf("the status of a call is %q", status)
	}
	return 1, nil
}
