// Package filewatch tells when files of one folder may have changed: written in place, replaced by a
// rename, or swapped as a whole as Kubernetes does it with the "..data" link of a mounted volume.
package filewatch

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watcher watches one folder. It is made by New.
type Watcher struct {
	notify *fsnotify.Watcher // nil = only polled
	settle time.Duration
	poll   time.Duration
}

// Config is how a folder is watched. Only Dir is required.
type Config struct {
	Dir    string
	Settle time.Duration // quiet time after a change before it is reported; 0 = 20 ms
	Poll   time.Duration // also tell this often, for file systems that do not; 0 = 30 s
}

// New begins to watch: what changes after it has returned is reported by Run. It fails if the folder cannot be
// watched now.
func New(cfg Config) (*Watcher, error) {
	if cfg.Settle <= 0 {
		cfg.Settle = 20 * time.Millisecond
	}
	if cfg.Poll <= 0 {
		cfg.Poll = 30 * time.Second
	}
	w := &Watcher{settle: cfg.Settle, poll: cfg.Poll}
	var err error
	if w.notify, err = fsnotify.NewWatcher(); err == nil {
		err = w.notify.Add(cfg.Dir)
	} else if _, err = os.ReadDir(cfg.Dir); err == nil {
		w.poll = min(w.poll, 2*time.Second) // the system has no watch left: look instead
	}
	if err == nil {
		return w, nil
	}
	if w.notify != nil {
		_ = w.notify.Close() // it watches nothing
	}
	return nil, fmt.Errorf("cannot watch %s: %w", cfg.Dir, err)
}

// Run calls changed, one call at a time, when something in the folder may have changed, and returns when ctx
// is done. Many calls mean nothing: who is called compares what is there with what was there. It must be
// called once.
func (w *Watcher) Run(ctx context.Context, changed func()) {
	var events chan fsnotify.Event
	var errs chan error
	if w.notify != nil {
		defer func() { _ = w.notify.Close() }() // it only ends watching
		events, errs = w.notify.Events, w.notify.Errors
	}
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			quiet.Reset(w.settle)
		case _, open := <-errs: // events were lost
			if !open {
				errs = nil
				continue
			}
			quiet.Reset(w.settle)
		case <-quiet.C:
			changed()
		case <-poll.C:
			changed()
		}
	}
}
