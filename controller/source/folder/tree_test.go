package folder

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"turnout/controller/source"
)

// TestLookTakesNoMemory: a poll of a large file that has not changed allocates a small part of its size, and a change of the same length is found.
func TestLookTakesNoMemory(t *testing.T) {
	const size = 4 << 20
	path := filepath.Join(t.TempDir(), "many.yaml")
	text := append([]byte("kind: Route\napiVersion: route.openshift.io/v1\nmetadata: {name: a, namespace: shop}\nspec: {host: a.test, to: {kind: Service, name: s}}\n"),
		bytes.Repeat([]byte("---\n# as large as the manifests of many routes\n"), size/47)...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	tree, events := newTree([]string{path}), 0
	emit := func(source.Event) { events++ }
	tree.scan(nil, emit)
	if events != 1 {
		t.Fatalf("%d events at the first look", events)
	}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tree.scan(nil, emit)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > size/8 {
		t.Errorf("a look at %d bytes that have not changed took %d bytes of memory", len(text), took)
	}
	if events != 1 {
		t.Errorf("%d events", events)
	}
	text = bytes.Replace(text, []byte("a.test"), []byte("b.test"), 1)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if tree.scan(nil, emit); events != 2 {
		t.Errorf("%d events after a change of the same length", events)
	}
}
