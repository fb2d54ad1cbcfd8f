package size

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ask asks a router for a live route and returns which service answered.
func ask(ctx context.Context, c *http.Client, route int) (service string, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://live-%d.size.test/", route), nil)
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

// load is clients that ask all routers for live routes without pause, half of them on a new connection each time.
type load struct {
	routers  []*replica
	stop     context.CancelFunc
	running  sync.WaitGroup
	asked    atomic.Int64
	failed   atomic.Int64
	mu       sync.Mutex
	failures []string // the first of them
}

// pace is between two requests of a client: the test is about what fails, and leaves the machine to others.
const pace = 5 * time.Millisecond

func startLoad(t *testing.T, routers []*replica) *load {
	l := &load{routers: routers}
	ctx, stop := context.WithCancel(t.Context())
	l.stop = stop
	for _, r := range routers {
		for _, fresh := range []bool{false, true} {
			c := r.http(httpPort)
			c.Transport.(*http.Transport).DisableKeepAlives = fresh
			l.running.Go(func() { l.run(ctx, c, r.name) })
		}
	}
	return l
}

func (l *load) run(ctx context.Context, c *http.Client, router string) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_, err := ask(ctx, c, rand.IntN(liveCount))
		if ctx.Err() != nil {
			return
		}
		l.asked.Add(1)
		if err == nil {
			continue
		}
		l.mu.Lock()
		if l.failed.Add(1); len(l.failures) < 10 {
			l.failures = append(l.failures, fmt.Sprintf("%s: %s: %v", time.Now().Format(time.TimeOnly), router, err))
		}
		l.mu.Unlock()
	}
}

// end stops the clients. No request may have failed.
func (l *load) end(t *testing.T) {
	l.stop()
	l.running.Wait()
	t.Logf("%d requests of clients during all of it, %d failed", l.asked.Load(), l.failed.Load())
	if l.failed.Load() > 0 {
		t.Errorf("requests failed:\n%s", strings.Join(l.failures, "\n"))
		for _, r := range l.routers {
			t.Log(r.failures(t.Context()))
		}
	}
}

// times are how long changes took until a router served them.
type times []time.Duration

func (ts times) String() string {
	slices.Sort(ts)
	at := func(share float64) time.Duration {
		return ts[min(int(share*float64(len(ts))), len(ts)-1)].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("p50 %s, p99 %s, longest %s", at(0.5), at(0.99), at(1))
}

// propagation gives a live route the other service n times and measures how long each router goes on with the first, from the moment the
// API server has said that it is done.
func propagation(t *testing.T, routers []*replica, n int) times {
	var all times
	clients := make([]*http.Client, len(routers))
	for i, r := range routers {
		clients[i] = r.http(httpPort)
	}
	for i := range n {
		route, next := i%liveCount, "b"
		if now, err := ask(t.Context(), clients[0], route); err != nil {
			t.Fatal(err)
		} else if now == "b" {
			next = "a"
		}
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"to": map[string]any{"name": next}}})
		check(t, err)
		_, err = shared.routes.RouteV1().Routes(live).Patch(t.Context(), fmt.Sprintf("live-%d", route), types.MergePatchType, patch, metav1.PatchOptions{})
		check(t, err)
		done := time.Now()
		took := make([]time.Duration, len(routers))
		var waiting sync.WaitGroup
		for k, c := range clients {
			waiting.Go(func() {
				for took[k] == 0 && time.Since(done) < patience {
					if got, err := ask(t.Context(), c, route); err == nil && got == next {
						took[k] = time.Since(done)
					}
				}
			})
		}
		waiting.Wait()
		for k, d := range took {
			if d == 0 {
				t.Fatalf("router %s does not serve a change", routers[k].name)
			}
		}
		all = append(all, took...)
	}
	return all
}
