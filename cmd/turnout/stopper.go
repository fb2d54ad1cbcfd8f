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
	hung    chan os.Signal // SIGHUP, which ends nothing
	ended   chan struct{}  // closed by release
	at      atomic.Value   // the stage
}

// catchSignals begins to collect signals, which nobody obeys before obey.
func catchSignals() *stopper {
	s := &stopper{signals: make(chan os.Signal, 2), hung: make(chan os.Signal, 1), ended: make(chan struct{})}
	s.enter(readingOptions)
	signal.Notify(s.signals, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(s.hung, syscall.SIGHUP)
	return s
}

// enter says what the process does from now on. Any goroutine may call it.
func (s *stopper) enter(next stage) { s.at.Store(next) }

// stage is what the process does.
func (s *stopper) stage() stage { return s.at.Load().(stage) }

// release leaves signals to the system again.
func (s *stopper) release() {
	signal.Stop(s.signals)
	signal.Stop(s.hung)
	close(s.ended)
}

// hangUps calls again after each SIGHUP, until release.
func (s *stopper) hangUps(again func()) {
	for {
		select {
		case <-s.hung:
			again()
		case <-s.ended:
			return
		}
	}
}

// sameSignal is how long the signal that asked to stop can come again without being a second one: terminals and supervisors send it
// to a group and to the process, or twice.
const sameSignal = time.Second

// obey ends the returned context at the first signal. A second one ends the process with status 1 after flush, which
// writes what waits for the log. The same one again within a second is not a second one.
func (s *stopper) obey(ctx context.Context, log *zap.Logger, flush func()) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		var first os.Signal // nil = none
		var when time.Time
		for {
			select {
			case got := <-s.signals:
				name, while := zap.Stringer("name", got), zap.String("while", string(s.stage()))
				switch {
				case first == nil:
					first, when = got, time.Now()
					log.Info("signal", name, while)
					cancel()
				case got == first && time.Since(when) < sameSignal:
					log.Info("the same signal again, which asks for nothing more", name, while)
				default:
					log.Warn("second signal: the process ends at once", name, while)
					flush()
					os.Exit(1)
				}
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
