package reactor

import "container/heap"

// memTimer is a function that a Network calls.
type memTimer struct {
	at  int64
	seq uint64 // of those due at the same time, the first that was asked for comes first
	fn  func()
}

// memTimers is a heap, the next on top.
type memTimers []memTimer

// Len implements heap.Interface.
func (t memTimers) Len() int { return len(t) }

// Less implements heap.Interface.
func (t memTimers) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].seq < t[j].seq
}

// Swap implements heap.Interface.
func (t memTimers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

// Push implements heap.Interface.
func (t *memTimers) Push(x any) { *t = append(*t, x.(memTimer)) }

// Pop implements heap.Interface.
func (t *memTimers) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = memTimer{}
	*t = old[:len(old)-1]
	return last
}

// due takes the next function off that is due, nil without one.
func (t *memTimers) due(now int64) func() {
	if len(*t) == 0 || (*t)[0].at > now {
		return nil
	}
	return heap.Pop(t).(memTimer).fn
}
