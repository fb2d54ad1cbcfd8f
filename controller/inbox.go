package controller

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	"turnout/controller/source"
	"turnout/internal/target"
)

// inbox is where feeders leave events. It keeps the latest event of each object and
// never blocks.
type inbox struct {
	mu          sync.Mutex
	events      map[object]source.Event
	certificate *tls.Certificate      // the next default certificate; nil = as it is
	destination []byte                // the next default destination CA; nil = as it is
	options     *Options              // what routes are treated by next; nil = as it is
	own         *target.Own           // the next own listeners; nil = no change
	refused     map[source.Key]string // why Gateways do not get what they need next; nil = as it is
	arrived     time.Time             // when the oldest of events was left; zero = there is none
	waiting     int                   // sinks that are not synced
	left        uint64                // number of deliveries
	handled     uint64                // deliveries the owner is done with
	done        chan struct{}         // closed and replaced when handled grows
	trigger     chan struct{}         // one slot
}

// object names an object.
type object struct {
	kind source.Kind
	key  source.Key
}

func newInbox() *inbox {
	b := &inbox{events: make(map[object]source.Event), done: make(chan struct{}), trigger: make(chan struct{}, 1)}
	b.wake()
	return b
}

// wake makes the owner look, now or soon.
func (b *inbox) wake() {
	select {
	case b.trigger <- struct{}{}:
	default:
	}
}

// sink is the inbox as one feeder sees it.
type sink struct {
	inbox  *inbox
	origin string
	once   sync.Once
}

func (s *sink) Event(events ...source.Event) {
	s.inbox.mu.Lock()
	for _, e := range events {
		if e.Origin == "" {
			e.Origin = s.origin
		}
		s.inbox.events[object{e.Kind, e.Key}] = e
	}
	if s.inbox.arrived.IsZero() {
		s.inbox.arrived = time.Now()
	}
	s.inbox.left++
	s.inbox.mu.Unlock()
	s.inbox.wake()
}

func (s *sink) Synced() {
	s.once.Do(func() {
		s.inbox.mu.Lock()
		s.inbox.waiting--
		s.inbox.left++
		s.inbox.mu.Unlock()
		s.inbox.wake()
	})
}

// len is how many objects have an event that was not taken.
func (b *inbox) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.events)
}

// takeEvents returns what was left since the last takeEvents, its number for finish, and when the first of it was left. The bool
// is false, and nothing is taken, while a sink is not synced.
func (b *inbox) takeEvents() (left []source.Event, number uint64, arrived time.Time, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting > 0 {
		return nil, 0, time.Time{}, false
	}
	events := make([]source.Event, 0, len(b.events))
	for _, e := range b.events {
		events = append(events, e)
	}
	if len(b.events) > 1024 {
		b.events = make(map[object]source.Event) // clear would keep the memory of the first read
	} else {
		clear(b.events)
	}
	arrived, b.arrived = b.arrived, time.Time{}
	return events, b.left, arrived, true
}

// leave puts v into a field of b, in place of what was left there and not taken yet.
func leave[T any](b *inbox, field *T, v T) {
	b.mu.Lock()
	*field = v
	b.left++
	b.mu.Unlock()
	b.wake()
}

// takeLeft returns what was left in a field of b, its zero value if nothing was.
func takeLeft[T any](b *inbox, field *T) (v T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, *field = *field, v
	return v
}

// setCertificate leaves the next default certificate.
func (b *inbox) setCertificate(c *tls.Certificate) {
	leave(b, &b.certificate, c)
}

// takeCertificate returns the next default certificate, nil if it stays.
func (b *inbox) takeCertificate() *tls.Certificate {
	return takeLeft(b, &b.certificate)
}

// setDestinationCA leaves the next default destination CA.
func (b *inbox) setDestinationCA(pem []byte) {
	leave(b, &b.destination, pem)
}

// takeDestinationCA returns the next default destination CA, nil if it stays.
func (b *inbox) takeDestinationCA() []byte {
	return takeLeft(b, &b.destination)
}

// setOwn stores the next set of own listeners.
func (b *inbox) setOwn(own *target.Own) {
	leave(b, &b.own, own)
}

// takeOwn returns the next own listeners, nil if there is no change.
func (b *inbox) takeOwn() *target.Own {
	return takeLeft(b, &b.own)
}

// finish says that everything up to a number has been handled.
func (b *inbox) finish(number uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handled = number
	close(b.done)
	b.done = make(chan struct{})
}

// wait returns nil when all that was left before the call has been handled.
func (b *inbox) wait(ctx context.Context) error {
	b.mu.Lock()
	number := b.left
	b.mu.Unlock()
	for {
		b.mu.Lock()
		handled, done := b.handled, b.done
		b.mu.Unlock()
		if handled >= number {
			return nil
		}
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
