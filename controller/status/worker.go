package status

import (
	"context"
	"errors"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"turnout/internal/bound"
)

// Run writes until ctx is done. Then it waits for the write in flight, at most two
// seconds, drops the rest and returns nil. It must be called once.
func (w *Writer) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	ready := w.cfg.Sweep
	if w.cfg.KeepStale {
		ready = nil
	}
	for ctx.Err() == nil {
		job, wait := w.nextCall(time.Now())
		if job != nil {
			job(ctx)
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-timer.C:
		case <-ready:
			ready = nil
			w.startSweep(time.Now())
		}
	}
	return nil
}

// nextCall returns what is to be done now, or nil and how long there is nothing to do.
func (w *Writer) nextCall(now time.Time) (func(context.Context), time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !now.Before(w.flushAt) {
		w.flush(now)
	}
	wait := w.flushAt.Sub(now)
	if pause := w.outage.until.Sub(now); pause > 0 {
		return nil, min(wait, pause)
	}
	if job, pause := w.nextSweep(now); job != nil {
		return job, 0
	} else if pause >= 0 {
		wait = min(wait, pause)
	}
	for n := w.queue.ripen(now); n > 0; n-- {
		r := w.ripe(now)
		if r == nil {
			continue
		}
		if pause := max(w.lease.wait(r.key.Namespace, r.due.time(), now), w.outage.wait(r.key.Namespace, now)); pause > 0 {
			wait = min(wait, pause)
			w.queue.pass()
			continue
		}
		if pause := w.spend(r.calls(), now); pause > 0 {
			return nil, min(wait, pause)
		}
		w.queue.remove(r)
		if w.queue.pass() && w.queue.due(r.key.Namespace, now) {
			w.cfg.Bounds.Reached(bound.StatusWrites)
		}
		r.busy = true
		w.busy++
		return func(ctx context.Context) { w.do(ctx, r) }, 0
	}
	if pause := w.queue.pause(now); pause >= 0 {
		wait = min(wait, pause)
	}
	return nil, wait
}

// ripe returns the route that the namespace whose turn it is has to be written first, nil if it has none.
func (w *Writer) ripe(now time.Time) *record {
	for {
		if r := w.queue.first(now); r == nil || w.stillNeeded(r, now) {
			return r
		}
	}
}

// calls returns how many calls a write takes.
func (r *record) calls() int {
	if r.looks() {
		return 2
	}
	return 1
}

// looks reports whether the route is read before it is written: the source does not tell of it any more, or not fast enough.
func (r *record) looks() bool {
	return r.left != nil || r.conflicts > 1 || r.conflicts == 1 && r.version == r.refused
}

// spend takes calls out of the budget, or returns how long to wait for them.
func (w *Writer) spend(calls int, now time.Time) time.Duration {
	reserved := w.limit.ReserveN(now, calls)
	pause := reserved.DelayFrom(now)
	if pause > 0 {
		reserved.CancelAt(now)
	}
	return pause
}

// stillNeeded reports whether a queued route is to be written to. If not, it is out of
// the queue.
func (w *Writer) stillNeeded(r *record, now time.Time) bool {
	if r.left == nil && w.nothingToWrite(r) {
		w.consider(r, now)
		return false
	}
	created := w.entryOf(r) == nil && r.wrote == 0
	if created || !w.contention.holds(r.uid, now) {
		return true
	}
	w.stats.Contended++
	w.cfg.Bounds.Reached(bound.StatusWrites)
	w.queue.remove(r)
	r.skipped = true
	return false
}

// flush forgets old contention. What was left out because of it is taken up again when
// nobody has interfered in its namespace for the resync interval: a few routes, and twice as many each
// time as long as it stays calm. The other side may have given in, not gone.
func (w *Writer) flush(now time.Time) {
	w.flushAt = now.Add(2 * w.contention.interval)
	if n := w.contention.flush(now); n > 0 {
		w.cfg.Log.Warn("another process writes other status under the name of this router: give each router a name of its own, "+
			"and replicas of one router the same configuration", zap.String("router", w.cfg.RouterName), zap.Int("contentions", n),
			zap.Strings("namespaces", w.contention.where()))
	}
	w.outage.flush(now)
	left := make(map[string]int) // by namespace: how many more routes may be taken up
	for r := range w.routes.All() {
		namespace := r.key.Namespace
		if !r.skipped {
			continue
		}
		n, known := left[namespace]
		if !known {
			n = w.contention.reopen(namespace, w.cfg.Resync, now)
		}
		if !w.contention.holds(r.uid, now) {
			if n--; n >= 0 {
				w.revive(r, now)
			}
		}
		left[namespace] = n
	}
	w.contention.settle(left)
}

// revive takes up a route that was left out. Should somebody interfere now, it was one
// time too many.
func (w *Writer) revive(r *record, now time.Time) {
	r.skipped = false
	w.contention.suspect(r.key.Namespace, r.uid, r.want, now)
	if r.left == nil {
		w.consider(r, now)
	} else {
		w.enqueue(r, now)
	}
}

// do writes one route.
func (w *Writer) do(ctx context.Context, r *record) {
	w.mu.Lock()
	look := r.looks()
	w.mu.Unlock()
	var sent, written *routev1.Route
	var err error
	if look {
		err = w.look(ctx, r)
	}
	if err == nil {
		if sent = w.compose(r, time.Now()); sent != nil {
			err = call(ctx, func(ctx context.Context) (err error) {
				written, err = w.cfg.API.WriteStatus(ctx, sent)
				return err
			})
		}
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if (look || sent != nil) && !errors.Is(err, errStale) {
		w.heard(err, r.key, now)
	}
	w.finish(r, sent, written, err, now)
}

// errStale is that a route has changed in a way the source has not delivered yet, so that
// it is not known what should be written.
var errStale = errors.New("the route has another spec by now")

// look gets the route as it is now. It is not found when it is another one by now.
func (w *Writer) look(ctx context.Context, r *record) error {
	var live *routev1.Route
	err := call(ctx, func(ctx context.Context) (err error) {
		live, err = w.cfg.API.GetRoute(ctx, r.key.Namespace, r.key.Name)
		return err
	})
	if err != nil {
		return err
	}
	if live.UID != r.uid {
		return apierrors.NewNotFound(routev1.Resource("routes"), r.key.Name)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.left == nil && r.spec != 0 && w.specOf(live) != r.spec {
		return errStale
	}
	r.observe(live)
	return nil
}

// compose returns what is to be sent, nil for nothing.
func (w *Writer) compose(r *record, now time.Time) *routev1.Route {
	w.mu.Lock()
	defer w.mu.Unlock()
	live := w.entryOf(r)
	out := &routev1.Route{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.key.Namespace, Name: r.key.Name, UID: r.uid, ResourceVersion: r.version,
	}}
	switch {
	case r.left != nil:
		if live == nil || touched(live).After(r.left.entry) && !touched(live).Before(r.left.since.Truncate(time.Second)) {
			return nil // gone, or written by one that has the route now
		}
		r.writing = nil
		out.Status.Ingress = without(w.cfg.RouterName, r.entries)
	case w.nothingToWrite(r):
		return nil
	default:
		r.writing = w.rules.merged(live, r.want, now)
		out.Status.Ingress = WithEntry(Options{RouterName: w.cfg.RouterName}, r.entries, r.writing)
	}
	return out
}

// finish takes over how a write ended. sent is nil when none was made.
func (w *Writer) finish(r *record, sent, written *routev1.Route, err error, now time.Time) {
	wrote := r.writing
	r.busy, r.writing = false, nil
	w.busy--
	switch {
	case err == nil:
		if sent != nil {
			w.wrote(r, sent, written, wrote, now)
		}
	case apierrors.IsNotFound(err):
		w.lease.lost(r.key.Namespace, now)
		w.forget(r)
	case errors.Is(err, errStale):
		w.retry(r, now.Add(retryAfter))
	case apierrors.IsConflict(err) && sent != nil:
		w.stats.Conflicts++
		w.lease.lost(r.key.Namespace, now)
		r.conflicts++
		r.refused = sent.ResourceVersion
		w.retry(r, now.Add(retryAfter))
	default:
		w.stats.Failed++
		r.failures++
		r.conflicts = 0
		w.retry(r, now.Add(retryTime(err, int(r.failures))))
	}
	switch {
	case w.routes.Get(r.key) != r || err != nil:
	case r.left == nil:
		w.consider(r, now)
	case wrote == nil:
		w.forget(r) // removed, or nothing to remove
	default:
		w.leave(r, r.left.since, now) // left while the entry was being written
	}
}

// wrote takes over that an entry was written, nil that it was removed.
func (w *Writer) wrote(r *record, sent, written *routev1.Route, entry *routev1.RouteIngress, now time.Time) {
	w.lease.wrote()
	w.contention.confirmed(r.uid, entry)
	r.wrote, r.conflicts, r.failures, r.refused = instantOf(now), 0, 0, ""
	if entry != nil {
		w.stats.Written++
	} else {
		w.stats.Removed++
	}
	if r.version == sent.ResourceVersion {
		// No newer one was observed during the call.
		r.version, r.entries, r.seen = written.ResourceVersion, written.Status.Ingress, entry
	} else if entry != nil && w.rules.agrees(w.entryOf(r), entry) {
		r.seen = entry
	}
}

// retry queues a route for another attempt, unless it was forgotten during the last.
func (w *Writer) retry(r *record, due time.Time) {
	if w.routes.Get(r.key) != r {
		return
	}
	w.queued++
	r.since = w.queued
	w.queue.addRecord(r, due)
}

// heard notes whether the API answers, and logs when that changes.
func (w *Writer) heard(err error, about types.NamespacedName, now time.Time) {
	begun, ended := w.outage.after(err, about.Namespace, now)
	if begun {
		w.cfg.Log.Warn("cannot write route status", zap.Stringer("route", about), zap.Error(err))
	}
	if ended > 0 {
		w.cfg.Log.Info("route status is written again", zap.Duration("after", ended), zap.Int("pending", w.queue.len()))
	}
}

// call makes a call to the API. The end of ctx leaves it a little time to finish.
func call(ctx context.Context, f func(context.Context) error) error {
	inner, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { hurry(inner, cancel) })()
	return f(inner)
}

// hurry cancels what has not finished soon.
func hurry(ctx context.Context, cancel context.CancelFunc) {
	end := time.NewTimer(endTimeout)
	defer end.Stop()
	select {
	case <-end.C:
		cancel()
	case <-ctx.Done():
	}
}
