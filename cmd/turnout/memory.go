package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// memory is what the process has of the system, in bytes.
type memory struct {
	allocated uint64 // since the start
	live      uint64 // found in use by the last collection
	held      uint64 // heap that is not returned to the system
	other     uint64 // the same of everything but the heap
}

// inUse is what the process cannot do without.
func (m memory) inUse() uint64 { return m.live + m.other }

func readMemory() memory {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	at := func(i int) uint64 { return samples[i].Value.Uint64() }
	held := at(2) + at(3) + at(4)
	return memory{allocated: at(0), live: at(1), held: held, other: at(5) - at(6) - held}
}

// A minute in which little is allocated is quiet. Only what is worth a collection is
// returned: a quarter of what is in use takes many quiet minutes to become garbage, and
// little garbage comes with little to collect.
const (
	quietBytes = 16 << 20
	worthBytes = 2 << 20
)

// returnable reports whether memory should be returned after a minute that began with
// before: reading a cluster or writing much status has left garbage as large as what is
// in use, and now nothing happens. Under load the collector knows better.
func (m memory) returnable(before memory) bool {
	return m.allocated-before.allocated < quietBytes && m.held > m.live+max(m.live/4, worthBytes)
}

// returnMemory gives memory back to the system in quiet minutes until ctx is done.
func returnMemory(ctx context.Context) {
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	before := readMemory()
	for {
		select {
		case <-ctx.Done():
			return
		case <-minute.C:
		}
		now := readMemory()
		if now.returnable(before) {
			debug.FreeOSMemory()
		}
		before = now
	}
}
