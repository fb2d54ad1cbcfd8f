package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"turnout/controller"
	"turnout/internal/filewatch"
)

// podCA follows the file of the authorities that pods of re-encrypt routes are verified against. Those of a cluster are
// rotated, and then both the old and the new one stand in it for a while.
type podCA struct {
	path    string
	watcher *filewatch.Watcher
	current []byte
	log     *zap.Logger
}

// watchPodCA begins to watch; what path holds now is read after it.
func watchPodCA(path string, log *zap.Logger) (*podCA, error) {
	watcher, err := filewatch.New(filewatch.Config{Dir: filepath.Dir(path)})
	if err != nil {
		return nil, err
	}
	return &podCA{path: path, watcher: watcher, log: log}, nil
}

// run gives what the file holds next to control until ctx is done. What cannot be used is logged, and what was before stays.
func (p *podCA) run(ctx context.Context, control *controller.Controller) {
	failed := ""
	p.watcher.Run(ctx, func() {
		next, err := os.ReadFile(p.path)
		if err == nil && bytes.Equal(next, p.current) {
			failed = ""
			return
		}
		if err == nil {
			err = control.SetDefaultDestinationCA(next)
		}
		if err != nil {
			if err.Error() != failed { // the folder is looked at from time to time
				failed = err.Error()
				p.log.Error("default destination CA stays as it was", zap.Error(err))
			}
			return
		}
		p.current, failed = next, ""
		if control.Wait(ctx) == nil { // an error means that the router ends
			p.log.Info("default destination CA changed")
		}
	})
}
