// Package load is clients that ask without a pause, in tests that change or break something meanwhile.
package load

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// mostFailures is how many failures Clients keep.
const mostFailures = 10

// Clients ask until they are stopped. The zero value is ready for Go.
type Clients struct {
	running       sync.WaitGroup
	asked, failed atomic.Int64

	mu       sync.Mutex
	failures []string // the first of them
}

// Go starts a client, which calls ask each pace until ctx ends. An error is a failed request, unless ctx has ended.
func (c *Clients) Go(ctx context.Context, pace time.Duration, ask func(context.Context) error) {
	c.running.Go(func() {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			err := ask(ctx)
			if ctx.Err() != nil {
				return
			}
			c.count(err)
		}
	})
}

func (c *Clients) count(err error) {
	c.asked.Add(1)
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed.Add(1); len(c.failures) < mostFailures {
		c.failures = append(c.failures, time.Now().Format("15:04:05.000")+" "+err.Error())
	}
}

// Wait waits until all contexts of Go have ended, and fails the test if a request has failed or there was none. It returns how many there were
// and how many of them failed.
func (c *Clients) Wait(t testing.TB) (asked, failed int64) {
	t.Helper()
	c.running.Wait()
	asked, failed = c.asked.Load(), c.failed.Load()
	t.Logf("%d requests of clients, %d failed", asked, failed)
	switch {
	case failed > 0:
		t.Errorf("requests failed:\n%s", strings.Join(c.failures, "\n"))
	case asked == 0:
		t.Error("clients asked for nothing")
	}
	return asked, failed
}

// Ask asks for a host and returns which Service's pod has answered. An answer that is not 200 is an error, which has the router's reason.
func Ask(ctx context.Context, client *http.Client, host string) (service string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/", nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return "", fmt.Errorf("%s: %w", host, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: status %d, %s", host, response.StatusCode, cmp.Or(response.Header.Get("X-Turnout-Reason"), "of the pod"))
	}
	service, _, _ = strings.Cut(response.Header.Get("X-Pod-Name"), "-")
	return service, nil
}

// Times are how long something took.
type Times []time.Duration

// At is the time that a share of all, from 0 to 1, did not exceed; 0 if there is none. It sorts the times.
func (ts Times) At(share float64) time.Duration {
	if len(ts) == 0 {
		return 0
	}
	slices.Sort(ts)
	return ts[min(int(share*float64(len(ts))), len(ts)-1)].Round(100 * time.Microsecond)
}

// String has the median, the 99th percentile and the longest.
func (ts Times) String() string {
	return fmt.Sprintf("p50 %s, p99 %s, longest %s", ts.At(0.5), ts.At(0.99), ts.At(1))
}
