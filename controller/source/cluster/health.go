package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"turnout/internal/problem"
)

// health is whether the API server answers the readers. An outage begins when the first
// of them gets no answer and ends when the last one does again; each end is logged to
// the log once. While none of them gets an answer, what is many waits instead of trying.
type health struct {
	log      *zap.Logger
	problems *problem.List // nil = nobody asks
	server   string
	readers  int

	mu    sync.Mutex
	away  map[string]struct{} // readers that get no answer now
	since time.Time           // of the outage
	up    chan struct{}       // closed while some reader gets answers
}

// newHealth returns the health of a server that a number of readers ask.
func newHealth(log *zap.Logger, server string, readers int) *health {
	h := &health{log: log, server: server, readers: readers, away: make(map[string]struct{}), up: make(chan struct{})}
	close(h.up)
	return h
}

// failed says that a reader gets no answer.
func (h *health) failed(reader string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.away) == 0 {
		h.since = time.Now()
		const text = "the API server cannot be reached; what is known is served on"
		h.log.Warn(text, zap.String("server", h.server), zap.Error(err))
		h.problems.Set("source/API server", problem.Problem{Kind: problem.Source, Server: h.server, Text: fmt.Sprintf("%s: %v", text, err)})
	}
	if _, was := h.away[reader]; was {
		return
	}
	if h.away[reader] = struct{}{}; len(h.away) == h.readers {
		h.up = make(chan struct{})
	}
}

// answered says that a reader gets answers.
func (h *health) answered(reader string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, was := h.away[reader]; !was {
		return
	}
	if len(h.away) == h.readers {
		close(h.up)
	}
	if delete(h.away, reader); len(h.away) == 0 {
		h.problems.Set("source/API server")
		h.log.Info("the API server can be reached again", zap.String("server", h.server), zap.Duration("after", time.Since(h.since).Round(time.Millisecond)))
	}
}

// wait returns when some reader gets answers or ctx is done. The bool is false for the latter.
func (h *health) wait(ctx context.Context) bool {
	for {
		h.mu.Lock()
		up := h.up
		h.mu.Unlock()
		select {
		case <-ctx.Done():
			return false
		case <-up:
			return true
		}
	}
}

// isOutage reports whether an error means that there was no answer, or one that says
// that there is nobody to answer.
func isOutage(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	return status.Status().Code >= 500 || apierrors.IsTooManyRequests(err)
}

// backoff is how long to wait between attempts: from first on, doubled each time, at
// most last, each of it by chance between half and one and a half. The zero attempt is
// the first. Durations of zero or less are not allowed.
type backoff struct {
	first, last time.Duration
}

// retryAPI is how often an API server that does not answer is asked.
func retryAPI() backoff { return backoff{first: 500 * time.Millisecond, last: 8 * time.Second} }

// delay returns how long to wait after a number of failed attempts, counted from 0.
func (b backoff) delay(attempt int) time.Duration {
	d := b.last
	if attempt < 32 && b.first<<attempt < b.last && b.first<<attempt > 0 {
		d = b.first << attempt
	}
	return d/2 + rand.N(d)
}

// sleep waits that long after an error, or as long as the server asks for in it, at most
// a minute. The bool is false when ctx is done first.
func (b backoff) sleep(ctx context.Context, attempt int, err error) bool {
	d := b.delay(attempt)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		d = max(d, min(time.Duration(seconds)*time.Second, time.Minute))
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
