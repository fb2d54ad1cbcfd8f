package h1_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"turnout/internal/testkit"
)

// TestRealQueue: many clients on several loops, few places at two pods. No pod ever
// works on more requests than it may have, and every client gets its answer.
func TestRealQueue(t *testing.T) {
	const limit, clients, each = 3, 30, 20
	var most atomic.Int64
	pod := func() string {
		var running atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			n := running.Add(1)
			for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			}
			body, _ := io.ReadAll(q.Body)
			running.Add(-1) // before the answer: after it the router may send the next one
			_, _ = w.Write(body)
		}))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	r := testkit.StartRouter(t, 3, nil)
	spec := testkit.Spec("app.test", pod(), pod())
	spec.Limit = limit
	r.Publish(t, spec)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	for n := range clients {
		wg.Go(func() {
			for i := range each {
				if err := echo(client, r.Addr.String(), fmt.Sprintf("%d/%d", n, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := most.Load(); n > limit {
		t.Errorf("a pod had %d requests at a time, the limit is %d", n, limit)
	}
	pool := r.Registry.Pool(spec.RouteKey.String())
	if q := pool.Queue(); q.Most == 0 || q.Length != 0 {
		t.Errorf("queue %+v: nobody waited, or somebody still does", q)
	}
}

// echo posts a body and wants it back.
func echo(client *http.Client, addr, body string) error {
	q, err := http.NewRequest("POST", "http://"+addr+"/", io.MultiReader(strings.NewReader(body))) // a body that cannot be sent twice
	if err != nil {
		return err
	}
	q.Host = "app.test"
	resp, err := client.Do(q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || string(got) != body {
		return fmt.Errorf("status %d, %q for %q, %w", resp.StatusCode, got, body, err)
	}
	return nil
}
