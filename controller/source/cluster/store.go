package cluster

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"turnout/controller/source"
	"turnout/internal/keyed"
)

// store is what a reflector keeps up to date: it passes on what changes. Of what it has
// passed on it only knows which version that was; the objects are the controller's. All
// methods but len are called by the one goroutine of the reflector.
type store struct {
	kind   source.Kind
	sink   source.Sink // set before the first call
	synced func()      // called after each complete reading; set before the first call

	held  *keyed.Set[source.Key, passed]
	count atomic.Int64
	seed  maphash.Seed

	cut        func(object runtime.Object, ports bool) // takes from an object what nobody reads; set before the first call
	keepLabels bool                                    // of objects that are passed on; set before the first call
	keepPorts  bool                                    // of Services; set before the first call
	usual      *usual                                  // what routes of Gateways have in common
	plain      *corev1.Service                         // stands for every service of which only that it exists is of use
}

// version is a hash of the UID and resourceVersion of an object.
type version uint64

// passed is the version of an object that was passed on. The names of namespaces stand once.
type passed struct {
	namespace unique.Handle[string]
	name      string
	version   version
}

func (p *passed) key() source.Key {
	return source.Key{Namespace: p.namespace.Value(), Name: p.name}
}

var _ cache.TransformingStore = (*store)(nil)

func newStore(kind source.Kind) *store {
	return &store{kind: kind, held: keyed.New((*passed).key), seed: maphash.MakeSeed(), cut: trim, usual: newUsual(), plain: new(corev1.Service)}
}

// len returns the number of objects that are there. Any goroutine may call it.
func (s *store) len() int { return int(s.count.Load()) }

// Transformer returns what is done to objects as soon as they are decoded, while the
// rest of a reading is still on its way.
func (s *store) Transformer() cache.TransformFunc {
	return func(x any) (any, error) {
		if object, ok := x.(runtime.Object); ok {
			s.trim(object)
		}
		return x, nil
	}
}

// trim cuts an object, but for the labels of what is selected by them later.
func (s *store) trim(object runtime.Object) {
	var kept map[string]string
	m, err := meta.Accessor(object)
	if err == nil && s.keepLabels {
		kept = m.GetLabels()
	}
	if s.cut(object, s.keepPorts); len(kept) > 0 {
		m.SetLabels(kept)
	}
	s.usual.lean(object)
}

// Add passes on a new object.
func (s *store) Add(x any) error { return s.Update(x) }

// Update passes on an object that has changed.
func (s *store) Update(x any) error {
	object, m, err := objectOf(x)
	if err != nil {
		return err
	}
	s.putObject(object, m)
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
		s.putObject(object, m)
	}
	var gone []source.Key
	for p := range s.held.All() {
		if _, ok := there[p.key()]; !ok {
			gone = append(gone, p.key())
		}
	}
	for _, key := range gone {
		s.drop(key)
	}
	s.synced()
	return nil
}

// Resync does nothing: what has not changed leads to nothing new.
func (s *store) Resync() error { return nil }

func (s *store) putObject(object runtime.Object, m metav1.Object) {
	key, now := keyOf(m), s.versionOf(m)
	old := s.held.Get(key)
	if old != nil && old.version == now && m.GetResourceVersion() != "" {
		return
	}
	s.trim(object)
	if !wanted(object) {
		s.drop(key)
		return
	}
	if old != nil {
		old.name, old.version = m.GetName(), now // the name that the controller has, too
	} else {
		s.held.Put(&passed{unique.Make(key.Namespace), m.GetName(), now})
		s.count.Store(int64(s.held.Len()))
	}
	key.Namespace = m.GetNamespace() // that of the trimmed object
	s.sink.Event(source.Event{Kind: s.kind, Key: key, Object: s.leaving(object)})
}

// leaving returns an object as the controller gets it, without what only the store
// reads.
func (s *store) leaving(object runtime.Object) runtime.Object {
	switch o := object.(type) {
	case *corev1.Service:
		if len(o.Annotations)+len(o.Spec.ClusterIPs)+len(o.Spec.Ports) == 0 && !s.keepPorts {
			return s.plain
		}
	case *discoveryv1.EndpointSlice:
		o.UID, o.ResourceVersion = "", ""
	}
	return object
}

func (s *store) versionOf(m metav1.Object) version {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_, _ = h.WriteString(string(m.GetUID())) // never fails
	_, _ = h.WriteString("/")
	_, _ = h.WriteString(m.GetResourceVersion())
	return version(h.Sum64())
}

func (s *store) drop(key source.Key) {
	if s.held.Delete(key) == nil {
		return
	}
	s.count.Store(int64(s.held.Len()))
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
