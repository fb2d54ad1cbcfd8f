package gatewayscale

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// client is one whose connections all lead to a Gateway.
func client(address string, fresh bool) *http.Client {
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: fresh,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(address, "80"))
		},
	}}
}

// ask asks for a host and returns which Service answered.
func ask(ctx context.Context, c *http.Client, host string) (service string, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/", nil)
	if err != nil {
		return "", err
	}
	resp, err := c.Do(q)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d, %s", resp.StatusCode, cmp.Or(resp.Header.Get("X-Turnout-Reason"), "of the pod"))
	}
	service, _, _ = strings.Cut(resp.Header.Get("X-Pod-Name"), "-")
	return service, nil
}

// load is clients that ask for a host without pause, half of them on a new connection each time.
type load struct {
	stop     context.CancelFunc
	running  sync.WaitGroup
	asked    atomic.Int64
	failed   atomic.Int64
	mu       sync.Mutex
	failures []string // the first of them
}

// pace is between two requests of a client: the test is about what fails, and leaves the machine to others.
const pace = 5 * time.Millisecond

func startLoad(t *testing.T, address, host string) *load {
	l := new(load)
	ctx, stop := context.WithCancel(t.Context())
	l.stop = stop
	for i := range 6 {
		l.running.Go(func() { l.run(ctx, client(address, i%2 == 1), host) })
	}
	return l
}

func (l *load) run(ctx context.Context, c *http.Client, host string) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_, err := ask(ctx, c, host)
		if ctx.Err() != nil {
			return
		}
		l.asked.Add(1)
		if err == nil {
			continue
		}
		l.mu.Lock()
		if l.failed.Add(1); len(l.failures) < 10 {
			l.failures = append(l.failures, fmt.Sprintf("%s: %v", time.Now().Format(time.TimeOnly), err))
		}
		l.mu.Unlock()
	}
}

// end stops the clients. No request may have failed.
func (l *load) end(t *testing.T) {
	l.stop()
	l.running.Wait()
	if l.failed.Load() > 0 {
		t.Errorf("requests failed:\n%s", strings.Join(l.failures, "\n"))
	}
}

// times are how long something took.
type times []time.Duration

func (ts times) at(share float64) time.Duration {
	slices.Sort(ts)
	return ts[min(int(share*float64(len(ts))), len(ts)-1)].Round(100 * time.Microsecond)
}

func (ts times) String() string { return fmt.Sprintf("%s / %s", ts.at(0.5), ts.at(0.99)) }
