package controller

import (
	"bytes"
	"testing"

	"turnout/controller/source"
)

const listOfRoutes = `# a list
apiVersion: v1
kind: List
items: # two
- apiVersion: route.openshift.io/v1
  kind: Route
  metadata: {name: one}
  spec:
    host: one.test
- kind: List
  apiVersion: v1
  items:
    -
      apiVersion: route.openshift.io/v1
      kind: Route
      metadata:
        name: two
        namespace: shop
        annotations:
          text: |
            - kind: Route
          haproxy.router.openshift.io/timeout: soon
      spec:
        host: two.test
    # the Service of the Route
    - {apiVersion: v1, kind: Service, metadata: {name: two, namespace: shop}, spec: {ports: []}}
metadata: {}
`

const jsonRoutes = `
{"kind": "RouteList", "apiVersion": "route.openshift.io/v1", "items": [
  {"metadata": {"name": "one"},
   "spec": {"host": "one.test"}},
  {"metadata": {"name": "two"},
   "spec": {"host": "two.test",
            "path": "p"}}
]}

{"kind": "Route",
 "spec": {}}
`

// TestLinesInLists: a field is looked for in the item that the finding is about.
func TestLinesInLists(t *testing.T) {
	p := places{texts: map[string][]byte{"a.yaml": []byte(listOfRoutes), "a.json": []byte(jsonRoutes)}}
	for _, c := range []struct {
		file     string
		document int
		object   string
		text     string
		want     int
	}{
		{"a.yaml", 1, "Route default/one", "spec.host: no", 9},
		{"a.yaml", 1, "Route default/one", "it is no good", 5},
		{"a.yaml", 1, "item 1", "spec.path: no", 8},
		{"a.yaml", 1, "Route shop/two", "spec.host: no", 24},
		{"a.yaml", 1, "Route shop/two", `annotation haproxy.router.openshift.io/timeout: "soon" is not used`, 22},
		{"a.yaml", 1, "Service shop/two", "spec.ports: no", 26},
		{"a.yaml", 1, "item 2 item 1", "metadata.name: no", 17},
		{"a.yaml", 1, "Route shop/three", "spec.host: no", 9}, // wherever it is
		{"a.yaml", 1, "", "line 12: no", 12},
		{"a.yaml", 2, "Route default/one", "spec.host: no", 0},
		{"a.json", 1, "Route default/one", "spec.host: no", 4},
		{"a.json", 1, "Route default/two", "spec.host: no", 6},
		{"a.json", 1, "item 2", "spec.path: no", 7},
		{"a.json", 2, "", "spec.to: no", 11},
		{"a.json", 2, "", "no", 10},
	} {
		if got := p.line(c.file, c.document, c.object, c.text); got != c.want {
			t.Errorf("%s, %s, %q: line %d, want %d", c.file, c.object, c.text, got, c.want)
		}
	}
}

// FuzzLine: whatever a file and a finding say, the line is one of the file.
func FuzzLine(f *testing.F) {
	f.Add([]byte(listOfRoutes), false, "Route shop/two", "spec.host: no")
	f.Add([]byte(jsonRoutes), true, "item 2", "annotation a: no")
	f.Add([]byte("kind: List\nitems:\n-"), false, "item 1", "spec.a[0].b: no")
	f.Add([]byte("---\nkind: [\n"), false, "", "line 99: no")
	f.Add([]byte("\xef\xbb\xbf{\"kind\":\"List\",\"items\":[{},"), true, "item 1", "spec.host")
	f.Add([]byte("  kind: List\n  items:\n - a\n  - b\n-\n"), false, "item 1", "metadata.name")
	f.Fuzz(func(t *testing.T, text []byte, isJSON bool, object, about string) {
		file := "a.yaml"
		if isJSON {
			file = "a.json"
		}
		p := places{texts: map[string][]byte{file: text}}
		last := 1 + bytes.Count(text, []byte{'\n'})
		for _, doc := range source.Split(text, isJSON) {
			names := []string{object, ""}
			for name := range p.itemsIn(p.document(file, doc.Number)) {
				names = append(names, name)
			}
			for _, name := range names {
				if line := p.line(file, doc.Number, name, about); line < doc.Line || line > last {
					t.Fatalf("document %d from line %d, %q, %q: line %d of %d", doc.Number, doc.Line, name, about, line, last)
				}
			}
		}
		if line := p.line(file, -1, object, about); line != 0 {
			t.Fatalf("no document has line %d", line)
		}
	})
}
