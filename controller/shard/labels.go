package shard

import (
	"maps"
	"slices"
	"strings"
	"unique"
)

// Labels are labels of an object. Equal ones are one text in memory, however many objects have them, and compare equal with ==. The zero value
// has none. It implements labels.Labels of Kubernetes, so that selectors can be asked.
type Labels struct {
	text unique.Handle[string] // key, 0, value, 0 ..., in the order of keys
}

// MakeLabels returns the labels of a map, which is not kept.
func MakeLabels(m map[string]string) Labels {
	if len(m) == 0 {
		return Labels{}
	}
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b.WriteString(k)
		b.WriteByte(0)
		b.WriteString(m[k])
		b.WriteByte(0)
	}
	return Labels{text: unique.Make(strings.Clone(b.String()))}
}

// All yields key and value of each label, in the order of keys.
func (l Labels) All(yield func(key, value string) bool) {
	if l == (Labels{}) {
		return
	}
	for rest := l.text.Value(); rest != ""; {
		var key, value string
		key, rest, _ = strings.Cut(rest, "\x00")
		value, rest, _ = strings.Cut(rest, "\x00")
		if !yield(key, value) {
			return
		}
	}
}

// Lookup returns the value of a label and whether there is one.
func (l Labels) Lookup(key string) (string, bool) {
	for k, v := range l.All {
		if k == key {
			return v, true
		}
	}
	return "", false
}

// Has reports whether there is such a label.
func (l Labels) Has(key string) bool {
	_, ok := l.Lookup(key)
	return ok
}

// Get returns the value of a label, "" without one.
func (l Labels) Get(key string) string {
	value, _ := l.Lookup(key)
	return value
}

// Map returns the labels as a map of the caller's, nil without any.
func (l Labels) Map() map[string]string {
	if l == (Labels{}) {
		return nil
	}
	return maps.Collect(l.All)
}
