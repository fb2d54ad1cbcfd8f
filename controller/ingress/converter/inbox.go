package converter

import (
	"sync"

	"turnout/controller/source"
)

// inbox is what has happened since it was looked at last: of each object the latest event. It is a source.Sink.
type inbox struct {
	wake chan struct{} // holds one

	mu      sync.Mutex
	events  map[object]source.Event
	results []result
	synced  bool
	spoken  bool // an Event was made
}

// object names an object of any kind.
type object struct {
	kind source.Kind
	key  source.Key
}

func newInbox() *inbox {
	return &inbox{wake: make(chan struct{}, 1), events: make(map[object]source.Event)}
}

// Event implements source.Sink.
func (b *inbox) Event(events ...source.Event) {
	b.change(func() {
		for _, e := range events {
			b.events[object{e.Kind, e.Key}] = e
		}
	})
}

// Synced implements source.Sink.
func (b *inbox) Synced() { b.change(func() { b.synced = true }) }

// done adds what became of the writes for an Ingress.
func (b *inbox) done(r result) { b.change(func() { b.results = append(b.results, r) }) }

// said tells that an Event was made.
func (b *inbox) said() { b.change(func() { b.spoken = true }) }

func (b *inbox) change(do func()) {
	b.mu.Lock()
	do()
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// takeAll returns what has happened, whether all objects have been read, and whether an Event was made.
func (b *inbox) takeAll() (events map[object]source.Event, results []result, synced, spoken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	events, results, spoken = b.events, b.results, b.spoken
	b.events, b.results, b.spoken = make(map[object]source.Event), nil, false
	return events, results, b.synced, spoken
}
