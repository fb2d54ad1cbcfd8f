package reactor

import (
	"sync"
	"sync/atomic"
)

// mailbox takes functions from any goroutine to the loop, in order.
type mailbox struct {
	mu     sync.Mutex
	queue  []call
	closed bool
	spare  []call      // the loop's
	asleep atomic.Bool // the loop waits, or is about to: the caller that posts next must wake it
}

// putCall appends k; wake says that the caller must wake the loop.
func (m *mailbox) putCall(k call) (ok, wake bool) {
	m.mu.Lock()
	ok = !m.closed
	if ok {
		m.queue = append(m.queue, k)
	}
	m.mu.Unlock()
	return ok, ok && m.asleep.Load() && m.asleep.CompareAndSwap(true, false)
}

// sleep announces that the loop is about to wait. It says false when there is mail already.
func (m *mailbox) sleep() bool {
	m.asleep.Store(true)
	return m.empty()
}

func (m *mailbox) awake() { m.asleep.Store(false) }

func (m *mailbox) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.queue) == 0
}

// run calls what was posted before it began, and after each of them between.
func (m *mailbox) run(between func()) {
	m.mu.Lock()
	calls := m.queue
	if len(calls) > 0 {
		m.queue, m.spare = m.spare, nil
	}
	m.mu.Unlock()
	if len(calls) == 0 {
		return
	}
	for i, k := range calls {
		calls[i] = call{}
		k.do()
		between()
	}
	if cap(calls) <= 4096 {
		m.spare = calls[:0]
	}
}

// close refuses all further mail.
func (m *mailbox) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
}
