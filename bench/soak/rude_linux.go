package soak

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// sips are downloads that are read slowly, over HTTP/1.1, and then left.
type sips struct{ lane }

// What slow readers and those who leave read, in bytes, and how long they take.
const (
	sipSize  = 16 << 10
	sipCount = 10
	sipPause = 50 * time.Millisecond
	glance   = 1000
)

func (p *sips) turn() (int, error) {
	p.drop()
	c, err := dial(p.s.router.HTTP, p.s.router.HTTPS, p.cfg != nil, p.cfg)
	if err != nil {
		return 1, err
	}
	p.c = c
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, "GET /large HTTP/1.1\r\nHost: "+p.host+"\r\n\r\n"); err != nil {
		return 1, fmt.Errorf("cannot ask for a download: %w", err)
	}
	b := make([]byte, sipSize)
	for range sipCount {
		if _, err := io.ReadFull(c, b); err != nil {
			return 1, fmt.Errorf("cannot read a download slowly: %w", err)
		}
		<-time.NewTimer(sipPause).C // that is how slow they are
	}
	p.drop()
	return 1, nil
}

// glances are downloads on streams that are given up after a look at them; the connection is used again.
type glances struct{ streams }

func (t *glances) turn() (int, error) {
	if err := t.connect(); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+t.host+"/large", http.NoBody)
	if err != nil {
		return 1, fmt.Errorf("cannot make a request: %w", err)
	}
	resp, err := t.c.RoundTrip(q)
	if err != nil {
		return 1, fmt.Errorf("cannot ask for a download: %w", err)
	}
	defer resp.Body.Close() // which resets the stream
	if err := expect(resp); err != nil {
		return 1, err
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, glance)); err != nil {
		return 1, fmt.Errorf("cannot look at a download: %w", err)
	}
	return 1, nil
}
