package status

import "time"

const (
	leaseFor    = 10 * time.Second      // for which others are left to write, at most
	leaseStep   = 20 * time.Millisecond // the shortest backoff of a follower
	leaseFactor = 4                     // from one backoff to the next
	leaseSteps  = 5                     // backoffs before leaseFor
	leaseJitter = 0.5                   // share of a backoff that is added by chance
	leaseSeen   = 6                     // namespaces that have to be seen before others wait as long as they do
	leaseProbe  = leaseFor >> leaseSeen // half of how long others wait when one has been seen
	followerMin = 40 * time.Millisecond // for which a follower lets others go first
	retryAfter  = 3 * time.Second       // after a conflict nobody tells more about
)

type leaseState int

const (
	election leaseState = iota // nothing written yet
	leader                     // the last write succeeded
	follower                   // somebody else seems to write
)

func (s leaseState) String() string { return [...]string{"election", "leader", "follower"}[s] }

// lease is who of several replicas writes, guessed without a word between them: a write
// that succeeds makes the leader, one that comes too late or a change somebody else was
// first with makes a follower, who waits longer each time before it competes again. It
// decides only who is first. What keeps the status right is that a write names the
// version it replaces and that nobody writes what stands there already.
type lease struct {
	state   leaseState
	expires time.Time // of a follower's patience
	tick    int       // times a follower has seen others write
	chance  func() float64
	// seen is when others were first or wrote what was to be written, by namespace, at most leaseSeen of them.
	seen map[string]time.Time
}

// wrote tells that a write succeeded.
func (l *lease) wrote() {
	l.state, l.tick, l.seen = leader, 0, nil
}

// lost tells that somebody else was first with a route of a namespace.
func (l *lease) lost(namespace string, now time.Time) {
	l.see(namespace, now)
	if l.state == follower {
		l.tick++
	} else {
		l.state, l.tick = follower, 0
	}
	l.expires = now.Add(l.backoff())
}

// followed tells that somebody else did what was to be done here.
func (l *lease) followed(namespace string, now time.Time) {
	if l.state != follower {
		return
	}
	l.see(namespace, now)
	l.tick++
	l.expires = now.Add(l.backoff())
}

// see notes that somebody else wrote in a namespace.
func (l *lease) see(namespace string, now time.Time) {
	if _, was := l.seen[namespace]; !was && len(l.seen) >= leaseSeen {
		for other, at := range l.seen {
			if now.Sub(at) >= leaseFor {
				delete(l.seen, other)
			}
		}
		if len(l.seen) >= leaseSeen {
			return
		}
	}
	if l.seen == nil {
		l.seen = make(map[string]time.Time)
	}
	l.seen[namespace] = now
}

// wait returns how long work in a namespace that is due since a time has to wait, 0 for not at all. An account that may write to the
// routes of some namespaces can look like another replica there. So where nobody was seen to write, it is the shorter the
// fewer the namespaces are where somebody was.
func (l *lease) wait(namespace string, due, now time.Time) time.Duration {
	if l.state != follower {
		return 0
	}
	pause := max(0, l.expires.Sub(now))
	if at, seen := l.seen[namespace]; pause == 0 || seen && now.Sub(at) < leaseFor {
		return pause
	}
	return min(pause, max(0, due.Add(leaseProbe<<len(l.seen)).Sub(now)))
}

// first returns how long new work has to wait at least.
func (l *lease) first() time.Duration {
	if l.state == follower {
		return followerMin
	}
	return 0
}

func (l *lease) backoff() time.Duration {
	if l.tick > leaseSteps {
		return leaseFor
	}
	d := float64(leaseStep)
	for range l.tick {
		d *= (1 + leaseJitter*l.chance()) * leaseFactor
	}
	return min(time.Duration(d), leaseFor)
}
