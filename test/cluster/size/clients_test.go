package size

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"turnout/test/cluster/load"
)

// host is that of a live route.
func host(route int) string { return fmt.Sprintf("live-%d.size.test", route) }

// pace is between two requests of a client: the test is about what fails, and leaves the machine to others.
const pace = 5 * time.Millisecond

// startLoad has clients ask all routers for live routes until end, half of them on a new connection each time. No request may fail.
func startLoad(t *testing.T, routers []*replica) (end func()) {
	ctx, stop := context.WithCancel(t.Context())
	clients := new(load.Clients)
	for _, r := range routers {
		for _, fresh := range []bool{false, true} {
			c := r.http(httpPort)
			c.Transport.(*http.Transport).DisableKeepAlives = fresh
			clients.Go(ctx, pace, func(ctx context.Context) error {
				if _, err := load.Ask(ctx, c, host(rand.IntN(liveCount))); err != nil {
					return fmt.Errorf("%s: %w", r.name, err)
				}
				return nil
			})
		}
	}
	return func() {
		stop()
		if _, failed := clients.Wait(t); failed > 0 {
			for _, r := range routers {
				t.Log(r.failures(t.Context()))
			}
		}
	}
}

// propagation gives a live route the other service n times and measures how long each router goes on with the first, from the moment the
// API server has said that it is done.
func propagation(t *testing.T, routers []*replica, n int) load.Times {
	var all load.Times
	clients := make([]*http.Client, len(routers))
	for i, r := range routers {
		clients[i] = r.http(httpPort)
	}
	for i := range n {
		route, next := i%liveCount, "b"
		if now, err := load.Ask(t.Context(), clients[0], host(route)); err != nil {
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
					if got, err := load.Ask(t.Context(), c, host(route)); err == nil && got == next {
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
