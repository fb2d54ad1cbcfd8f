package scheduler

import (
	"sync"

	"turnout/controller/shard"
	"turnout/controller/source"
)

// result is what became of an action.
type result struct {
	id uint64
	shard.Result
}

// inbox is what has happened since the owner of the Planner looked last. It is a source.Sink. Of each object only the latest state is there, so it
// holds at most one event for each object.
type inbox struct {
	wake chan struct{} // holds one

	mu      sync.Mutex
	latest  map[object]int // in events
	events  []source.Event
	results []result
	synced  bool
}

// object names an object of any kind.
type object struct {
	kind source.Kind
	key  source.Key
}

func newInbox() *inbox {
	return &inbox{wake: make(chan struct{}, 1), latest: make(map[object]int)}
}

// Event implements source.Sink.
func (b *inbox) Event(events ...source.Event) {
	b.change(func() {
		for i := range events {
			o := object{events[i].Kind, events[i].Key}
			if at, known := b.latest[o]; known {
				b.events[at] = events[i]
				continue
			}
			b.latest[o] = len(b.events)
			b.events = append(b.events, events[i])
		}
	})
}

// Synced implements source.Sink.
func (b *inbox) Synced() { b.change(func() { b.synced = true }) }

// done adds what became of an action.
func (b *inbox) done(r result) { b.change(func() { b.results = append(b.results, r) }) }

func (b *inbox) change(do func()) {
	b.mu.Lock()
	do()
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// takeAll returns what has happened, and whether all objects have been read. The slices are the caller's.
func (b *inbox) takeAll() (events []source.Event, results []result, synced bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	events, results = b.events, b.results
	b.events, b.results = nil, nil
	clear(b.latest)
	if len(events) > 1000 {
		b.latest = make(map[object]int)
	}
	return events, results, b.synced
}
