package memnet

import "container/heap"

// timer is a function that a Network calls.
type timer struct {
	at  int64
	seq uint64 // of those due at the same time, the first that was asked for comes first
	fn  func()
}

// timers is a heap, the next on top.
type timers []timer

// Len implements heap.Interface.
func (t timers) Len() int { return len(t) }

// Less implements heap.Interface.
func (t timers) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].seq < t[j].seq
}

// Swap implements heap.Interface.
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

// Push implements heap.Interface.
func (t *timers) Push(x any) { *t = append(*t, x.(timer)) }

// Pop implements heap.Interface.
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = timer{}
	*t = old[:len(old)-1]
	return last
}

// due takes the next function off that is due, nil without one.
func (t *timers) due(now int64) func() {
	if len(*t) == 0 || (*t)[0].at > now {
		return nil
	}
	return heap.Pop(t).(timer).fn
}
