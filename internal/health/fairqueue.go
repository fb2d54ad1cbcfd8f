package health

// fairQueue holds checks that are due and wait. Namespaces are served in turn, and within one its services, so that a namespace that wants many
// checks waits for its own: a namespace that wants less than its share of what may begin does not notice that others want more.
// The zero value is empty.
type fairQueue struct {
	shares  map[string]*share // of namespaces with checks that wait or run
	queue   []*share          // those with checks that wait, whose turn it is first
	running int
}

// share is what one namespace has of a group.
type share struct {
	namespace string
	lines     map[string]*line // of services with checks that wait
	queue     []*line          // the same, whose turn it is first
	running   int
	credit    int64 // what it may still begin in this turn, in checks
}

// line is the checks of one service that wait, the first of them longest.
type line struct {
	service string
	checks  []*check
}

// share returns that of a namespace, made if there is none.
func (t *fairQueue) share(namespace string) *share {
	s := t.shares[namespace]
	if s == nil {
		s = &share{namespace: namespace, lines: make(map[string]*line)}
		if t.shares == nil {
			t.shares = make(map[string]*share)
		}
		t.shares[namespace] = s
	}
	return s
}

// addWaiting has ck wait.
func (t *fairQueue) addWaiting(ck *check) {
	s := t.share(ck.of.Endpoint().Namespace())
	if len(s.queue) == 0 {
		t.queue = append(t.queue, s)
	}
	service := ck.of.Service()
	l := s.lines[service]
	if l == nil {
		l = &line{service: service}
		s.lines[service] = l
		s.queue = append(s.queue, l)
	}
	l.checks = append(l.checks, ck)
	ck.turn.share = s
}

// takeCheck returns the check whose turn it is, of those whose namespace may have another one running, and nil if there is none. most is
// how many may run in all: a namespace takes a place only while it leaves as many as it has, so that checks that hang leave
// places for others'.
func (t *fairQueue) takeCheck(most int) *check {
	for range len(t.queue) {
		s := t.queue[0]
		if s.running >= max(most-t.running, 1) {
			t.rotate()
			continue
		}
		if s.credit <= 0 {
			s.credit += secureCost
		}
		ck := s.nextCheck()
		if s.credit -= ck.cost(); len(s.queue) == 0 {
			s.credit = 0
			t.queue = dropFirst(t.queue)
		} else if s.credit <= 0 {
			t.rotate()
		}
		t.running++
		s.running++
		return ck
	}
	return nil
}

// nextCheck takes the check whose turn it is out of a share that has some.
func (s *share) nextCheck() *check {
	l := s.queue[0]
	ck := l.checks[0]
	s.queue, l.checks = dropFirst(s.queue), dropFirst(l.checks)
	if len(l.checks) > 0 {
		s.queue = append(s.queue, l)
	} else {
		delete(s.lines, l.service)
	}
	return ck
}

// rotate puts the first share at the end of the queue.
func (t *fairQueue) rotate() {
	first := t.queue[0]
	t.queue = append(dropFirst(t.queue), first)
}

// run notes a check that runs already.
func (t *fairQueue) run(ck *check) {
	ck.turn.share = t.share(ck.of.Endpoint().Namespace())
	ck.turn.share.running++
	t.running++
}

// endCheck gives the place of a check back that has run.
func (t *fairQueue) endCheck(s *share) {
	t.running--
	s.running--
	t.forget(s)
}

// leave has a check wait no more.
func (t *fairQueue) leave(ck *check) {
	s := ck.turn.share
	l := s.lines[ck.of.Service()]
	if l.checks = without(l.checks, ck); len(l.checks) == 0 {
		delete(s.lines, l.service)
		s.queue = without(s.queue, l)
	}
	if len(s.queue) == 0 {
		s.credit = 0
		t.queue = without(t.queue, s)
	}
	t.forget(s)
}

// forget drops a share with nothing to remember.
func (t *fairQueue) forget(s *share) {
	if s.running == 0 && len(s.queue) == 0 {
		delete(t.shares, s.namespace)
	}
}

// waiting reports that some wait.
func (t *fairQueue) waiting() bool { return len(t.queue) > 0 }

// dropFirst returns a queue without its first element. The array goes with the last one.
func dropFirst[E comparable](queue []E) []E {
	var zero E
	queue[0] = zero
	if len(queue) == 1 {
		return nil
	}
	return queue[1:]
}

// without returns a queue without an element of it.
func without[E comparable](queue []E, e E) []E {
	for i, o := range queue {
		if o == e {
			copy(queue[i:], queue[i+1:])
			var zero E
			queue[len(queue)-1] = zero
			return queue[:len(queue)-1]
		}
	}
	return queue
}
