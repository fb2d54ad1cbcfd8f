// Package signals is what a process makes of SIGTERM, SIGINT and SIGHUP, from the first moment on: what would end a process that has
// not said what to do then leaves no line in a log, no status that tells it from a crash, and does not remove its folders.
package signals

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// Stage is what the process does, in the words of the log.
type Stage string

// Catcher ends the process when SIGTERM or SIGINT asks it to.
type Catcher struct {
	signals chan os.Signal
	hung    chan os.Signal // SIGHUP, which ends nothing
	ended   chan struct{}  // closed by Release
	at      atomic.Value   // the Stage
}

// Catch begins to collect signals, which have no effect before Context.
func Catch(first Stage) *Catcher {
	s := &Catcher{signals: make(chan os.Signal, 2), hung: make(chan os.Signal, 1), ended: make(chan struct{})}
	s.Enter(first)
	signal.Notify(s.signals, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(s.hung, syscall.SIGHUP)
	return s
}

// Enter says what the process does from now on. Any goroutine may call it.
func (s *Catcher) Enter(next Stage) { s.at.Store(next) }

// Stage is what the process does.
func (s *Catcher) Stage() Stage { return s.at.Load().(Stage) }

// Release leaves signals to the system again.
func (s *Catcher) Release() {
	signal.Stop(s.signals)
	signal.Stop(s.hung)
	close(s.ended)
}

// HangUps calls again after each SIGHUP, until Release.
func (s *Catcher) HangUps(again func()) {
	for {
		select {
		case <-s.hung:
			again()
		case <-s.ended:
			return
		}
	}
}

// SameSignal is how long the signal that asked to stop can come again without being a second one: terminals and supervisors send it
// to a group and to the process, or twice.
const SameSignal = time.Second

// Context returns a context that ends at the first signal. A second one calls exit, which is to end the process at once. The same one
// again within a second is not a second one.
func (s *Catcher) Context(ctx context.Context, log *zap.Logger, exit func()) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		var first os.Signal // nil = none
		var when time.Time
		for {
			select {
			case got := <-s.signals:
				name, while := zap.Stringer("name", got), zap.String("while", string(s.Stage()))
				switch {
				case first == nil:
					first, when = got, time.Now()
					log.Info("signal", name, while)
					cancel()
				case got == first && time.Since(when) < SameSignal:
					log.Info("the same signal again, which asks for nothing more", name, while)
				default:
					log.Warn("second signal: the process ends at once", name, while)
					exit()
				}
			case <-s.ended:
				return
			}
		}
	}()
	return ctx
}
