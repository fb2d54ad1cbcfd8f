package follow

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"turnout/internal/filewatch"
	"turnout/internal/problem"
)

// File follows what is in one file. Its methods are for one goroutine.
type File struct {
	path, what string
	watcher    *filewatch.Watcher
	current    []byte
	log        *zap.Logger
	problems   *problem.List
}

// NewFile reads path and begins to watch it. what is how the log calls what is in it. problems may be nil.
func NewFile(path, what string, log *zap.Logger, problems *problem.List) (*File, error) {
	// Watching comes first: what changes from here on is seen.
	watcher, err := filewatch.New(filewatch.Config{Dir: filepath.Dir(path)})
	if err != nil {
		return nil, err
	}
	f := &File{path: path, what: what, watcher: watcher, log: log, problems: problems}
	if f.current, err = os.ReadFile(path); err != nil {
		return nil, fmt.Errorf("cannot load %s: %w", what, err)
	}
	return f, nil
}

// Current is what the file held when it could be used last. It is not changed any more.
func (f *File) Current() []byte { return f.current }

// Run gives what the file holds next to use until ctx is done. An error of use says that it cannot be used; it is served once use
// has returned and served, too.
func (f *File) Run(ctx context.Context, use func([]byte) error, served func(context.Context) error) {
	k := keeper{log: f.log, problems: f.problems, file: f.path, text: f.what + " stays as it was"}
	f.watcher.Run(ctx, func() {
		next, err := os.ReadFile(f.path)
		same := err == nil && bytes.Equal(next, f.current)
		if err == nil && !same {
			err = use(next)
		}
		if !k.keep(err) || same {
			return
		}
		f.current = next
		if served(ctx) == nil { // an error means that the router ends
			f.log.Info(f.what + " changed")
		}
	})
	<-ctx.Done()
}
