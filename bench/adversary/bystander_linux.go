package adversary

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// figures are what bystanders saw.
type figures struct {
	requests, failed int
	first            string          // error
	took             []time.Duration // on connections that stay
	connected        []time.Duration // connecting included
}

// at is the time within which so many of a hundred requests were answered.
func (f *figures) at(percent int) time.Duration { return percentile(f.took, percent) }

// percentile sorts times and returns the one that so many of a hundred do not exceed.
func percentile(times []time.Duration, percent int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[min(len(times)*percent/100, len(times)-1)].Round(10 * time.Microsecond)
}

// bystander is a client that asks for a page at a fixed rate.
type bystander struct {
	url    string
	host   string
	client *http.Client
	fresh  bool // a connection for each request
}

// The load of a bystander: a request each, whether the one before was answered or not.
const (
	bystanderPeriod   = 20 * time.Millisecond
	bystanderPatience = 5 * time.Second
)

// newBystander connects to addr alone, with HTTP/2 by prior knowledge or HTTP/1.1, and for each request anew if fresh is set.
func newBystander(addr, host string, http2, fresh bool) *bystander {
	t := &http.Transport{
		Protocols: new(http.Protocols), MaxIdleConnsPerHost: 4, DisableKeepAlives: fresh,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, fmt.Errorf("cannot connect: %w", err)
			}
			return c, nil
		},
	}
	t.Protocols.SetHTTP1(!http2)
	t.Protocols.SetUnencryptedHTTP2(http2)
	return &bystander{url: "http://" + host + "/", host: host, client: &http.Client{Transport: t, Timeout: bystanderPatience}, fresh: fresh}
}

// ask asks once. Nothing is repeated: what fails has failed.
func (b *bystander) ask(ctx context.Context) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url, http.NoBody)
	if err != nil {
		return fmt.Errorf("cannot make request: %w", err)
	}
	a, err := b.client.Do(q)
	if err != nil {
		return fmt.Errorf("%s: %w", b.host, err)
	}
	defer a.Body.Close()
	if _, err := io.Copy(io.Discard, a.Body); err != nil {
		return fmt.Errorf("%s: %w", b.host, err)
	}
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d", b.host, a.StatusCode)
	}
	return nil
}

// run asks until ctx is done.
func (b *bystander) run(ctx context.Context, into *figures, mu *sync.Mutex) {
	var asked sync.WaitGroup
	defer b.client.CloseIdleConnections()
	defer asked.Wait()
	tick := time.NewTicker(bystanderPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asked.Go(func() {
			began := time.Now()
			err := b.ask(context.WithoutCancel(ctx))
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			into.requests++
			if b.fresh {
				into.connected = append(into.connected, took)
			} else {
				into.took = append(into.took, took)
			}
			if err != nil {
				if into.failed++; into.first == "" {
					into.first = err.Error()
				}
			}
		})
	}
}

// watch has bystanders ask for so long on the hosts of these names, over both protocols and on new connections, and looks at the
// router's memory meanwhile.
func (r *rig) watch(ctx context.Context, length time.Duration, names ...string) (*outcome, error) {
	oc := &outcome{}
	var mu sync.Mutex
	asking, end := context.WithTimeout(ctx, length)
	defer end()
	var running sync.WaitGroup
	for _, name := range names {
		for _, pod := range []string{"1", "2"} {
			host := name + pod + ".test"
			for _, http2 := range []bool{false, true} {
				running.Go(func() { newBystander(r.router.HTTP, host, http2, false).run(asking, &oc.figures, &mu) })
			}
			running.Go(func() { newBystander(r.router.HTTP, host, false, true).run(asking, &oc.figures, &mu) })
		}
	}
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for asking.Err() == nil {
		select {
		case <-asking.Done():
		case <-r.router.Exited():
			return nil, r.router.Died()
		case <-look.C:
			n, err := r.router.Resident()
			if err != nil {
				return nil, err
			}
			oc.resident = max(oc.resident, n)
		}
	}
	running.Wait()
	return oc, nil
}
