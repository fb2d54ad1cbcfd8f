package metrics

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// follower chooses the routes whose latencies are distinguished: those that are named, and as many others as there may be, by their requests.
type follower struct {
	most  int                    // besides those that are named
	named map[objectKey]struct{} // nil = none

	mu     sync.Mutex
	next   uint32
	known  map[objectKey]followed
	looked time.Time            // when the choice was made
	before map[objectKey]uint64 // requests that they had then
}

// followed is one of them.
type followed struct {
	objectKey
	id uint32
}

// choicePause is how long a choice of routes stays: histograms that come and go say little. While there is room for more, nobody has to go:
// then it is roomPause.
const (
	choicePause = time.Minute
	roomPause   = 2 * time.Second
)

// displace is how many times the requests of a route that is followed another one must have to take its place.
const displace = 2

// choose looks whether others are to be followed by now, tells the routes, and returns those that are.
func (f *follower) choose(all []backend, now time.Time) []followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	present := make(map[objectKey]*backend, len(f.known))
	for i := range all {
		if key := all[i].key(); f.wants(key) {
			present[key] = &all[i]
		}
	}
	for key := range f.known {
		if present[key] == nil {
			delete(f.known, key) // the route is gone
		}
	}
	if f.known == nil {
		f.known = make(map[objectKey]followed)
	}
	for key := range f.named {
		if present[key] != nil {
			f.add(key)
		}
	}
	if f.outdated(now) {
		f.chooseBusiest(all, now)
	}
	list := make([]followed, 0, len(f.known))
	for i := range all {
		of, ok := f.known[all[i].key()]
		if ok {
			list = append(list, of)
		}
		for b := &all[i]; b != nil; b = b.next {
			if b.stats.Followed.Load() != of.id {
				b.Stats().Followed.Store(of.id)
			}
		}
	}
	return list
}

// due says that it is time for another choice.
func (f *follower) due(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.outdated(now)
}

// outdated is due under the lock.
func (f *follower) outdated(now time.Time) bool {
	busiest := 0
	for key := range f.known {
		if _, named := f.named[key]; !named {
			busiest++
		}
	}
	pause := choicePause
	if busiest < f.most {
		pause = roomPause
	}
	return f.looked.IsZero() || now.Sub(f.looked) >= pause
}

// wants says that a route is named or followed.
func (f *follower) wants(key objectKey) bool {
	_, known := f.known[key]
	_, named := f.named[key]
	return known || named
}

func (f *follower) add(key objectKey) {
	if _, known := f.known[key]; !known {
		f.next++
		f.known[key] = followed{key, f.next}
	}
}

// chooseBusiest follows those that have had the most requests since it was called last.
func (f *follower) chooseBusiest(all []backend, now time.Time) {
	type busy struct {
		key      objectKey
		requests uint64
		weight   uint64 // requests, times displace for one that is followed
	}
	var list []busy
	counts := make(map[objectKey]uint64) // of those that had any
	for i := range all {
		key, n := all[i].key(), uint64(0)
		for b := &all[i]; b != nil; b = b.next {
			n += b.stats.Sessions.Total()
		}
		if n == 0 {
			continue
		}
		counts[key] = n
		if _, named := f.named[key]; named {
			continue
		}
		b := busy{key: key, requests: n - min(n, f.before[key])}
		b.weight = b.requests
		if f.wants(key) {
			b.weight *= displace
		}
		if b.weight > 0 || f.wants(key) {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b busy) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.key.namespace, b.key.namespace), cmp.Compare(a.key.name, b.key.name))
	})
	chosen := list[:min(f.most, len(list))]
	for key := range f.known {
		_, named := f.named[key]
		if !named && !slices.ContainsFunc(chosen, func(b busy) bool { return b.key == key }) {
			delete(f.known, key)
		}
	}
	for _, b := range chosen {
		f.add(b.key)
	}
	f.looked, f.before = now, counts
}

// follows reports whether a number is that of a route that is followed.
func follows(list []followed) func(id uint32) bool {
	return func(id uint32) bool { return slices.ContainsFunc(list, func(f followed) bool { return f.id == id }) }
}

func (b *backend) key() objectKey { return objectKey{b.Namespace(), b.Name()} }
