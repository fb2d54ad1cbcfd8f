package offline

import (
	"context"
	"slices"
	"sync"
	"time"

	"turnout/controller/source"
	"turnout/controller/source/cluster"
)

// referred brings what objects of the Gateway API refer to besides Secrets: ConfigMaps, and which release of it there is. It implements controller.ConfigMaps and
// source.Sink.
type referred struct {
	from *cluster.Referred

	mu     sync.Mutex
	wanted []source.Key
	said   map[source.Event]source.Event // by kind and key
	more   chan struct{}                 // something was said
}

// referredPatience is how long these are waited for: what does not come is as what is not there.
const referredPatience = 10 * time.Second

func newReferred(cfg cluster.Config) (*referred, error) {
	from, err := cluster.NewReferred(cfg)
	return &referred{from: from, said: make(map[source.Event]source.Event), more: make(chan struct{}, 1)}, err
}

// Follow implements controller.ConfigMaps.
func (r *referred) Follow(keys []source.Key) {
	r.mu.Lock()
	r.wanted = slices.Clone(keys)
	r.mu.Unlock()
	r.from.Follow(keys)
}

// Event implements source.Sink.
func (r *referred) Event(events ...source.Event) {
	r.mu.Lock()
	for _, e := range events {
		r.said[source.Event{Kind: e.Kind, Key: e.Key}] = e
	}
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// Synced implements source.Sink.
func (r *referred) Synced() {}

// run reads until ctx is done.
func (r *referred) run(ctx context.Context) error { return r.from.Run(ctx, r) }

// complete reports whether something was said of all that is wanted.
func (r *referred) complete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	release := false
	for e := range r.said {
		release = release || e.Kind == source.CustomResourceDefinition
	}
	return release && !slices.ContainsFunc(r.wanted, func(key source.Key) bool {
		_, ok := r.said[source.Event{Kind: source.ConfigMap, Key: key}]
		return !ok
	})
}

// events waits for all that is wanted, and returns it.
func (r *referred) events(ctx context.Context) (all []source.Event) {
	ctx, cancel := context.WithTimeout(ctx, referredPatience)
	defer cancel()
	for waits := true; waits && !r.complete(); {
		select {
		case <-r.more:
		case <-ctx.Done():
			waits = false
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.said {
		if e.Object != nil {
			all = append(all, e)
		}
	}
	return all
}
