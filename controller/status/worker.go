package status

import (
	"context"
	"errors"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
		job, wait := w.next(time.Now())
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

// next returns what is to be done now, or nil and how long there is nothing to do.
func (w *Writer) next(now time.Time) (func(context.Context), time.Duration) {
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
	for len(w.queue) > 0 {
		r := w.queue[0]
		if pause := r.due.Sub(now); pause > 0 {
			return nil, min(wait, pause)
		}
		if !w.stillNeeded(r, now) {
			continue
		}
		if pause := w.lease.wait(now); pause > 0 {
			return nil, min(wait, pause)
		}
		calls := 1
		if !r.left.IsZero() {
			calls = 2
		}
		if pause := w.spend(calls, now); pause > 0 {
			return nil, min(wait, pause)
		}
		w.queue.remove(r)
		r.busy = true
		w.busy++
		return func(ctx context.Context) { w.do(ctx, r) }, 0
	}
	return nil, wait
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
	if r.left.IsZero() && w.done(r) {
		w.consider(r, now)
		return false
	}
	created := w.entryOf(r) == nil && r.wrote.IsZero()
	if created || !w.contention.holds(r.uid, now) {
		return true
	}
	w.stats.Contended++
	if w.lease.wait(now) == 0 {
		w.lease.lost(now)
	}
	w.queue.remove(r)
	r.skipped = true
	return false
}

// flush forgets old contention. What was left out because of it is taken up again when
// nobody has interfered for the resync interval: a few routes, and twice as many each
// time as long as it stays calm. The other side may have given in, not gone.
func (w *Writer) flush(now time.Time) {
	w.flushAt = now.Add(2 * w.contention.interval)
	if n := w.contention.flush(now); n > 0 {
		w.quarrelAt, w.again = now, 0
		w.cfg.Log.Warn("another process writes other status under the name of this router: give each router a name of its own, "+
			"and replicas of one router the same configuration", zap.String("router", w.cfg.RouterName), zap.Int("contentions", n))
	}
	if now.Sub(w.quarrelAt) < w.cfg.Resync {
		return
	}
	w.again = max(maxContentions, 2*w.again)
	left := w.again
	for _, r := range w.routes {
		if !r.skipped || w.contention.holds(r.uid, now) {
			continue
		}
		if left--; left < 0 {
			return
		}
		w.revive(r, now)
	}
	w.again = 0 // all of them
}

// revive takes up a route that was left out. Should somebody interfere now, it was one
// time too many.
func (w *Writer) revive(r *record, now time.Time) {
	r.skipped = false
	w.contention.suspect(r.uid, r.want, now)
	if r.left.IsZero() {
		w.consider(r, now)
	} else {
		w.enqueue(r, now)
	}
}

// do writes one route.
func (w *Writer) do(ctx context.Context, r *record) {
	w.mu.Lock()
	// The source does not tell of it any more, or not fast enough.
	look := !r.left.IsZero() || r.conflicts > 1 || r.conflicts == 1 && r.version == r.refused
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
	if (look || sent != nil) && !errors.Is(err, errBehind) {
		w.heard(err, r.key, now)
	}
	w.finish(r, sent, written, err, now)
}

// errBehind is that a route has changed in a way the source has not told of yet, so that
// it is not known what should be written.
var errBehind = errors.New("the route has another spec by now")

// look gets the route as it is now. It is not found when it is another one by now.
func (w *Writer) look(ctx context.Context, r *record) error {
	var live *routev1.Route
	err := call(ctx, func(ctx context.Context) (err error) {
		live, err = w.cfg.API.Get(ctx, r.key.Namespace, r.key.Name)
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
	if r.left.IsZero() && r.object != nil && !equality.Semantic.DeepEqual(live.Spec, r.object.Spec) {
		return errBehind
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
	case !r.left.IsZero():
		if live == nil || touched(live).After(r.known) && !touched(live).Before(r.left.Truncate(time.Second)) {
			return nil // gone, or written by one that has the route now
		}
		r.writing = nil
		out.Status.Ingress = without(w.cfg.RouterName, r.entries)
	case w.done(r):
		return nil
	default:
		r.writing = w.rules.merged(live, r.want, now)
		out.Status.Ingress = Put(Options{RouterName: w.cfg.RouterName}, r.entries, r.writing)
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
		w.lease.lost(now)
		w.forget(r)
	case errors.Is(err, errBehind):
		w.retry(r, now.Add(retryAfter))
	case apierrors.IsConflict(err) && sent != nil:
		w.stats.Conflicts++
		w.lease.lost(now)
		r.conflicts++
		r.refused = sent.ResourceVersion
		w.retry(r, now.Add(retryAfter))
	default:
		w.stats.Failed++
		r.failures++
		r.conflicts = 0
		w.retry(r, now.Add(w.outage.retry(err, r.failures)))
	}
	switch {
	case w.routes[r.key] != r || err != nil:
	case r.left.IsZero():
		w.consider(r, now)
	case wrote == nil:
		w.forget(r) // removed, or nothing to remove
	default:
		w.leave(r, r.left, now) // left while the entry was being written
	}
}

// wrote takes over that an entry was written, nil that it was removed.
func (w *Writer) wrote(r *record, sent, written *routev1.Route, entry *routev1.RouteIngress, now time.Time) {
	w.lease.wrote()
	w.contention.confirmed(r.uid, entry)
	r.wrote, r.conflicts, r.failures, r.refused = now, 0, 0, ""
	if entry != nil {
		w.stats.Written++
	} else {
		w.stats.Removed++
	}
	if r.version == sent.ResourceVersion {
		// Nobody has told of a newer one during the call.
		r.version, r.entries, r.seen = written.ResourceVersion, written.Status.Ingress, entry
	} else if entry != nil && w.rules.agrees(w.entryOf(r), entry) {
		r.seen = entry
	}
}

// retry queues a route for another attempt, unless it was forgotten during the last.
func (w *Writer) retry(r *record, due time.Time) {
	if w.routes[r.key] != r {
		return
	}
	w.queued++
	r.since = w.queued
	w.queue.add(r, due)
}

// heard notes whether the API answers, and logs when that changes.
func (w *Writer) heard(err error, about types.NamespacedName, now time.Time) {
	begun, ended := w.outage.after(err, now)
	if begun {
		w.cfg.Log.Warn("cannot write route status", zap.Stringer("route", about), zap.Error(err))
	}
	if ended > 0 {
		w.cfg.Log.Info("route status is written again", zap.Duration("after", ended), zap.Int("pending", len(w.queue)))
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
