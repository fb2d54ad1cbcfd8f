// Package memory keeps what a process has of the machine's memory in proportion to what it needs: it gives the garbage collector
// the limit of the control group that the process runs in, lets small heaps grow by some MiB between two collections, and
// returns memory to the system once what needed it is over. All of it concerns the whole process.
package memory

import (
	"context"
	"os"
	"runtime/debug"
	"time"
)

// SetLimit gives the garbage collector a memory limit, if neither GOMEMLIMIT nor a call before has: nine tenths of the least
// limit of the control groups of this process. It returns the limit that holds, in bytes; 0 = there is none.
func SetLimit() uint64 { return limitMemory(os.DirFS("/"), debug.SetMemoryLimit) }

// InUse is what the process cannot do without, in bytes: what the last collection found in use on the heap, and all that is not
// heap. Any goroutine may call it.
func InUse() uint64 { return readMemory().inUse() }

// Manage sets GOGC after each collection, unless it is configured, and returns memory to the system in quiet periods, until ctx is
// done; then GOGC is as usual. limit is what SetLimit returned, handshakes how many steps of TLS handshakes have been computed so far, which any
// goroutine may ask; nil = there are none.
func Manage(ctx context.Context, limit uint64, handshakes func() uint64) {
	started := make(chan struct{})
	paceCollector(ctx, pacing{set: debug.SetGCPercent, live: liveHeap, clock: time.Now, limit: limit, start: started, handshakes: handshakes})
	returnMemory(ctx, started)
}
