package tlsmux

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"turnout/internal/reactor"
)

const (
	// shares is how many parts each queue has. An address belongs to one of them, and they have their turns one after
	// the other: who sends many handshakes keeps waiting mostly others of its own.
	shares = 16
	// threadIdle is how long a thread without work is kept.
	threadIdle = time.Second
	// background is how much nicer than the rest of the process a thread for handshakes with clients is. While an event
	// loop of the same core has something to do it gets a tenth of the time: enough for clients to connect to a busy router.
	background = 10
)

// task is something to compute.
type task interface {
	// step is called on t, which it may bind itself to for the steps that follow.
	step(t *thread)
}

// job is a task in a queue, or not in any.
type job struct {
	task  task
	kind  Work
	share uint8
	home  *thread // the only thread it may run on; nil = any of the pool
	list  *jobs   // where it waits
	next  *job
	prev  *job
}

// jobs is a list, the oldest first.
type jobs struct{ first, last *job }

func (l *jobs) push(j *job) {
	j.list = l
	if j.prev = l.last; j.prev != nil {
		j.prev.next = j
	} else {
		l.first = j
	}
	l.last = j
}

func (l *jobs) remove(j *job) {
	if j.prev != nil {
		j.prev.next = j.next
	} else {
		l.first = j.next
	}
	if j.next != nil {
		j.next.prev = j.prev
	} else {
		l.last = j.prev
	}
	j.list, j.prev, j.next = nil, nil, nil
}

// queue has the jobs of a kind that any thread may run.
type queue struct {
	shares [shares]jobs
	turn   int // whose turn it is
}

// first is who is next, nil = nobody.
func (q *queue) first() *job {
	for range shares {
		if j := q.shares[q.turn].first; j != nil {
			return j
		}
		q.turn = (q.turn + 1) % shares
	}
	return nil
}

// pool is a few threads for a few kinds of work. Threads begin when they are needed, and end some time after.
type pool struct {
	size       int
	background bool // the threads have a lower priority
	stats      *[Works]WorkStats

	mu      sync.Mutex
	threads int
	idle    []*thread
	queues  [Works]queue
	count   [Works]int           // waiting, those that have a home too
	spent   [Works]time.Duration // what each kind had, counted from when it last began to wait
}

// thread is one of the system, which belongs to a pool.
type thread struct {
	pool  *pool
	own   jobs          // those that have it as their home
	bound int           // thread: how many tasks have it as their home
	wake  chan struct{} // capacity 1: there may be a job
}

// put has a job done. The pool has it until its step begins.
func (p *pool) put(j *job) {
	p.mu.Lock()
	if p.count[j.kind]++; p.count[j.kind] == 1 {
		p.join(j.kind)
	}
	var t *thread
	if t = j.home; t != nil {
		t.own.push(j)
		if i := slices.Index(p.idle, t); i >= 0 {
			p.idle = slices.Delete(p.idle, i, i+1)
		}
	} else {
		p.queues[j.kind].shares[j.share].push(j)
		if n := len(p.idle); n > 0 {
			t = p.idle[n-1]
			p.idle = p.idle[:n-1]
		} else if p.threads < p.size {
			p.threads++
			go (&thread{pool: p, wake: make(chan struct{}, 1)}).run()
		}
	}
	p.mu.Unlock()
	if t != nil {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// take takes a job back. false: it has begun.
func (p *pool) take(j *job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.list == nil {
		return false
	}
	p.drop(j)
	return true
}

func (p *pool) drop(j *job) {
	j.list.remove(j)
	p.count[j.kind]--
}

// join lets a kind begin to wait: what it did not use before is not its due now.
func (p *pool) join(kind Work) {
	least, others := time.Duration(0), false
	for i := range p.count {
		if Work(i) != kind && p.count[i] > 0 && (!others || p.spent[i] < least) {
			least, others = p.spent[i], true
		}
	}
	if others {
		p.spent[kind] = max(p.spent[kind], least)
		return
	}
	clear(p.spent[:])
}

func (p *pool) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, c := range p.count {
		n += c
	}
	return n
}

// run is the thread. It ends with the goroutine, which never gives it back: its priority is not that of others.
func (t *thread) run() {
	runtime.LockOSThread()
	if t.pool.background {
		reactor.LowerPriority(background)
	}
	rest := time.NewTimer(threadIdle)
	defer rest.Stop()
	for {
		if j := t.next(); j != nil {
			began := time.Now()
			kind := j.kind
			j.task.step(t)
			t.pool.used(kind, time.Since(began))
			continue
		}
		rest.Reset(threadIdle)
		select {
		case <-t.wake:
		case <-rest.C:
			if t.bound == 0 && t.leave() {
				return
			}
		}
	}
}

// next takes the job that is next: of the kind that had the least. nil = there is none, and the thread is idle.
func (t *thread) next() *job {
	p := t.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	best := t.own.first
	for i := range p.queues {
		if p.count[i] == 0 || best != nil && p.spent[i] >= p.spent[best.kind] {
			continue
		}
		if j := p.queues[i].first(); j != nil {
			best = j
		}
	}
	if best == nil {
		if !slices.Contains(p.idle, t) {
			p.idle = append(p.idle, t)
		}
		return nil
	}
	if best.home == nil {
		p.queues[best.kind].turn = (int(best.share) + 1) % shares
	}
	p.drop(best)
	return best
}

// leave ends a thread unless somebody is about to give it a job.
func (t *thread) leave() bool {
	p := t.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.idle, t)
	if i < 0 {
		return false
	}
	p.idle = slices.Delete(p.idle, i, i+1)
	p.threads--
	return true
}

// used accounts for what a job of a kind has had.
func (p *pool) used(kind Work, took time.Duration) {
	p.stats[kind].count(took)
	p.mu.Lock()
	p.spent[kind] += took
	p.mu.Unlock()
}
