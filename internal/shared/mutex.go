// Package shared has the lock of what all event loops use together.
package shared

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Mutex is a sync.Mutex whose Unlock, when it is deferred, ends the process if it finds a panic on its way: what the lock
// guards may be half changed, and belongs to everybody. Panics outside of such sections are recovered by code that knows what
// they may have broken (reactor.Config.Panicked); it would go on with the lock, or leave it locked for good.
type Mutex struct{ mu sync.Mutex }

// Lock locks.
func (m *Mutex) Lock() { m.mu.Lock() }

// Unlock unlocks. It is to be deferred, unless nothing between Lock and it can panic.
func (m *Mutex) Unlock() {
	if v := recover(); v != nil {
		end(v, debug.Stack())
	}
	m.mu.Unlock()
}

// end ends the process as a panic does that nobody recovers from, and is called on a goroutine on which nobody can. It does not return.
func end(v any, stack []byte) {
	go fail(fmt.Sprintf("%v, while shared state was locked\n\n%s", v, stack))
	select {}
}

func fail(text string) { panic(text) }
