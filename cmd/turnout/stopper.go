package main

import (
	"context"
	"io"
	"time"

	"go.uber.org/zap"

	"turnout/internal/live"
	"turnout/internal/logging"
	"turnout/internal/signals"
)

// The stages, in their order.
const (
	readingOptions  signals.Stage = "reading options"
	readingSettings signals.Stage = "reading the IngressController"
	meetingOther    signals.Stage = "asking the process before this one for its sockets"
	readingFiles    signals.Stage = "reading certificates and other files"
	openingPorts    signals.Stage = "opening ports"
	readingObjects  signals.Stage = "reading objects for the first time"
	takingOver      signals.Stage = "beginning to accept connections"
	serving         signals.Stage = "serving"
	stopping        signals.Stage = "stopping"
)

// startPatience is how long a process that is asked to stop waits for a start that is under way, which may be held
// up by a file or by another process.
const startPatience = time.Second

// hurriedPatience is the same for the reader of the log, after a second signal.
const hurriedPatience = 100 * time.Millisecond

// start makes a router, whatever newRouter waits for. It returns nil without an error when ctx ends before there is
// one: then the process has nothing to finish, and the system takes back what is half made.
func start(ctx context.Context, caught *signals.Catcher, o *options, s *live.Settings, log *zap.Logger, level *logging.Level, stdout io.Writer) (*router, error) {
	r, made, err := signals.Wait(ctx, startPatience, func() (*router, error) { return newRouter(o, s, log, level, stdout, caught.Enter) })
	if !made {
		log.Info("stopped before it listened", zap.String("while", string(caught.Stage())))
	}
	return r, err
}
