package folder

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"turnout/controller/source"
)

// maxFile is the size in bytes above which a file is not read.
const maxFile = 64 << 20

// recent is how old the time of a file must be to tell that it did not change: two
// writes may fall into one tick of the clock of a file system.
const recent = 2 * time.Second

// tree is the state of all files.
type tree struct {
	roots     []string
	watch     func(dir string) error // nil = none
	files     map[string]*file       // by place
	objects   map[id]*entry          // the first place of an object in path order, which leads to the others
	delivered int                    // objects that the sink received and that are there
	twice     map[id][]source.Problem
	folders   []source.Problem  // folders that cannot be read
	texts     map[string][]byte // receives what files say; nil = it is not kept

	// trim takes from an object what nobody reads, and returns the object to be passed on; nil = it is passed on as it is, and not packed.
	trim func(runtime.Object) runtime.Object
}

// id names an object.
type id struct {
	kind source.Kind
	key  source.Key
}

// file is one manifest file.
type file struct {
	path     string // as people know it
	place    string // place in path order
	seen     int    // number of the scan that found it
	info     fs.FileInfo
	read     time.Time
	sum      [sha256.Size]byte
	entries  []*entry
	problems []source.Problem
	readErr  string
}

func newTree(roots []string) *tree {
	return &tree{
		roots:   roots,
		files:   make(map[string]*file),
		objects: make(map[id]*entry),
		twice:   make(map[id][]source.Problem),
	}
}

// walk is one look at all files.
type walk struct {
	tree    *tree
	changed map[string]struct{} // nil = all
	touched map[id]*entry       // objects some place of which has changed, and what was delivered of them before; nil = nothing was
	kept    []string            // places below which nothing is taken as deleted
	number  int
}

// scan looks at all files and emits what changed.
func (t *tree) scan(changed map[string]struct{}, emit func(source.Event)) {
	w := &walk{tree: t, changed: changed, touched: make(map[id]*entry), number: 1}
	for _, f := range t.files {
		w.number = max(w.number, f.seen+1)
	}
	t.folders = t.folders[:0]
	for i, root := range t.roots {
		w.root(i, root)
	}
	for place, f := range t.files {
		if f.seen == w.number || slices.ContainsFunc(w.kept, func(p string) bool { return strings.HasPrefix(place, p) }) {
			continue
		}
		w.replace(f, nil)
		delete(t.files, place)
	}
	w.settle(emit)
}

// addText takes a text in as if it were the last of the files.
func (t *tree) addText(name string, text []byte, emit func(source.Event)) {
	w := &walk{tree: t, touched: make(map[id]*entry)}
	f := &file{path: name, place: "\xff"}
	t.files[f.place] = f
	w.parse(f, text)
	w.settle(emit)
}

// root looks at one path of the configuration. A root that is gone keeps its objects:
// that is more likely a mistake than a wish.
func (w *walk) root(i int, root string) {
	place := fmt.Sprintf("%04d\x00", i)
	if w.tree.watch != nil {
		_ = w.tree.watch(filepath.Dir(root)) // without it a replaced root is found by polling
	}
	info, err := os.Stat(root)
	switch {
	case err != nil:
		w.lost(root, place, err)
	case info.IsDir():
		w.folder(root, place, nil)
	default:
		w.file(root, place, info)
	}
}

// lost notes that a folder cannot be read: its objects stay.
func (w *walk) lost(path, place string, err error) {
	w.kept = append(w.kept, place)
	w.tree.folders = append(w.tree.folders, source.Problem{File: path, Reason: "cannot read: " + cause(err).Error()})
}

// folder looks at all of a folder. above holds the folders it is in, against links
// that lead in circles.
func (w *walk) folder(path, place string, above []string) {
	realPath, err := filepath.EvalSymlinks(path)
	if err == nil && slices.Contains(above, realPath) {
		return
	}
	if w.tree.watch != nil {
		_ = w.tree.watch(path) // without it changes are found by polling
	}
	list, err := os.ReadDir(path)
	if err != nil {
		if len(above) > 0 && errors.Is(err, fs.ErrNotExist) {
			return
		}
		w.lost(path, place, err)
		return
	}
	above = append(above, realPath)
	for _, e := range list {
		name := e.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		full := filepath.Join(path, name)
		info, err := w.stat(full, e)
		switch {
		case err != nil: // gone meanwhile, or a link to nowhere
		case info.IsDir():
			w.folder(full, place+name+"\x00", above)
		case info.Mode().IsRegular() && isManifest(name):
			w.file(full, place+name, info)
		}
	}
}

// stat returns what a name of a folder is, links followed, and watches the folder a link
// leads to.
func (w *walk) stat(path string, e fs.DirEntry) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err == nil && e.Type()&fs.ModeSymlink != 0 && w.tree.watch != nil {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			_ = w.tree.watch(filepath.Dir(target))
		}
	}
	return info, err
}

// file looks at one manifest file.
func (w *walk) file(path, place string, info fs.FileInfo) {
	f := w.tree.files[place]
	if f == nil {
		f = &file{path: path, place: place}
		w.tree.files[place] = f
	}
	f.seen = w.number
	if w.unchanged(f, info) {
		return
	}
	if info.Size() > maxFile {
		f.readErr = fmt.Sprintf("is larger than %d bytes", maxFile)
		return
	}
	now := time.Now()
	if f.info != nil && f.info.Size() == info.Size() && sumOf(path) == f.sum {
		f.info, f.read, f.readErr = info, now, ""
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		f.info, f.readErr = nil, "cannot read: "+cause(err).Error()
		return
	}
	first := f.read.IsZero()
	f.info, f.read, f.readErr = info, now, ""
	sum := sha256.Sum256(data)
	if sum == f.sum && !first {
		return
	}
	f.sum = sum
	w.parse(f, data)
}

// sumOf returns the SHA-256 sum of a file's content, read through a buffer: every file is looked at again at each poll, and has rarely changed.
// The sum is zero if the file cannot be read. Of a file that has grown beyond maxFile bytes one byte more than that is read.
func sumOf(path string) (sum [sha256.Size]byte) {
	f, err := os.Open(path)
	if err != nil {
		return sum
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxFile+1)); err != nil {
		return sum
	}
	h.Sum(sum[:0])
	return sum
}

// unchanged reports whether a file need not be read again.
func (w *walk) unchanged(f *file, info fs.FileInfo) bool {
	if f.info == nil || w.changed == nil || f.readErr != "" {
		return false
	}
	if _, ok := w.changed[f.path]; ok {
		return false
	}
	return os.SameFile(f.info, info) && f.info.Size() == info.Size() && f.info.ModTime().Equal(info.ModTime()) &&
		f.read.Sub(info.ModTime()) > recent
}

// parse takes the new content of a file over.
func (w *walk) parse(f *file, data []byte) {
	f.problems = nil
	if w.tree.texts != nil {
		w.tree.texts[f.path] = data
	}
	var entries []*entry
	broken := false
	known := make(map[id]*entry, len(f.entries))
	for _, e := range f.entries {
		if _, ok := known[e.id]; !ok {
			known[e.id] = e
		}
	}
	found := make(map[id]struct{})
	for _, doc := range source.Split(data, strings.HasSuffix(f.path, ".json")) {
		objects, findings := source.Decode(doc)
		for _, finding := range findings {
			broken = broken || finding.Severity == source.Error
			f.problems = append(f.problems, source.Problem{
				File: f.path, Document: doc.Number, Object: finding.Object, Severity: finding.Severity, Reason: finding.Reason,
			})
		}
		for i, o := range objects {
			e := newEntry(f, id{o.Kind, o.Key}, o.Object, doc.Number, i, w.tree.trim)
			if old := known[e.id]; old != nil && old.doc == e.doc && old.item == e.item && old.same(e) {
				e = old
			}
			found[e.id] = struct{}{}
			entries = append(entries, e)
		}
	}
	if broken {
		for _, old := range f.entries {
			if _, ok := found[old.id]; !ok {
				entries = append(entries, old)
			}
		}
		slices.SortStableFunc(entries, (*entry).compare)
	}
	gather(entries)
	w.replace(f, entries)
}

// replace gives a file other entries.
func (w *walk) replace(f *file, entries []*entry) {
	for _, e := range f.entries {
		w.touch(e.id)
		w.tree.remove(e)
	}
	f.entries = slices.Clip(entries)
	for _, e := range entries {
		w.touch(e.id)
		w.tree.insert(e)
	}
}

// touch notes that the places of an object change.
func (w *walk) touch(k id) {
	if _, known := w.touched[k]; known {
		return
	}
	e := w.tree.objects[k]
	for e != nil && !e.delivered {
		e = e.next
	}
	w.touched[k] = e
}

// settle decides which places of the objects that were touched count, and emits what changed.
func (w *walk) settle(emit func(source.Event)) {
	for k, before := range w.touched {
		w.tree.settle(k, before, emit)
	}
	for k := range w.touched {
		for e := w.tree.objects[k]; e != nil; e = e.next {
			e.rest()
		}
	}
}

// settle decides which place of an object counts and emits what changed. before is the one that counted until now, nil for none.
func (t *tree) settle(k id, before *entry, emit func(source.Event)) {
	first := t.objects[k]
	delete(t.twice, k)
	switch {
	case first == nil && before != nil:
		t.delivered--
		emit(source.Event{Kind: k.kind, Key: k.key})
		return
	case first == nil:
		return
	}
	for e := first.next; e != nil; e = e.next {
		t.twice[k] = append(t.twice[k], source.Problem{
			File: e.file.path, Document: int(e.doc), Object: k.kind.String() + " " + k.key.String(),
			Reason: fmt.Sprintf("is already defined in %s, document %d, which counts", first.file.path, first.doc),
		})
	}
	if first == before {
		return
	}
	if before == nil {
		t.delivered++
	} else {
		before.delivered = false
	}
	first.delivered = true
	emit(source.Event{
		Kind: k.kind, Key: k.key, Object: first.get(), Order: first.order(), Origin: source.Origin(first.file.path, int(first.doc)),
	})
}

// problems returns all problems in path order.
func (t *tree) problems() []source.Problem {
	out := slices.Clone(t.folders)
	for _, f := range t.files {
		if f.readErr != "" {
			out = append(out, source.Problem{File: f.path, Reason: f.readErr})
		}
		out = append(out, f.problems...)
	}
	for _, p := range t.twice {
		out = append(out, p...)
	}
	slices.SortFunc(out, func(a, b source.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Document, b.Document),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}
