package folder

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"turnout/controller/source"
)

const manifests = `---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: r%[1]d, namespace: ns, labels: {a: b}, annotations: {haproxy.router.openshift.io/timeout: 5s}, creationTimestamp: "2026-01-02T03:04:05Z"}
spec: {host: h%[1]d.test, path: /p, to: {kind: Service, name: s%[1]d, weight: 0}, port: {targetPort: 8080}, tls: {termination: edge, certificate: C, key: K}}
---
apiVersion: v1
kind: Service
metadata: {name: s%[1]d, namespace: ns, annotations: {idling.alpha.openshift.io/idled-at: "2026-01-02T03:04:05Z"}}
spec: {clusterIP: 10.0.0.1, ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: e%[1]d, namespace: ns, labels: {kubernetes.io/service-name: s%[1]d}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.1.2.3], conditions: {ready: false}, targetRef: {kind: Pod, name: p}}, {addresses: [10.1.2.4]}]
---
apiVersion: v1
kind: Secret
metadata: {name: t%[1]d, namespace: ns}
data: {tls.crt: QQ==}
`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPackedObjects: what another place of an object says is delivered as it was read, long after it was read.
func TestPackedObjects(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "1.yaml"), filepath.Join(dir, "2.yaml")
	write(t, second, fmt.Sprintf(manifests, 1))
	tree := newTree([]string{dir})
	tree.trim = whole
	read := func() map[source.Kind]source.Event {
		all := map[source.Kind]source.Event{}
		tree.scan(nil, func(e source.Event) { all[e.Kind] = e })
		return all
	}
	want := read()
	if len(want) != 4 || tree.delivered != 4 {
		t.Fatalf("%d objects are delivered, %d are counted", len(want), tree.delivered)
	}
	for k, e := range tree.objects {
		if packed := e.object == nil; packed != (k.kind != source.Secret) {
			t.Errorf("%s: packed %v", k.kind, packed)
		}
	}
	if again := read(); len(again) != 0 {
		t.Errorf("delivered again: %v", again)
	}
	write(t, first, "---\n"+fmt.Sprintf(manifests, 1)) // another place, and other documents
	if moved := read(); len(moved) != 4 || moved[source.Route].Origin == want[source.Route].Origin {
		t.Errorf("%d objects are delivered from the first file: %v", len(moved), moved)
	}
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	got := read()
	for kind, e := range want {
		if g := got[kind]; g.Order != e.Order || g.Origin != e.Origin || !equality.Semantic.DeepEqual(g.Object, e.Object) {
			t.Errorf("%s: got  %+v\nwant %+v", kind, got[kind].Object, e.Object)
		}
	}
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	if gone := read(); len(gone) != 4 || gone[source.Route].Object != nil || tree.delivered != 0 || len(tree.objects) != 0 {
		t.Errorf("%d are gone, %d objects and %d places are left", len(gone), tree.delivered, len(tree.objects))
	}
}

// TestPlaces: of any number of places of an object the first in path order counts, in whichever order they come and go.
func TestPlaces(t *testing.T) {
	tree := newTree(nil)
	k := id{source.Service, source.Key{Name: "s"}}
	var all []*entry
	for i, place := range []string{"b", "d", "a", "c", "a"} {
		e := newEntry(&file{place: place}, k, new(corev1.Service), 1+i/4, 0, nil)
		all = append(all, e)
		tree.insert(e)
	}
	sorted := slices.SortedStableFunc(slices.Values(all), (*entry).compare)
	for _, gone := range []*entry{nil, all[1], all[2], all[3], all[0], all[4]} {
		if gone != nil {
			tree.remove(gone)
			sorted = slices.DeleteFunc(sorted, func(e *entry) bool { return e == gone })
		}
		var got []*entry
		for e := tree.objects[k]; e != nil; e = e.next {
			got = append(got, e)
		}
		if !slices.Equal(got, sorted) {
			t.Errorf("without %v: %v, want %v", gone, got, sorted)
		}
	}
}

// TestSameObject: entries are compared by what they hold, whether it is packed or not.
func TestSameObject(t *testing.T) {
	service := func(ip string, trim func(kruntime.Object) kruntime.Object) *entry {
		return newEntry(new(file), id{kind: source.Service}, &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: ip}}, 1, 0, trim)
	}
	for _, trim := range []func(kruntime.Object) kruntime.Object{nil, whole} {
		if a := service("1", trim); !a.same(service("1", trim)) || a.same(service("2", trim)) || !a.same(service("1", nil)) {
			t.Error("compared wrongly")
		}
	}
}

// memoryPerObjects bounds what is held of a Route, a Service, an EndpointSlice and a Secret without content while nothing changes, in bytes. The objects would be some 6,000.
const memoryPerObjects = 2200

func TestMemoryOfObjects(t *testing.T) {
	const n = 1000
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "all.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		fmt.Fprintf(f, manifests, i)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := inUse()
	tree := newTree([]string{dir})
	tree.trim = func(o kruntime.Object) kruntime.Object {
		if reflect.TypeOf(o) == reflect.TypeFor[*corev1.Secret]() {
			return new(corev1.Secret)
		}
		return o
	}
	tree.scan(nil, func(source.Event) {})
	used := (inUse() - before) / n
	t.Logf("%d bytes", used)
	if used > memoryPerObjects {
		t.Errorf("%d bytes are held of four objects, want at most %d", used, memoryPerObjects)
	}
	runtime.KeepAlive(tree)
}
