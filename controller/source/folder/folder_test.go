package folder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"turnout/controller/source"
)

// recorder is a sink that knows the hosts of all routes, and wakes who waits.
type recorder struct {
	mu      sync.Mutex
	hosts   map[string]string // of routes by name
	order   map[string]string
	events  int
	changes int // calls that delivered them
	synced  bool
	woken   chan struct{}
	found   []source.Problem
}

func newRecorder() *recorder {
	return &recorder{hosts: map[string]string{}, order: map[string]string{}, woken: make(chan struct{}, 1)}
}

func (r *recorder) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

func (r *recorder) Event(events ...source.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	for _, e := range events {
		r.events++
		if e.Object == nil {
			delete(r.hosts, e.Key.Name)
		} else {
			r.hosts[e.Key.Name], r.order[e.Key.Name] = e.Object.(*routev1.Route).Spec.Host, e.Order
		}
	}
	r.wake()
}

func (r *recorder) Synced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.synced = true
	r.wake()
}

func (r *recorder) problem(p source.Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, p)
	r.wake()
}

func (r *recorder) cleared(source.Problem) { r.wake() }

// until waits until ok holds.
func (r *recorder) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		r.mu.Lock()
		done := ok()
		r.mu.Unlock()
		if done {
			return
		}
		select {
		case <-r.woken:
		case <-deadline:
			r.mu.Lock()
			defer r.mu.Unlock()
			t.Fatalf("%s: hosts %v, problems %v", what, r.hosts, r.found)
		}
	}
}

// hostsAre waits until the routes are exactly "name=host ...".
func (r *recorder) hostsAre(t *testing.T, want string) {
	t.Helper()
	r.until(t, "want "+want, func() bool {
		var got []string
		for name, host := range r.hosts {
			got = append(got, name+"="+host)
		}
		slices.Sort(got)
		return strings.Join(got, " ") == want
	})
}

func (r *recorder) problemIs(t *testing.T, part string) {
	t.Helper()
	r.until(t, "want problem "+part, func() bool {
		return slices.ContainsFunc(r.found, func(p source.Problem) bool { return strings.Contains(p.String(), part) })
	})
}

func manifest(name, host string) string {
	return fmt.Sprintf("apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: %s}\nspec: {host: %s, to: {name: s}}\n---\n", name, host)
}

// put writes a file as an editor that replaces it does: whole or not at all.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	temporary := filepath.Join(filepath.Dir(path), ".tmp-"+filepath.Base(path))
	if err := os.WriteFile(temporary, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temporary, path); err != nil {
		t.Fatal(err)
	}
}

// whole leaves objects as they are: they are packed all the same.
func whole(object runtime.Object) runtime.Object { return object }

// start runs a feeder until the test ends and waits for its first reading.
func start(t *testing.T, paths ...string) (*recorder, *Feeder) {
	t.Helper()
	r := newRecorder()
	f, err := New(Config{Paths: paths, Sink: r, Problem: r.problem, Cleared: r.cleared, Settle: 2 * time.Millisecond, Poll: 24 * time.Hour, Trim: whole})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	r.until(t, "synced", func() bool { return r.synced })
	return r, f
}

// TestChangesComeTogether: what a reading finds is one change. A route that gets another name is never missing.
func TestChangesComeTogether(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/app.yaml", manifest("a", "x.test")+manifest("b", "y.test"))
	put(t, dir+"/other.yaml", manifest("c", "z.test"))
	r, _ := start(t, dir)
	counted := func(changes, events int) {
		t.Helper()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.changes != changes || r.events != events {
			t.Errorf("%d events in %d changes, want %d in %d", r.events, r.changes, events, changes)
		}
	}
	counted(1, 3)
	put(t, dir+"/app.yaml", manifest("d", "x.test")+manifest("e", "y.test"))
	r.hostsAre(t, "c=z.test d=x.test e=y.test")
	counted(2, 7)
}

func TestFollowsChanges(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/a.yaml", manifest("a", "a1"))
	put(t, dir+"/sub/b.yml", manifest("b", "b1"))
	put(t, dir+"/ignored.txt", manifest("x", "x"))
	r, f := start(t, dir)
	r.hostsAre(t, "a=a1 b=b1")

	put(t, dir+"/a.yaml", manifest("a", "a2"))
	r.hostsAre(t, "a=a2 b=b1")
	if err := os.WriteFile(dir+"/sub/b.yml", []byte(manifest("b", "b2")), 0o644); err != nil {
		t.Fatal(err)
	}
	r.hostsAre(t, "a=a2 b=b2")
	put(t, dir+"/new/deep/c.json", `{"apiVersion":"route.openshift.io/v1","kind":"Route","metadata":{"name":"c"},"spec":{"host":"c1","to":{"name":"s"}}}`)
	r.hostsAre(t, "a=a2 b=b2 c=c1")
	put(t, dir+"/new/deep/d.yaml", manifest("d", "d1"))
	r.hostsAre(t, "a=a2 b=b2 c=c1 d=d1")
	if got := f.Objects(); got != 4 {
		t.Errorf("%d objects", got)
	}
	if err := os.Remove(dir + "/a.yaml"); err != nil {
		t.Fatal(err)
	}
	r.hostsAre(t, "b=b2 c=c1 d=d1")
	if err := os.RemoveAll(dir + "/new"); err != nil {
		t.Fatal(err)
	}
	r.hostsAre(t, "b=b2")
	if err := os.Rename(dir+"/sub", dir+"/other"); err != nil {
		t.Fatal(err)
	}
	put(t, dir+"/z.yaml", manifest("z", "z"))
	r.hostsAre(t, "b=b2 z=z")
}

// TestKubernetesVolume changes a mounted configMap as the kubelet does.
func TestKubernetesVolume(t *testing.T) {
	dir := t.TempDir()
	version := func(n int, host string) {
		t.Helper()
		folder := fmt.Sprintf("%s/..%d", dir, n)
		put(t, folder+"/a.yaml", manifest("a", host))
		if err := os.Symlink(filepath.Base(folder), dir+"/..data_tmp"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir+"/..data_tmp", dir+"/..data"); err != nil {
			t.Fatal(err)
		}
		if n > 1 {
			if err := os.RemoveAll(fmt.Sprintf("%s/..%d", dir, n-1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	version(1, "one")
	if err := os.Symlink("..data/a.yaml", dir+"/a.yaml"); err != nil {
		t.Fatal(err)
	}
	r, f := start(t, dir)
	r.hostsAre(t, "a=one")
	version(2, "two")
	r.hostsAre(t, "a=two")
	version(3, "three")
	r.hostsAre(t, "a=three")
	r.until(t, "no problem stands", func() bool { return len(f.Problems()) == 0 })
}

func TestLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	put(t, outside+"/f.yaml", manifest("a", "a1"))
	put(t, outside+"/d/g.yaml", manifest("b", "b1"))
	for from, to := range map[string]string{"/f.yaml": outside + "/f.yaml", "/d": outside + "/d", "/nowhere.yaml": outside + "/none"} {
		if err := os.Symlink(to, dir+from); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, outside+"/d/circle"); err != nil {
		t.Fatal(err)
	}
	r, _ := start(t, dir)
	r.hostsAre(t, "a=a1 b=b1")
	put(t, outside+"/f.yaml", manifest("a", "a2"))
	r.hostsAre(t, "a=a2 b=b1")
	put(t, outside+"/d/g.yaml", manifest("b", "b2"))
	r.hostsAre(t, "a=a2 b=b2")
}

func TestLastGoodVersionStays(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/a.yaml", manifest("a", "a1")+manifest("b", "b1")+manifest("c", "c1"))
	put(t, dir+"/other.yaml", manifest("o", "o1"))
	r, f := start(t, dir)
	r.hostsAre(t, "a=a1 b=b1 c=c1 o=o1")

	// The second document is broken; the others are new.
	put(t, dir+"/a.yaml", manifest("a", "a2")+"kind: [\n---\n"+manifest("c", "c2"))
	r.problemIs(t, "a.yaml, document 2: cannot parse YAML")
	r.hostsAre(t, "a=a2 b=b1 c=c2 o=o1")
	if problems := f.Problems(); len(problems) != 1 {
		t.Errorf("problems %v", problems)
	}
	put(t, dir+"/other.yaml", manifest("o", "o2"))
	r.hostsAre(t, "a=a2 b=b1 c=c2 o=o2")
	// Of an unknown kind, and not valid.
	put(t, dir+"/a.yaml", manifest("a", "a3")+"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n")
	r.problemIs(t, "document 2, Deployment default/d: kind Deployment of apps/v1 is not known")
	r.hostsAre(t, "a=a3 b=b1 c=c2 o=o2")
	put(t, dir+"/a.yaml", manifest("a", "a4")+strings.Replace(manifest("b", "b4"), "to: {name: s}", "to: {name: s}, path: x", 1))
	r.problemIs(t, "document 2, Route default/b: spec.path: must begin with /")
	r.hostsAre(t, "a=a4 b=b1 c=c2 o=o2")
	// Repaired: what is gone is gone.
	put(t, dir+"/a.yaml", manifest("a", "a5")+manifest("b", "b5"))
	r.hostsAre(t, "a=a5 b=b5 o=o2")
	r.until(t, "no problem stands", func() bool { return len(f.Problems()) == 0 })
}

// TestLargeFile: a file that is too large is not read, says so, and what it held before stays.
func TestLargeFile(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/a.yaml", manifest("a", "a1"))
	r, f := start(t, dir)
	r.hostsAre(t, "a=a1")
	large := dir + "/.large"
	if err := os.WriteFile(large, []byte(manifest("a", "a2")), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxFile+1); err != nil { // a hole: it takes no room
		t.Fatal(err)
	}
	if err := os.Rename(large, dir+"/a.yaml"); err != nil {
		t.Fatal(err)
	}
	r.problemIs(t, "is larger than 67108864 bytes")
	r.hostsAre(t, "a=a1")
	put(t, dir+"/a.yaml", manifest("a", "a3"))
	r.hostsAre(t, "a=a3")
	r.until(t, "no problem stands", func() bool { return len(f.Problems()) == 0 })
}

func TestDuplicates(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/b.yaml", manifest("r", "second"))
	put(t, dir+"/a.yaml", manifest("r", "first")+manifest("r", "again"))
	r, f := start(t, dir)
	r.hostsAre(t, "r=first")
	var got []string
	for _, p := range f.Problems() {
		got = append(got, strings.ReplaceAll(p.String(), dir, "."))
	}
	want := []string{
		"./a.yaml, document 2, Route default/r: is already defined in ./a.yaml, document 1, which counts",
		"./b.yaml, document 1, Route default/r: is already defined in ./a.yaml, document 1, which counts",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if err := os.Remove(dir + "/a.yaml"); err != nil {
		t.Fatal(err)
	}
	r.hostsAre(t, "r=second")
	r.until(t, "no problem stands", func() bool { return len(f.Problems()) == 0 })
}

func TestOrder(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/b.yaml", manifest("r3", "h")+manifest("r4", "h"))
	put(t, dir+"/a/z.yaml", manifest("r2", "h"))
	put(t, dir+"/a/y.yaml", manifest("r1", "h"))
	r, _ := start(t, dir)
	r.hostsAre(t, "r1=h r2=h r3=h r4=h")
	r.mu.Lock()
	defer r.mu.Unlock()
	if order := []string{r.order["r1"], r.order["r2"], r.order["r3"], r.order["r4"]}; !slices.IsSorted(order) {
		t.Errorf("order %q", order)
	}
}

// TestSameContent looks that writing the same again and touching tell nothing.
func TestSameContent(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/a.yaml", manifest("a", "a1"))
	r, _ := start(t, dir)
	r.hostsAre(t, "a=a1")
	put(t, dir+"/a.yaml", manifest("a", "a1"))
	put(t, dir+"/a.yaml", "# a comment\n"+manifest("a", "a1"))
	put(t, dir+"/b.yaml", manifest("b", "b1"))
	r.hostsAre(t, "a=a1 b=b1")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events != 2 {
		t.Errorf("%d events, want 2", r.events)
	}
}

func TestSingleFileAndLostRoot(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/in/a.yaml", manifest("a", "a1"))
	put(t, dir+"/in/b.yaml", manifest("b", "b1"))
	r, f := start(t, dir+"/in/a.yaml")
	r.hostsAre(t, "a=a1")
	put(t, dir+"/in/a.yaml", manifest("a", "a2"))
	r.hostsAre(t, "a=a2")
	if err := os.Remove(dir + "/in/a.yaml"); err != nil {
		t.Fatal(err)
	}
	r.problemIs(t, "a.yaml: cannot read: no such file")
	r.hostsAre(t, "a=a2")
	put(t, dir+"/in/a.yaml", manifest("a", "a3"))
	r.hostsAre(t, "a=a3")
	r.until(t, "no problem stands", func() bool { return len(f.Problems()) == 0 })
}

func TestNewFails(t *testing.T) {
	_, err := New(Config{Paths: []string{"/does/not/exist"}, Sink: newRecorder()})
	if err == nil || err.Error() != "cannot read /does/not/exist: no such file or directory" {
		t.Errorf("error %v", err)
	}
	if _, err := New(Config{Sink: newRecorder()}); err == nil {
		t.Error("no path is taken")
	}
	if _, err := New(Config{Paths: []string{"."}}); err == nil {
		t.Error("no sink is taken")
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/b.yaml", manifest("b", "b1")+"x: y\n")
	put(t, dir+"/a.yaml", manifest("a", "a1"))
	c, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if c.Files != 2 || len(c.Events) != 2 || c.Events[0].Key.Name != "a" || len(c.Problems) != 1 {
		t.Errorf("%+v", c)
	}
	if got := c.Events[0].Origin; got != dir+"/a.yaml, document 1" {
		t.Errorf("origin %q", got)
	}
	if _, err := Load(dir + "/none"); err == nil {
		t.Error("a path that does not exist is taken")
	}
}
