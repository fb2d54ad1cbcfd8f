package cluster

import (
	"context"
	"slices"
	"sync"
)

// slots bounds what is under way at a time. Namespaces that wait take turns, so that one with thousands of secrets does not hold up
// the others.
type slots struct {
	mu      sync.Mutex
	free    int
	waiting map[string][]chan struct{} // by namespace, in the order they came; closed when it is their turn
	order   []string                   // of those in waiting: the first one is next
}

func newSlots(n int) *slots { return &slots{free: n, waiting: make(map[string][]chan struct{})} }

// takeSlot waits for a slot, which give gives back. The bool is false when ctx is done first.
func (s *slots) takeSlot(ctx context.Context, namespace string) bool {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	if len(s.waiting[namespace]) == 0 {
		s.order = append(s.order, namespace)
	}
	s.waiting[namespace] = append(s.waiting[namespace], turn)
	s.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(s.waiting[namespace], turn)
	if i >= 0 {
		s.setWaiting(namespace, slices.Delete(s.waiting[namespace], i, i+1))
	}
	s.mu.Unlock()
	if i < 0 {
		s.giveSlot() // its turn came at the same time
	}
	return false
}

// giveSlot hands a slot to the namespace whose turn it is.
func (s *slots) giveSlot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order) == 0 {
		s.free++
		return
	}
	namespace := s.order[0]
	queue := s.waiting[namespace]
	close(queue[0])
	s.order = append(s.order[1:], namespace)
	s.setWaiting(namespace, queue[1:])
}

// setWaiting is what waits in a namespace. s.mu is held.
func (s *slots) setWaiting(namespace string, queue []chan struct{}) {
	if len(queue) > 0 {
		s.waiting[namespace] = queue
		return
	}
	delete(s.waiting, namespace)
	s.order = slices.DeleteFunc(s.order, func(name string) bool { return name == namespace })
}
