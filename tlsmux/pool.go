package tlsmux

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"turnout/internal/list"
	"turnout/internal/reactor"
)

// threadIdle is how long a thread without work is kept.
const threadIdle = time.Second

// threadNice is by how much the threads are nicer than the others of the process: on a core that an event loop needs as well they
// get a tenth.
const threadNice = 10

// pool is a few nice threads for all kinds of work. Threads begin when they are needed, and end some time after.
type pool struct {
	size  int
	stats *[Works]WorkStats // counts what was computed

	mu      sync.Mutex
	threads int
	idle    []*thread
	backlog backlog
}

// thread is one of the system, which belongs to a pool.
type thread struct {
	pool     *pool
	own      list.List[job] // those that have it as their home
	wake     chan struct{}  // capacity 1: there may be a job
	routines routines       // of handshakes that have it as their home
}

// putJob has a job done. The pool has it until its step begins.
func (p *pool) putJob(j *job) {
	p.mu.Lock()
	p.backlog.putJob(j)
	var t *thread
	if t = j.home; t != nil {
		if i := slices.Index(p.idle, t); i >= 0 {
			p.idle = slices.Delete(p.idle, i, i+1)
		}
	} else if n := len(p.idle); n > 0 {
		t = p.idle[n-1]
		p.idle = p.idle[:n-1]
	} else if p.threads < p.size {
		p.threads++
		go (&thread{pool: p, wake: make(chan struct{}, 1)}).run()
	}
	p.mu.Unlock()
	if t != nil {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// takeBack takes a job back. false: it has begun.
func (p *pool) takeBack(j *job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.backlog.takeBack(j)
}

func (p *pool) waitingOf(kind Work) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.backlog.count[kind]
}

func (p *pool) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.backlog.waiting()
}

// slotTime is how long a thread computes until it gives up its slot of the Go scheduler for a moment: event loops and the collector
// of garbage may wait for one, and the scheduler itself takes it away after 10 ms only.
const slotTime = time.Millisecond

// run is the thread. It ends with the goroutine, which never gives it back: its priority is not that of others.
func (t *thread) run() {
	runtime.LockOSThread()
	reactor.LowerPriority(threadNice)
	var computed time.Duration // since it gave up its slot
	rest := time.NewTimer(threadIdle)
	defer rest.Stop()
	for {
		if j := t.nextJob(); j != nil {
			began := time.Now()
			kind := j.kind
			j.compute(t)
			took := time.Since(began)
			t.pool.used(kind, took)
			reactor.YieldCore()
			if computed += took; computed >= slotTime {
				computed = 0
				runtime.Gosched()
			}
			continue
		}
		computed = 0
		rest.Reset(threadIdle)
		select {
		case <-t.wake:
		case <-rest.C:
			if t.routines.bound == 0 && t.leave() {
				return
			}
		}
	}
}

// nextJob takes the job that is next. nil = there is none, and the thread is idle.
func (t *thread) nextJob() *job {
	p := t.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.backlog.nextJob(t.own.First())
	if j == nil && !slices.Contains(p.idle, t) {
		p.idle = append(p.idle, t)
	}
	return j
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
	p.backlog.spent[kind] += took
	p.mu.Unlock()
}
