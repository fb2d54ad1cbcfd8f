package ingresscontroller

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"turnout/controller/source"
)

// Follower keeps an IngressController and what it refers to as sources deliver them. Its methods may be called by any goroutine.
type Follower struct {
	self    Ref
	changed chan struct{} // one slot

	mu     sync.Mutex
	known  bool             // whether self is there has been found out
	all    map[Ref]Referred // of the kinds that can matter
	wanted func([]Ref)      // is given what is referred to; nil = nobody is
}

// NewFollower returns a follower of the IngressController NAMESPACE/NAME. wanted, unless nil, is given the objects that matter whenever they
// may be others; it must not call back.
func NewFollower(key source.Key, wanted func([]Ref)) *Follower {
	return &Follower{self: Ref{source.IngressController, key}, changed: make(chan struct{}, 1), all: map[Ref]Referred{}, wanted: wanted}
}

// ReadKey reads NAMESPACE/NAME for options; "" = none.
func ReadKey(s string) (source.Key, error) {
	key, ok := source.ParseKey(s)
	if !ok && s != "" {
		return key, errors.New("allowed: NAMESPACE/NAME, such as openshift-ingress-operator/default")
	}
	return key, nil
}

// Self is what is followed.
func (f *Follower) Self() Ref { return f.self }

// Put notes what an object is now: nil and "" = there is none; nil and a text = it cannot be read.
func (f *Follower) Put(ref Ref, object *unstructured.Unstructured, err string) {
	f.mu.Lock()
	before, was := f.all[ref]
	next := Referred{object, err}
	if next.Object == nil && err != "" && was {
		next.Object = before.Object // what was read last is better than nothing
	}
	f.all[ref] = next
	if ref == f.self {
		f.known = f.known || err == ""
		if f.wanted != nil {
			f.wanted(Refs(next.Object))
		}
	}
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// Changed has a value after something may have changed.
func (f *Follower) Changed() <-chan struct{} { return f.changed }

// Complete reports that the object, and all that it refers to, has been looked for.
func (f *Follower) Complete() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.known {
		return false
	}
	for _, ref := range Refs(f.all[f.self].Object) {
		if _, there := f.all[ref]; !there {
			return false
		}
	}
	return true
}

// Outcome is what the IngressController means as it is now.
func (f *Follower) Outcome() Outcome {
	f.mu.Lock()
	object, others := f.all[f.self].Object, maps.Clone(f.all)
	f.mu.Unlock()
	if object == nil {
		return Outcome{Findings: []Finding{{Field: "metadata.name", Text: "there is no IngressController " + f.self.Key.String() + ": flags, environment and defaults count"}}}
	}
	return Translate(Input{Object: object, Others: others})
}

// Generation is that of the object that Outcome is about, 0 without one.
func (f *Follower) Generation() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.all[f.self].Object; o != nil {
		return o.GetGeneration()
	}
	return 0
}

// Tee returns a sink that delivers to next, and notes what matters of it. It is for sources that deliver everything there is: what is not
// delivered is not there.
func (f *Follower) Tee(next source.Sink) source.Sink { return &tee{next, f} }

// Load notes what there is, of a source that has everything.
func (f *Follower) Load(events []source.Event) {
	for i := range events {
		f.note(&events[i])
	}
	f.none()
}

// tee is Follower.Tee.
type tee struct {
	source.Sink
	follower *Follower
}

// Event implements source.Sink.
func (t *tee) Event(events ...source.Event) {
	noted := false
	for i := range events {
		noted = t.follower.note(&events[i]) || noted
	}
	if noted {
		t.follower.none()
	}
	t.Sink.Event(events...)
}

// kinds are those that can matter.
var kinds = []source.Kind{source.IngressController, source.ConfigMap, source.Secret, source.APIServer, source.IngressConfig}

// note puts the object of an event, if it can matter.
func (f *Follower) note(e *source.Event) bool {
	ref := Ref{e.Kind, e.Key}
	ours := ref == f.self || ref == apiServer || ref == ingress ||
		e.Kind == source.ConfigMap && e.Key.Namespace == configNamespace || e.Kind == source.Secret && e.Key.Namespace == routerNamespace
	if !ours || !slices.Contains(kinds, e.Kind) {
		return false
	}
	var object *unstructured.Unstructured
	switch o := e.Object.(type) {
	case nil:
	case *unstructured.Unstructured:
		object = o
	default:
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			f.Put(ref, nil, err.Error())
			return true
		}
		object = &unstructured.Unstructured{Object: fields}
	}
	f.Put(ref, object, "")
	return true
}

// none notes that what has not been delivered is not there.
func (f *Follower) none() {
	f.mu.Lock()
	var missing []Ref
	for _, ref := range append(Refs(f.all[f.self].Object), f.self) {
		if _, there := f.all[ref]; !there {
			missing = append(missing, ref)
		}
	}
	f.mu.Unlock()
	for _, ref := range missing {
		f.Put(ref, nil, "")
	}
}
