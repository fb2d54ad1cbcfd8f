package reactor

import (
	"sync"
	"sync/atomic"
)

// mailbox takes functions from any goroutine to the loop, in order.
type mailbox struct {
	mu     sync.Mutex
	queue  []call
	posted atomic.Bool // queue is not empty
	closed bool
	opened []call      // the loop's: taken from queue, the oldest first
	done   int         // of those, how many were run
	asleep atomic.Bool // the loop waits, or is about to: the caller that posts next must wake it
}

// putCall appends k; wake says that the caller must wake the loop.
func (m *mailbox) putCall(k call) (ok, wake bool) {
	m.mu.Lock()
	ok = !m.closed
	if ok {
		m.queue = append(m.queue, k)
		m.posted.Store(true)
	}
	m.mu.Unlock()
	return ok, ok && m.asleep.Load() && m.asleep.CompareAndSwap(true, false)
}

// sleep announces that the loop is about to wait. It returns false if there is mail already.
func (m *mailbox) sleep() bool {
	m.asleep.Store(true)
	return m.empty()
}

func (m *mailbox) awake() { m.asleep.Store(false) }

func (m *mailbox) empty() bool { return m.left() == 0 && !m.posted.Load() }

// open returns how many functions next may return before open is called again: those that an
// earlier call has left, or else what was posted since. It is called on the loop.
func (m *mailbox) open() int {
	if m.left() == 0 && m.posted.Load() {
		m.fetch()
	}
	return m.left()
}

// fetch takes what was posted. Nothing is left of what was taken before.
func (m *mailbox) fetch() {
	spare := m.opened[:0]
	if cap(spare) > maxSpareMail {
		spare = nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened, m.queue, m.done = m.queue, spare, 0
	m.posted.Store(false)
}

// maxSpareMail is the length of the longest list that is kept for further functions.
const maxSpareMail = 4096

// left returns how many functions were opened and not run.
func (m *mailbox) left() int { return len(m.opened) - m.done }

// next takes the oldest function. open has returned that there is one.
func (m *mailbox) next() (k call) {
	k, m.opened[m.done] = m.opened[m.done], call{}
	m.done++
	return k
}

// close refuses all further mail.
func (m *mailbox) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
}
