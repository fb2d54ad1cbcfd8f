// Package folder feeds the controller from folders of manifests, and follows what
// changes in them.
//
// Files ending in .yaml, .yml and .json are read, recursively and through symbolic
// links; names that begin with a dot are left out, so that Kubernetes volumes, whose
// files are links into "..data", are read once. What is in a file decides, not its
// time. A file or document that cannot be used is a Problem: the last good version of
// its objects stays, and nothing else is affected. While a file has such a document,
// objects that are missing from the file stay too, because they may be what the broken
// document is about. Of an object in several places the first in path order counts.
//
// Objects without creationTimestamp are older than those with one; among them the one
// that comes first in path order, then document order, is the older.
package folder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/apimachinery/pkg/runtime"

	"turnout/controller/source"
)

// Config is what a Feeder needs.
type Config struct {
	Paths   []string             // folders and files; at least one
	Sink    source.Sink          // takes the events; required
	Problem func(source.Problem) // called from Run for each new problem; nil = none
	Cleared func(source.Problem) // called from Run for each problem that no longer stands; nil = none
	Settle  time.Duration        // quiet time after a change before reading; 0 = 20 ms
	Poll    time.Duration        // also look this often, for file systems that do not tell; 0 = 30 s

	// Trim takes from an object what nobody reads, and returns the one to be delivered; nil = objects are delivered as they were read, and held so.
	Trim func(runtime.Object) runtime.Object
}

// maxSettle bounds how long constant changes can put off reading.
const maxSettle = 25 // times Settle

// Feeder reads manifests and delivers events. It is made by New.
type Feeder struct {
	cfg     Config
	watcher *fsnotify.Watcher
	tree    *tree

	objects atomic.Int64

	mu       sync.Mutex
	problems []source.Problem
}

// New returns a feeder. It fails when a path cannot be read now.
func New(cfg Config) (*Feeder, error) {
	if len(cfg.Paths) == 0 {
		return nil, errors.New("cannot make folder feeder: no path given")
	}
	if cfg.Sink == nil {
		return nil, errors.New("cannot make folder feeder: no sink given")
	}
	if cfg.Settle <= 0 {
		cfg.Settle = 20 * time.Millisecond
	}
	if cfg.Poll <= 0 {
		cfg.Poll = 30 * time.Second
	}
	if err := readable(cfg.Paths); err != nil {
		return nil, err
	}
	f := &Feeder{cfg: cfg, tree: newTree(cfg.Paths)}
	f.tree.trim = cfg.Trim
	return f, nil
}

// readable returns an error for the first path that cannot be read.
func readable(paths []string) error {
	for _, p := range paths {
		if err := tryRead(p); err != nil {
			return fmt.Errorf("cannot read %s: %w", p, cause(err))
		}
	}
	return nil
}

func tryRead(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return errors.New("neither a file nor a folder")
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// cause returns the error without operation and path.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Run reads everything, says Synced, and follows changes until ctx is done. It
// returns nil then. It must be called once.
func (f *Feeder) Run(ctx context.Context) error {
	var watchErr error
	f.watcher, watchErr = fsnotify.NewWatcher()
	if watchErr == nil {
		defer func() { _ = f.watcher.Close() }() // it only ends watching
		f.tree.watch = f.watcher.Add
	}
	f.scan(nil)
	f.cfg.Sink.Synced()
	if watchErr != nil {
		f.cfg.Poll = min(f.cfg.Poll, 2*time.Second)
		return f.follow(ctx, nil, nil)
	}
	return f.follow(ctx, f.watcher.Events, f.watcher.Errors)
}

// follow reads again after changes. Events are collected until none came for Settle.
func (f *Feeder) follow(ctx context.Context, events <-chan fsnotify.Event, errs <-chan error) error {
	poll := time.NewTicker(f.cfg.Poll)
	defer poll.Stop()
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	defer quiet.Stop()
	changed := make(map[string]struct{})
	var first time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			if len(changed) == 0 {
				first = time.Now()
			}
			changed[e.Name] = struct{}{}
			if time.Since(first) < maxSettle*f.cfg.Settle {
				quiet.Reset(f.cfg.Settle)
			}
		case _, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			// Events were lost: look at everything.
			f.scan(nil)
		case <-quiet.C:
			f.scan(changed)
			clear(changed)
		case <-poll.C:
			f.scan(nil)
		}
	}
}

// scan looks at all files and delivers what changed, as one change: an object that moves from one file to another, or gets
// another name, is never missing. Files of changed are read even if they look the same; nil = all of them.
func (f *Feeder) scan(changed map[string]struct{}) {
	var events []source.Event
	f.tree.scan(changed, func(e source.Event) { events = append(events, e) })
	f.objects.Store(int64(f.tree.delivered))
	if len(events) > 0 {
		f.cfg.Sink.Event(events...)
	}
	problems := f.tree.problems()
	f.mu.Lock()
	before := f.problems
	f.problems = problems
	f.mu.Unlock()
	tell(f.cfg.Problem, problems, before)
	tell(f.cfg.Cleared, before, problems)
}

// tell calls to for each problem of these that is not among others.
func tell(to func(source.Problem), these, others []source.Problem) {
	if to == nil {
		return
	}
	for _, p := range these {
		if !slices.Contains(others, p) {
			to(p)
		}
	}
}

// Problems returns the problems that stand now, in path order. The slice belongs to
// the caller. Any goroutine may call it.
func (f *Feeder) Problems() []source.Problem {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.problems)
}

// Objects returns the number of objects delivered and not deleted, the events that the
// sink is just taking included. Any goroutine may call it.
func (f *Feeder) Objects() int { return int(f.objects.Load()) }

// Content is what Load has read.
type Content struct {
	Events   []source.Event   // one per object, in path order
	Problems []source.Problem // in path order
	Files    int              // manifest files read
	// Texts are the files that were read, by the names that events and problems have of them.
	Texts map[string][]byte
}

// Load reads paths once. It fails when one of them cannot be read.
func Load(paths ...string) (*Content, error) { return LoadWith("", nil, paths...) }

// LoadWith is Load with a text that is called name besides; name "" = none.
func LoadWith(name string, text []byte, paths ...string) (*Content, error) {
	if err := readable(paths); err != nil {
		return nil, err
	}
	c := &Content{Texts: make(map[string][]byte)}
	t := newTree(paths)
	t.texts = c.Texts
	t.scan(nil, func(e source.Event) { c.Events = append(c.Events, e) })
	if name != "" {
		at := len(c.Events)
		t.addText(name, text, func(e source.Event) { c.Events = append(c.Events, e) })
		c.Events = latest(c.Events, at)
	}
	slices.SortFunc(c.Events, func(a, b source.Event) int { return cmp.Compare(a.Order, b.Order) })
	c.Problems, c.Files = t.problems(), len(t.files)
	return c, nil
}

// latest leaves out events before at whose objects have another one from there on.
func latest(events []source.Event, at int) []source.Event {
	replaced := make(map[id]struct{})
	for _, e := range events[at:] {
		replaced[id{e.Kind, e.Key}] = struct{}{}
	}
	i := 0
	return slices.DeleteFunc(events, func(e source.Event) bool {
		_, again := replaced[id{e.Kind, e.Key}]
		i++
		return i <= at && again
	})
}

// isManifest reports whether a file of a folder is read.
func isManifest(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") || strings.HasSuffix(name, ".json")
}
