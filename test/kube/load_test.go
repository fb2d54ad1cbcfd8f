package kube

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const mergePatch = types.MergePatchType

// fill calls do for 0 to count-1, some at a time.
func fill(t testing.TB, count int, do func(ctx context.Context, i int) error) {
	t.Helper()
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := int(next.Add(1) - 1); i < count && !t.Failed(); i = int(next.Add(1) - 1) {
				if err := do(t.Context(), i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// pace calls do perSecond times a second for a while, with a number of workers. Calls that
// cannot be made in time are made up for.
func pace(t testing.TB, perSecond int, duration time.Duration, workers int, do func(ctx context.Context, i int) error) {
	t.Helper()
	start, total := time.Now(), int(duration.Seconds()*float64(perSecond))
	var next atomic.Int64
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := int(next.Add(1) - 1); i < total && !t.Failed(); i = int(next.Add(1) - 1) {
				<-time.After(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
				if err := do(t.Context(), i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if rate := float64(total) / time.Since(start).Seconds(); rate < float64(perSecond)/2 {
		t.Logf("the API server took %.0f changes per second only", rate)
	}
}
