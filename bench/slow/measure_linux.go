package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// latency is what a client saw.
type latency struct{ p50, p99, max time.Duration }

// measurer: clients that ask at a steady pace, far below what the router can do.
const (
	clients = 8
	pace    = 10 * time.Millisecond // between two requests of one client
)

// measure asks for d and returns the latencies. A request that fails is an error.
func measure(ctx context.Context, url string, d time.Duration) (latency, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var all sync.WaitGroup
	times := make([][]time.Duration, clients)
	errs := make([]error, clients)
	for i := range clients {
		all.Go(func() { times[i], errs[i] = client(ctx, url) })
	}
	all.Wait()
	joined := slices.Concat(times...)
	if err := errors.Join(errs...); err != nil || len(joined) == 0 {
		return latency{}, errors.Join(err, errors.New("no request was answered")) //nolint:wrapcheck // both are ours
	}
	slices.Sort(joined)
	at := func(part float64) time.Duration { return joined[int(part*float64(len(joined)-1))] }
	return latency{at(0.5), at(0.99), at(1)}, nil
}

// client asks over one connection, and opens a new one every so often.
func client(ctx context.Context, url string) (times []time.Duration, err error) {
	const perConnection = 50
	transport := &http.Transport{MaxIdleConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return times, nil
		case <-tick.C:
		}
		if i%perConnection == 0 {
			transport.CloseIdleConnections()
		}
		began := time.Now()
		if err := ask(transport, url); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
	}
}

// ask sends one request and reads its answer.
func ask(transport *http.Transport, url string) error {
	q, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("cannot make request: %w", err)
	}
	a, err := transport.RoundTrip(q)
	if err != nil {
		return fmt.Errorf("cannot ask: %w", err)
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot ask: status %s", a.Status)
	}
	if _, err := io.Copy(io.Discard, a.Body); err != nil {
		return fmt.Errorf("cannot read answer: %w", err)
	}
	return nil
}
