package cluster

import "sync"

// The bounds on secrets that are watched at a time. Those beyond are read again from time to time.
const (
	maxWatches       = 8192
	namespaceWatches = 1024 // of them in one namespace
)

// watches counts what is watched at a time, so that neither a namespace with thousands of secrets nor thousands of namespaces open
// any number of streams to the API server.
type watches struct {
	most, mostOfOne int

	mu   sync.Mutex
	open int
	of   map[string]int // by namespace; none is zero
}

func newWatches(most, mostOfOne int) *watches {
	return &watches{most: most, mostOfOne: mostOfOne, of: make(map[string]int)}
}

// enter reports whether one more secret of a namespace may be watched; leave follows when it may.
func (w *watches) enter(namespace string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == w.most || w.of[namespace] == w.mostOfOne {
		return false
	}
	w.open++
	w.of[namespace]++
	return true
}

// leave ends what enter let in.
func (w *watches) leave(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
	if w.of[namespace]--; w.of[namespace] == 0 {
		delete(w.of, namespace)
	}
}
