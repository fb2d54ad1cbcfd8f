package logging

import (
	"fmt"
	"io"
	"sync"
	"time"

	"turnout/internal/crew"
)

// QueueBytes is how many bytes of lines may wait for the reader of the log.
const QueueBytes = 1 << 20

// Patience is how long the end of the process waits for the reader of a log.
const Patience = time.Second

// Queue writes lines on a goroutine of its own, so that the caller does not wait for the reader: a log collector that
// hangs must hold up neither changes of routes nor the end of the process. Lines that do not fit are lost, and a line says
// how many once lines fit again.
type Queue struct {
	w     io.Writer
	limit int
	wake  chan struct{} // one slot; closed by Close
	done  chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	waiting []byte // whole lines
	lost    int    // lines
	ended   bool
}

// NewQueue starts the goroutine, which Close ends. limit is in bytes.
func NewQueue(w io.Writer, limit int) *Queue {
	q := &Queue{w: w, limit: limit, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// Write takes whole lines. It never waits and never fails.
func (q *Queue) Write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended || len(q.waiting)+len(p) > q.limit {
		q.lost++
		return len(p), nil
	}
	q.waiting = append(q.waiting, p...)
	select {
	case q.wake <- struct{}{}:
	default: // it is awake
	}
	return len(p), nil
}

func (q *Queue) run() {
	defer close(q.done)
	var batch []byte
	for range q.wake {
		batch = q.drain(batch)
	}
	q.drain(batch) // what came before the end
}

// drain writes all that waits. It uses the memory of batch and returns memory for the next one.
func (q *Queue) drain(batch []byte) []byte {
	for {
		q.mu.Lock()
		lost := q.lost
		q.lost = 0
		batch, q.waiting = q.waiting, batch[:0]
		q.mu.Unlock()
		if lost > 0 { // they came after those that waited
			batch = fmt.Appendf(batch, `{"level":"warn","ts":%q,"msg":"lines of this log were lost because nobody read it","lines":%d}`+"\n",
				time.Now().UTC().Format(timeLayout), lost)
		}
		if len(batch) == 0 {
			return batch
		}
		_, _ = q.w.Write(batch) // there is no other log to say so
	}
}

// Close writes what waits and ends the goroutine. It gives up after patience. Lines that come later are lost. Any
// goroutine may call it, also more than once.
func (q *Queue) Close(patience time.Duration) {
	q.mu.Lock()
	if !q.ended {
		q.ended = true
		close(q.wake)
	}
	q.mu.Unlock()
	crew.Within(patience, q.done)
}
