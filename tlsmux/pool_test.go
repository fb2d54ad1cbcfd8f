package tlsmux

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestThreadGivesUpItsSlot: where there is one slot of the Go scheduler only, others get it after a millisecond of computing, not
// after the ten that the scheduler would wait.
func TestThreadGivesUpItsSlot(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const jobs = 5
	w := newWorkers(t, WorkersConfig{Handshakes: 1})
	var done atomic.Int64
	first, last := make(chan struct{}), make(chan struct{})
	letGo := occupy(t, w)
	for range jobs {
		w.pool.putJob(&job{kind: WorkRSA, use: func() {
			for began := time.Now(); time.Since(began) < slotTime; {
				continue
			}
			switch done.Add(1) {
			case 1:
				close(first)
			case jobs:
				close(last)
			}
		}})
	}
	letGo()
	<-first
	if n := done.Load(); n > 2 {
		t.Errorf("%d jobs were done before anybody else had the slot", n)
	}
	get(t, "the last job", last)
}
