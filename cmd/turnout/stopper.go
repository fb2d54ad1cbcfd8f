package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// stage is what the process does, in the words of the log.
type stage string

// The stages, in their order.
const (
	readingOptions stage = "reading options"
	meetingOther   stage = "asking the process before this one for its sockets"
	readingFiles   stage = "reading certificates and other files"
	openingPorts   stage = "opening ports"
	readingObjects stage = "reading objects for the first time"
	takingOver     stage = "beginning to accept connections"
	serving        stage = "serving"
	stopping       stage = "stopping"
)

// startPatience is how long a process that is asked to stop waits for a start that is under way, which may be held
// up by a file or by another process.
const startPatience = time.Second

// hurriedPatience is the same for whoever reads the log, after a second signal.
const hurriedPatience = 100 * time.Millisecond

// stopper ends the process when SIGTERM or SIGINT asks it to, from the first moment on: what would end a process that
// has not said what to do then leaves no line in a log, no status that tells it from a crash, and folders behind.
type stopper struct {
	signals chan os.Signal
	ended   chan struct{} // closed by release
	at      atomic.Value  // the stage
}

// catchSignals begins to collect signals, which nobody obeys before obey.
func catchSignals() *stopper {
	s := &stopper{signals: make(chan os.Signal, 2), ended: make(chan struct{})}
	s.enter(readingOptions)
	signal.Notify(s.signals, syscall.SIGTERM, syscall.SIGINT)
	return s
}

// enter says what the process does from now on. Any goroutine may call it.
func (s *stopper) enter(next stage) { s.at.Store(next) }

// stage is what the process does.
func (s *stopper) stage() stage { return s.at.Load().(stage) }

// release leaves signals to the system again.
func (s *stopper) release() {
	signal.Stop(s.signals)
	close(s.ended)
}

// obey ends the returned context at the first signal. A second one ends the process with status 1 after flush, which
// writes what waits for the log.
func (s *stopper) obey(ctx context.Context, log *zap.Logger, flush func()) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		for asked := false; ; asked = true {
			select {
			case got := <-s.signals:
				while := zap.String("while", string(s.stage()))
				if asked {
					log.Warn("second signal: the process ends at once", zap.Stringer("name", got), while)
					flush()
					os.Exit(1)
				}
				log.Info("signal", zap.Stringer("name", got), while)
				cancel()
			case <-s.ended:
				return
			}
		}
	}()
	return ctx
}

// start makes a router, whatever newRouter waits for. It returns nil without an error when ctx ends before there is
// one: then the process has nothing to finish, and the system takes back what is half made.
func (s *stopper) start(ctx context.Context, o *options, log *zap.Logger, stdout io.Writer) (*router, error) {
	type result struct {
		r   *router
		err error
	}
	made := make(chan result, 1)
	go func() {
		r, err := newRouter(o, log, stdout, s.enter)
		made <- result{r, err}
	}()
	select {
	case m := <-made:
		return m.r, m.err
	case <-ctx.Done():
	}
	late := time.NewTimer(startPatience)
	defer late.Stop()
	select {
	case m := <-made:
		return m.r, m.err
	case <-late.C:
		log.Info("stopped before it listened", zap.String("while", string(s.stage())))
		return nil, nil
	}
}
