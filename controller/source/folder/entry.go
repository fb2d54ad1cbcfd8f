package folder

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"turnout/controller/source"
)

// entry is one object in one file. Once it is delivered it is looked at again when another place of it goes, or its file changes: until then
// it stands in the encoding of the API's protocol buffers, which takes a fifth of the object.
type entry struct {
	id        id
	file      *file
	next      *entry         // the next place of the object in path order
	object    runtime.Object // nil = it is packed
	packed    string         // "" = objects of this kind are not packed
	tls       *routev1.TLSConfig
	doc, item int32 // number of the document in the file, place in the document
	delivered bool  // the sink received this one last
}

// newEntry returns the entry of an object, trimmed and packed unless trim is nil.
func newEntry(f *file, k id, object runtime.Object, doc, item int, trim func(runtime.Object) runtime.Object) *entry {
	e := &entry{id: k, file: f, object: object, doc: int32(doc), item: int32(item)}
	if trim != nil {
		e.object = trim(object)
		e.pack()
	}
	return e
}

// pack encodes the object, if it is of a kind of which there are many. The TLS settings of a Route, with its certificates, are those of the object, which who gets
// the object holds on to.
func (e *entry) pack() {
	var data []byte
	var err error
	switch o := e.object.(type) {
	case *routev1.Route:
		bare := *o
		e.tls, bare.Spec.TLS = o.Spec.TLS, nil
		data, err = bare.Marshal()
	case *corev1.Service:
		data, err = o.Marshal()
	case *discoveryv1.EndpointSlice:
		data, err = o.Marshal()
	}
	if err == nil { // else the object stays
		e.packed = string(data)
	}
}

// gather has what is packed stand in one text: the entries of a file live as long as each other, mostly, and what was read of it besides is garbage between them.
func gather(entries []*entry) {
	var all strings.Builder
	for _, e := range entries {
		all.WriteString(e.packed)
	}
	text := all.String()
	for _, e := range entries {
		e.packed, text = text[:len(e.packed)], text[len(e.packed):]
	}
}

// rest has the object packed for as long as nobody wants it.
func (e *entry) rest() {
	if e.packed != "" {
		e.object = nil
	}
}

// get returns the object.
func (e *entry) get() runtime.Object {
	if e.object != nil {
		return e.object
	}
	var err error
	switch e.id.kind {
	case source.Route:
		o := new(routev1.Route)
		err = o.Unmarshal([]byte(e.packed))
		o.APIVersion, o.Kind, o.Spec.TLS = routev1.GroupVersion.String(), "Route", e.tls
		e.object = o
	case source.Service:
		o := new(corev1.Service)
		err = o.Unmarshal([]byte(e.packed))
		o.APIVersion, o.Kind = corev1.SchemeGroupVersion.String(), "Service"
		e.object = o
	case source.EndpointSlice:
		o := new(discoveryv1.EndpointSlice)
		err = o.Unmarshal([]byte(e.packed))
		o.APIVersion, o.Kind = discoveryv1.SchemeGroupVersion.String(), "EndpointSlice"
		e.object = o
	}
	if err != nil { // pack has encoded it
		panic(fmt.Sprintf("BUG: cannot decode %s %s: %v", e.id.kind, e.id.key, err))
	}
	return e.object
}

// same reports whether two entries hold equal objects.
func (e *entry) same(o *entry) bool {
	if e.packed != "" && o.packed != "" {
		return e.packed == o.packed && reflect.DeepEqual(e.tls, o.tls)
	}
	return reflect.DeepEqual(e.get(), o.get())
}

// order is Event.Order: that of paths, then documents.
func (e *entry) order() string {
	return fmt.Sprintf("%s\x00\x00%06d.%06d", e.file.place, e.doc, e.item)
}

func (e *entry) compare(o *entry) int {
	return cmp.Or(cmp.Compare(e.file.place, o.file.place), cmp.Compare(e.doc, o.doc), cmp.Compare(e.item, o.item))
}

// insert adds a place of an object.
func (t *tree) insert(e *entry) {
	first := t.objects[e.id]
	if first == nil || e.compare(first) < 0 {
		e.next, t.objects[e.id] = first, e
		return
	}
	for first.next != nil && first.next.compare(e) <= 0 {
		first = first.next
	}
	e.next, first.next = first.next, e
}

// remove takes a place of an object out.
func (t *tree) remove(e *entry) {
	next := e.next
	e.next = nil
	first := t.objects[e.id]
	if first != e {
		for first.next != e {
			first = first.next
		}
		first.next = next
		return
	}
	if next == nil {
		delete(t.objects, e.id)
		return
	}
	t.objects[e.id] = next
}
