package status

import (
	"context"
	"slices"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

const (
	sweepProof = 70 * time.Second // in which a router elsewhere, OpenShift's too, puts back what was removed
	sweepRetry = 10 * time.Minute // after which a sweep that was given up is tried again
	sweepTries = 3
	sweepPause = 50 // times what a page took, before the next: of the API server, which may have thousands of pages and many routers, one has a fiftieth at most
	sweepDoubt = 3  // namespaces where entries come back before a sweep is given up
)

// sweep looks for entries of this router on routes it does not select: the selectors
// were others when they were written, or they were changed while no process ran. Another
// router may have the same name by mistake, so one entry is removed for proof, and the
// others only if it does not come back.
type sweep struct {
	step  func(ctx context.Context) // nil = nothing to do
	due   time.Time                 // of step
	begun time.Time

	token    string    // of the next page
	stale    []*record // found
	proof    *record   // whose entry was removed for proof
	refuted  int       // proofs that came back, each in another namespace
	tries    int
	failures int // of listing, in a row
}

// startSweep begins to look.
func (w *Writer) startSweep(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweep = sweep{step: w.sweepPage, due: now, begun: now, tries: w.sweep.tries + 1}
}

// nextSweep returns the next step when it is due, or how long until then, negative for
// never.
func (w *Writer) nextSweep(now time.Time) (func(context.Context), time.Duration) {
	switch {
	case w.sweep.step == nil:
		return nil, -1
	case w.sweep.due.After(now):
		return nil, w.sweep.due.Sub(now)
	}
	if pause := w.spend(2, now); pause > 0 {
		return nil, pause
	}
	return w.sweep.step, 0
}

// sweepPage looks through one page.
func (w *Writer) sweepPage(ctx context.Context) {
	w.mu.Lock()
	s := &w.sweep
	token := s.token
	w.mu.Unlock()
	var page []routev1.Route
	var next string
	begin := time.Now()
	err := call(ctx, func(ctx context.Context) (err error) {
		page, next, err = w.cfg.API.List(ctx, token)
		return err
	})
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard(err, types.NamespacedName{Namespace: "*", Name: "*"}, now)
	if err != nil {
		w.stats.Failed++
		s.token, s.stale = "", nil // a token may be too old by then
		s.failures++
		s.due = now.Add(min(retryAfter<<min(s.failures, 10), sweepRetry))
		return
	}
	for i := range page {
		route := &page[i]
		if w.routes.Get(keyOf(route)) != nil {
			continue
		}
		r := &record{key: keyOf(route), uid: route.UID, place: place{at: -1}, version: route.ResourceVersion, entries: route.Status.Ingress}
		if entry := w.entryOf(r); entry != nil && !touched(entry).After(s.begun) {
			r.entries = []routev1.RouteIngress{*entry} // not the whole page
			s.stale = append(s.stale, r)
		}
	}
	s.failures, s.due = 0, now.Add(sweepPause*now.Sub(begin))
	if s.token = next; next == "" {
		w.proveNext(now)
	}
}

// proveNext removes one entry for proof, or ends the sweep when none is left.
func (w *Writer) proveNext(now time.Time) {
	s := &w.sweep
	for len(s.stale) > 0 {
		s.proof, s.stale = s.stale[0], s.stale[1:]
		if w.removeStale(s.proof, now) {
			s.step, s.due = w.sweepProof, now.Add(sweepProof)
			return
		}
	}
	s.step = nil
}

// removeStale asks that an entry be removed that was found. It reports false when the
// router has the route by now.
func (w *Writer) removeStale(r *record, now time.Time) bool {
	if w.routes.Get(r.key) != nil {
		return false
	}
	w.routes.Put(r)
	w.leave(r, w.sweep.begun, now)
	return true
}

// sweepProof looks whether the entry that was removed for proof has come back.
func (w *Writer) sweepProof(ctx context.Context) {
	w.mu.Lock()
	s := &w.sweep
	proof, waiting := s.proof, w.routes.Get(s.proof.key) == s.proof
	w.mu.Unlock()
	var err error
	if !waiting {
		err = w.look(ctx, proof)
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !waiting {
		w.heard(err, proof.key, now)
	}
	switch {
	case waiting || err != nil && !apierrors.IsNotFound(err):
		s.due = now.Add(sweepProof)
	case err != nil || w.routes.Get(proof.key) != nil:
		w.proveNext(now) // the route is gone, or the router has it: it proves nothing
	case w.entryOf(proof) == nil:
		for _, r := range s.stale {
			w.removeStale(r, now)
		}
		s.step, s.stale, s.proof = nil, nil, nil
	case w.doubted(proof.key.Namespace):
		w.proveNext(now)
	default:
		w.cfg.Log.Warn("entries of this router on routes it does not select come back when they are removed: "+
			"another router has the same name", zap.String("router", w.cfg.RouterName), zap.Stringer("route", proof.key))
		s.step, s.stale, s.proof = nil, nil, nil
		if s.tries < sweepTries {
			s.step, s.due = w.sweepAgain, now.Add(sweepRetry<<(s.tries-1))
		}
	}
}

// doubted leaves the entries of a namespace alone in which the proof came back: an account that may write to the routes there can have done that.
// It reports whether there are others that may prove more.
func (w *Writer) doubted(namespace string) bool {
	s := &w.sweep
	s.refuted++
	s.stale = slices.DeleteFunc(s.stale, func(r *record) bool { return r.key.Namespace == namespace })
	return s.refuted < sweepDoubt && len(s.stale) > 0
}

// sweepAgain begins anew.
func (w *Writer) sweepAgain(context.Context) { w.startSweep(time.Now()) }
