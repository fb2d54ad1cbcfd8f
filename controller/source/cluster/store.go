package cluster

import (
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"turnout/controller/source"
)

// store is what a reflector keeps up to date: it passes on what changes. It knows of
// which version each object was passed on last, and shares the object itself with the
// controller. All methods but len are called by the one goroutine of the reflector.
type store struct {
	kind   source.Kind
	sink   source.Sink // set before the first call
	synced func()      // called after each complete reading; set before the first call

	held  map[source.Key]runtime.Object
	count atomic.Int64
}

var _ cache.TransformingStore = (*store)(nil)

func newStore(kind source.Kind) *store {
	return &store{kind: kind, held: make(map[source.Key]runtime.Object)}
}

// len returns the number of objects that are there. Any goroutine may call it.
func (s *store) len() int { return int(s.count.Load()) }

// Transformer returns what is done to objects as soon as they are decoded, while the
// rest of a reading is still on its way.
func (s *store) Transformer() cache.TransformFunc { return s.transform }

func (s *store) transform(x any) (any, error) {
	object, ok := x.(runtime.Object)
	if !ok {
		return x, nil
	}
	if m, err := meta.Accessor(object); err == nil {
		if old := s.held[keyOf(m)]; old != nil && sameVersion(old, m) {
			return old, nil // so that a second reading does not take the memory twice
		}
	}
	trim(object)
	return object, nil
}

// Add passes on a new object.
func (s *store) Add(x any) error { return s.Update(x) }

// Update passes on an object that has changed.
func (s *store) Update(x any) error {
	object, m, err := objectOf(x)
	if err != nil {
		return err
	}
	s.put(object, m)
	return nil
}

// Delete passes on that an object is gone.
func (s *store) Delete(x any) error {
	_, m, err := objectOf(x)
	if err != nil {
		return err
	}
	s.drop(keyOf(m))
	return nil
}

// Replace passes on what of a complete reading is not known yet.
func (s *store) Replace(list []any, _ string) error {
	there := make(map[source.Key]struct{}, len(list))
	for _, x := range list {
		object, m, err := objectOf(x)
		if err != nil {
			return err
		}
		there[keyOf(m)] = struct{}{}
		s.put(object, m)
	}
	for key := range s.held {
		if _, ok := there[key]; !ok {
			s.drop(key)
		}
	}
	s.synced()
	return nil
}

// Resync does nothing: what has not changed leads to nothing new.
func (s *store) Resync() error { return nil }

func (s *store) put(object runtime.Object, m metav1.Object) {
	key := keyOf(m)
	old := s.held[key]
	if old != nil && sameVersion(old, m) {
		return
	}
	trim(object)
	if !wanted(object) {
		s.drop(key)
		return
	}
	s.held[key] = object
	s.count.Store(int64(len(s.held)))
	s.sink.Event(source.Event{Kind: s.kind, Key: key, Object: object})
}

func (s *store) drop(key source.Key) {
	if s.held[key] == nil {
		return
	}
	delete(s.held, key)
	s.count.Store(int64(len(s.held)))
	s.sink.Event(source.Event{Kind: s.kind, Key: key})
}

func objectOf(x any) (runtime.Object, metav1.Object, error) {
	object, ok := x.(runtime.Object)
	if !ok {
		return nil, nil, fmt.Errorf("cannot use %T: it is no object", x)
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot use %T: %w", x, err)
	}
	return object, m, nil
}

func keyOf(m metav1.Object) source.Key {
	return source.Key{Namespace: m.GetNamespace(), Name: m.GetName()}
}

// sameVersion reports whether an object is the same version of the same object as old.
// An object without a version is never.
func sameVersion(old runtime.Object, m metav1.Object) bool {
	before, err := meta.Accessor(old)
	return err == nil && m.GetResourceVersion() != "" && before.GetResourceVersion() == m.GetResourceVersion() && before.GetUID() == m.GetUID()
}
