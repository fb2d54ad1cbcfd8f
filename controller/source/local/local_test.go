package local

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/source"
)

func TestAdd(t *testing.T) {
	b := Backends{}
	for _, text := range []string{"a/b=3000", "a/b=3001", "a/b=3000", "c/d=1"} {
		if err := b.Add(text); err != nil {
			t.Error(err)
		}
	}
	if len(b) != 2 || len(b["a/b"]) != 2 || b["c/d"][0] != 1 {
		t.Errorf("%v", b)
	}
	for _, text := range []string{"", "a=1", "a/b", "a/b=", "a/b=0", "a/b=65536", "a/b=x", "/b=1", "a/=1", "a/b/c=1"} {
		if b.Add(text) == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// nobody takes events.
type nobody struct{}

func (nobody) Event(...source.Event) {}
func (nobody) Synced()               {}

// TestMissingServices: a Service that is not in the manifests is a problem from the end of the first reading on, until it appears, and again when it
// is deleted.
func TestMissingServices(t *testing.T) {
	var told []string
	sink := NewSink(Config{
		Backends: Backends{"a/b": {3000, 3001}, "c/d": {1}}, To: nobody{},
		Problem: func(p source.Problem) { told = append(told, "missing: "+p.String()) },
		Cleared: func(p source.Problem) { told = append(told, "there: "+p.String()) },
	})
	service := func(namespace, name string, there bool) source.Event {
		e := source.Event{Kind: source.Service, Key: source.Key{Namespace: namespace, Name: name}}
		if there {
			e.Object = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		}
		return e
	}
	const text = "--backend, Service a/b: warning: there is no such Service in the manifests"
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"before all have come", func() { sink.Event(service("c", "d", true)) }, nil},
		{"all have come", sink.Synced, []string{"missing: " + text}},
		{"of others", func() { sink.Event(service("x", "b", true), service("c", "d", true)) }, nil},
		{"another kind", func() { sink.Event(source.Event{Kind: source.Route, Key: source.Key{Namespace: "a", Name: "b"}}) }, nil},
		{"it appears", func() { sink.Event(service("a", "b", true)) }, []string{"there: " + text}},
		{"it changes", func() { sink.Event(service("a", "b", true)) }, nil},
		{"it moves to another file", func() { sink.Event(service("a", "b", false), service("a", "b", true)) }, nil},
		{"it is deleted", func() { sink.Event(service("a", "b", false)) }, []string{"missing: " + text}},
		{"it was deleted", func() { sink.Event(service("a", "b", false)) }, nil},
		{"it appears again", func() { sink.Event(service("a", "b", true)) }, []string{"there: " + text}},
	} {
		told = nil
		if step.do(); !slices.Equal(told, step.want) {
			t.Errorf("%s: told %q, want %q", step.name, told, step.want)
		}
	}
	NewSink(Config{Backends: Backends{"a/b": {1}}, To: nobody{}}).Synced() // nobody is notified
}
