package memory

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

// What was a flood a moment ago, the reading of a cluster for example, or a thousand busy connections, has left garbage that nobody
// collects while little is allocated: memory is returned in the first quiet period after it, and not again before the process has
// taken as much anew. Under load the collector knows better.
const (
	returnPeriod = 10 * time.Second // between two looks
	startPeriod  = time.Second      // until what initialized the process is taken to be over
	quietBytes   = 3 << 20          // allocated in a period that is quiet
	worthBytes   = 2 << 20          // of the system, worth a collection a minute; a sixteenth of what is held, if that is more, sooner than that
	minute       = 6                // looks
)

// returner decides when memory is returned to the system.
type returner struct {
	before memory // at the last look
	kept   uint64 // bytes of the heap that were held after memory was returned last
	again  int    // in so many looks it is returned once more; 0 = it is not
	since  int    // looks since it was returned
	quiet  bool   // the period before the last look was
	code   uint64 // bytes of the program's file that are taken again in a quiet period that begins with their return
	fresh  bool   // they were returned at the last look
}

// secondReturn is so many looks after the first: by then event loops have given up what they kept for more of the same.
const secondReturn = 3

// due reports whether memory should be returned now.
func (r *returner) due(now memory) bool {
	r.quiet = now.allocated-r.before.allocated < quietBytes
	r.before = now
	r.since++
	worth := uint64(worthBytes)
	if r.since < minute {
		worth = max(r.kept/16, worthBytes)
	}
	due := false
	switch {
	case !r.quiet:
		r.again = 0
	case now.held > r.kept+worth:
		r.again = secondReturn
		due = true
	case r.again > 0:
		r.again--
		due = r.again == 0
	}
	if due {
		r.since = 0
	}
	return due
}

// codeDue decides the same of the program's file, of which resident bytes are: work of other kinds than serving, as the writing of
// statuses, has left pages of it behind. Such work in the period after a return, as one scrape of metrics, makes it seem that serving
// takes these pages again, which is believed only when it was so several times.
func (r *returner) codeDue(resident uint64) bool {
	fresh := r.fresh
	r.fresh = false
	switch {
	case !r.quiet:
	case fresh && r.code > 0 && resident > r.code:
		r.code += (resident - r.code) / 4
	case fresh:
		r.code = resident
	default:
		r.fresh = resident > r.code+worthBytes
	}
	return r.fresh
}

// longestStart is after so many looks at the latest that the process counts as started, quiet or not.
const longestStart = 6

// returnMemory gives memory back to the system in quiet periods, until ctx is done; pages of the program that its start took are given back
// after startPeriod, and at the first look once more, as reading a cluster takes others. It closes started after the first period in which memory was returned.
func returnMemory(ctx context.Context, started chan<- struct{}) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(startPeriod):
		returnCode()
	}
	ticker := time.NewTicker(returnPeriod)
	defer ticker.Stop()
	r := returner{before: readMemory()}
	for look := 1; ; look++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		due := r.due(readMemory())
		if due {
			debug.FreeOSMemory()
			r.kept = readMemory().held
		}
		if r.codeDue(residentCode()) || look == 1 {
			returnCode()
		}
		if started != nil && (due || look == longestStart) {
			close(started)
			started = nil
		}
	}
}
