package tlsmux

import (
	"time"

	"turnout/internal/list"
)

// shares is how many parts each queue has. An address belongs to one of them, and they have their turns one after
// the other: who sends many handshakes keeps waiting mostly others of its own.
const shares = 16

// job is something to compute, in a queue or not in any: a step of a handshake, or the use of a private key.
type job struct {
	step  *handshake // whose step it is, else nil
	use   func()     // what it is else
	kind  Work
	share uint8
	home  *thread // the only thread it may run on; nil = any of the pool
	node  list.Node[job]
}

// compute does what there is to do, on the thread t, nil for a loop's.
func (j *job) compute(t *thread) {
	if j.step != nil {
		j.step.compute(t)
		return
	}
	j.use()
}

// queue has the jobs of a kind, but those that have a home.
type queue struct {
	shares [shares]list.List[job] // the oldest first
	turn   int                    // whose turn it is
}

// first is who is next, nil = nobody.
func (q *queue) first() *job {
	for range shares {
		if j := q.shares[q.turn].First(); j != nil {
			return j
		}
		q.turn = (q.turn + 1) % shares
	}
	return nil
}

// backlog is what waits to be computed, and says what is next: of the kind that had the least time, and there of the address
// whose turn it is.
type backlog struct {
	queues [Works]queue
	count  [Works]int           // waiting, those that have a home too
	spent  [Works]time.Duration // what each kind had, counted from when it last began to wait
}

// putJob has a job wait.
func (b *backlog) putJob(j *job) {
	if b.count[j.kind]++; b.count[j.kind] == 1 {
		b.join(j.kind)
	}
	if j.home != nil {
		j.home.own.Push(&j.node, j)
	} else {
		b.queues[j.kind].shares[j.share].Push(&j.node, j)
	}
}

// takeBack takes a job back. false: it does not wait.
func (b *backlog) takeBack(j *job) bool {
	if !j.node.Listed() {
		return false
	}
	j.node.Remove()
	b.count[j.kind]--
	return true
}

// nextJob takes the job that is next, also of those that wait for one thread only. nil = there is none.
func (b *backlog) nextJob(own *job) *job {
	best := own
	for i := range b.queues {
		if b.count[i] == 0 || best != nil && b.spent[i] >= b.spent[best.kind] {
			continue
		}
		if j := b.queues[i].first(); j != nil {
			best = j
		}
	}
	if best == nil {
		return nil
	}
	if best.home == nil {
		b.queues[best.kind].turn = (int(best.share) + 1) % shares
	}
	b.takeBack(best)
	return best
}

// join lets a kind begin to wait: what it did not use before is not its due now.
func (b *backlog) join(kind Work) {
	least, others := time.Duration(0), false
	for i := range b.count {
		if Work(i) != kind && b.count[i] > 0 && (!others || b.spent[i] < least) {
			least, others = b.spent[i], true
		}
	}
	if others {
		b.spent[kind] = max(b.spent[kind], least)
		return
	}
	clear(b.spent[:])
}

func (b *backlog) waiting() int {
	n := 0
	for _, c := range b.count {
		n += c
	}
	return n
}
