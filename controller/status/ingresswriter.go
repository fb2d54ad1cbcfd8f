package status

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"turnout/controller/ingress"
	"turnout/internal/bound"
)

const (
	mostEvents   = 8                // about one Ingress at a time; the others are in /problems
	eventAgain   = 45 * time.Minute // after which an Event is made again if it is still true: the API server forgets it after an hour
	rewriteFirst = time.Second      // between two writes of the same, which somebody has changed in between; doubled each time
	rewriteMost  = 10 * time.Minute
)

// IngressAPI is the cluster as an IngressWriter sees it. Errors are those of the Kubernetes client.
type IngressAPI interface {
	// WriteIngress makes the addresses in the status of an Ingress those of list. It fails with a conflict when the Ingress has another UID or
	// resourceVersion. It returns the Ingress as it is then.
	WriteIngress(ctx context.Context, object *networkingv1.Ingress, list []networkingv1.IngressLoadBalancerIngress) (*networkingv1.Ingress, error)
	// CreateEvent makes an Event. That there is one of its name is an error that apierrors.IsAlreadyExists tells.
	CreateEvent(ctx context.Context, event *corev1.Event) error
}

// IngressWriterConfig is what an IngressWriter needs.
type IngressWriterConfig struct {
	API       IngressAPI // required
	Addresses []string   // IP addresses and host names at which clients reach the router; empty = the status is left as it is
	// Read returns these addresses, and is called every 10 s; nil = Addresses stay. While it fails they stay as they were.
	Read       func(context.Context) ([]string, error)
	RouterName string        // in Events
	Log        *zap.Logger   // nil = no logs
	Bounds     *bound.Counts // counts bounds that Ingresses reach; nil = nobody does
	Rate       float64       // calls per second; 0 = 20
}

// IngressWriter writes status.loadBalancer of Ingresses, and Events about what cannot be served. It implements IngressReporter. Replicas
// write the same and give way to each other: a status that stands there already is not written, and an Event has a name that
// follows from what it says.
type IngressWriter struct {
	cfg   IngressWriterConfig
	want  []networkingv1.IngressLoadBalancerIngress
	wake  chan struct{} // one slot
	limit *rate.Limiter

	mu     sync.Mutex
	all    map[types.NamespacedName]*ingressRecord
	queue  queue[*ingressRecord]
	queued uint64
	lease  lease
	outage outage
	stats  Stats
}

var _ IngressReporter = (*IngressWriter)(nil)

// ingressRecord is one Ingress.
type ingressRecord struct {
	place
	key      types.NamespacedName
	uid      types.UID
	object   *networkingv1.Ingress // as it was delivered or written last
	served   bool
	left     bool // the router does not serve it any more
	problems []ingress.Problem
	said     map[ingress.Problem]time.Time // the Events that were made, and when

	mine     bool      // the status was written by this process
	wrote    time.Time // last
	rewrites int       // in a row
	failures int       // in a row
	busy     bool      // the worker has it
}

func (r *ingressRecord) tenancy() string { return r.key.Namespace }

// NewIngressWriter returns a writer that writes nothing before Run. It fails when cfg cannot be used.
func NewIngressWriter(cfg IngressWriterConfig) (*IngressWriter, error) {
	if cfg.API == nil {
		return nil, errors.New("cannot make writer of Ingresses: no API given")
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Rate <= 0 {
		cfg.Rate = 20
	}
	return &IngressWriter{
		cfg: cfg, want: loadBalancer(cfg.Addresses), wake: make(chan struct{}, 1), limit: rate.NewLimiter(rate.Limit(cfg.Rate), max(int(cfg.Rate), 1)),
		all: make(map[types.NamespacedName]*ingressRecord), queue: newQueue[*ingressRecord](), lease: lease{chance: rand.Float64}, outage: outage{chance: rand.Float64},
	}, nil
}

// Stats returns what was counted: Written and Removed are statuses. Any goroutine may call it.
func (w *IngressWriter) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	s.Pending, s.Leader = w.queue.len(), w.lease.state == leader
	return s
}

// And returns s with what a writer of Ingresses, which may be nil, has counted. Leader is that of s.
func (s Stats) And(w *IngressWriter) Stats {
	if w == nil {
		return s
	}
	o := w.Stats()
	s.Written, s.Removed, s.Conflicts, s.Failed, s.Pending = s.Written+o.Written, s.Removed+o.Removed, s.Conflicts+o.Conflicts, s.Failed+o.Failed, s.Pending+o.Pending
	return s
}

// Report implements IngressReporter.
func (w *IngressWriter) Report(object *networkingv1.Ingress, outcome IngressOutcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.record(object)
	r.object, r.served, r.left, r.problems = object, outcome.Served, false, outcome.Problems[:min(len(outcome.Problems), mostEvents)]
	r.prune()
	w.consider(r, time.Now())
}

// Withdraw implements IngressReporter.
func (w *IngressWriter) Withdraw(object *networkingv1.Ingress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.all[ingressKey(object)]
	switch {
	case r == nil && !w.left(object):
		return // others serve it
	case r != nil && r.uid != object.UID:
		return
	case r == nil:
		r = w.record(object)
	}
	r.object, r.served, r.left, r.problems, r.said = object, false, true, nil, nil
	w.consider(r, time.Now())
}

// Forget implements IngressReporter.
func (w *IngressWriter) Forget(object *networkingv1.Ingress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.all[ingressKey(object)]; r != nil && r.uid == object.UID {
		w.forget(r)
	}
}

func ingressKey(o *networkingv1.Ingress) types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// left reports whether an Ingress has the status that this program gave it.
func (w *IngressWriter) left(o *networkingv1.Ingress) bool {
	return len(w.want) > 0 && sameAddresses(o.Status.LoadBalancer.Ingress, w.want) && IngressManaged(o) != nil
}

func (w *IngressWriter) record(object *networkingv1.Ingress) *ingressRecord {
	key := ingressKey(object)
	r := w.all[key]
	if r != nil && r.uid != object.UID {
		w.forget(r)
		r = nil
	}
	if r == nil {
		r = &ingressRecord{place: place{at: -1}, key: key, uid: object.UID, object: object}
		w.all[key] = r
	}
	return r
}

func (w *IngressWriter) forget(r *ingressRecord) {
	w.queue.remove(r)
	if w.all[r.key] == r {
		delete(w.all, r.key)
	}
}

// prune forgets Events that are no longer true, so that they are made again when they are.
func (r *ingressRecord) prune() {
	there := make(map[ingress.Problem]bool, len(r.problems))
	for _, p := range r.problems {
		there[p] = true
	}
	for p := range r.said {
		if !there[p] {
			delete(r.said, p)
		}
	}
}

// writesStatus reports whether the status is to be written.
func (w *IngressWriter) writesStatus(r *ingressRecord) bool {
	now := r.object.Status.LoadBalancer.Ingress
	switch {
	case len(w.want) == 0:
		return false
	case r.served:
		return !sameAddresses(now, w.want)
	}
	return sameAddresses(now, w.want) && (r.mine || IngressManaged(r.object) != nil)
}

// nextDue returns when something is to be done for an Ingress; false for never.
func (w *IngressWriter) nextDue(r *ingressRecord, now time.Time) (due time.Time, ok bool) {
	if w.writesStatus(r) {
		if r.wrote.IsZero() {
			return now, true
		}
		return r.wrote.Add(min(rewriteFirst<<min(r.rewrites, 20), rewriteMost)), true
	}
	for _, p := range r.problems {
		at, said := r.said[p]
		if !said {
			return now, true
		}
		if again := at.Add(eventAgain); !ok || again.Before(due) {
			due, ok = again, true
		}
	}
	return due, ok
}

// consider queues an Ingress if something is to be done for it, and takes it out of the queue if not.
func (w *IngressWriter) consider(r *ingressRecord, now time.Time) {
	if r.busy {
		return // it is looked at again after the call
	}
	due, ok := w.nextDue(r, now)
	switch {
	case !ok && r.left:
		w.forget(r)
	case !ok:
		if r.at >= 0 {
			w.lease.followed(r.key.Namespace, now)
		}
		w.queue.remove(r)
		r.failures = 0
	default:
		if first := now.Add(w.lease.first()); due.Before(first) {
			due = first
		}
		if r.at >= 0 {
			w.queue.remove(r)
		}
		w.enqueue(r, due)
	}
}

func (w *IngressWriter) enqueue(r *ingressRecord, due time.Time) {
	w.queued++
	r.since = w.queued
	w.queue.addRecord(r, due)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run writes until ctx is done. Then it waits for the call in flight, at most two seconds, drops the rest and returns nil. It must be called once.
func (w *IngressWriter) Run(ctx context.Context) error {
	if w.cfg.Read != nil {
		var reading sync.WaitGroup
		defer reading.Wait()
		reading.Go(func() { w.followAddresses(ctx) })
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
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
		}
	}
	return nil
}

// idle is how long a writer with nothing to do waits to be woken.
const idle = time.Hour

// nextCall returns what is to be done now, or nil and how long there is nothing to do.
func (w *IngressWriter) nextCall(now time.Time) (func(context.Context), time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pause := w.outage.until.Sub(now); pause > 0 {
		return nil, pause
	}
	wait := idle
	for n := w.queue.ripen(now); n > 0; n-- {
		r := w.queue.first(now)
		if r == nil {
			continue
		}
		if pause := max(w.lease.wait(r.key.Namespace, r.due.time(), now), w.outage.wait(r.key.Namespace, now)); pause > 0 {
			wait = min(wait, pause)
			w.queue.pass()
			continue
		}
		reserved := w.limit.ReserveN(now, 1)
		if pause := reserved.DelayFrom(now); pause > 0 {
			reserved.CancelAt(now)
			return nil, min(wait, pause)
		}
		w.queue.remove(r)
		if w.queue.pass() && w.queue.due(r.key.Namespace, now) {
			w.cfg.Bounds.Reached(bound.StatusWrites)
		}
		r.busy = true
		return func(ctx context.Context) { w.do(ctx, r) }, 0
	}
	if pause := w.queue.pause(now); pause >= 0 {
		wait = min(wait, pause)
	}
	return nil, wait
}

// do makes one call for an Ingress: its status first, then an Event.
func (w *IngressWriter) do(ctx context.Context, r *ingressRecord) {
	w.mu.Lock()
	object, served, writes := r.object, r.served, w.writesStatus(r)
	var say *ingress.Problem
	for i := range r.problems {
		if at, said := r.said[r.problems[i]]; !writes && say == nil && (!said || time.Since(at) >= eventAgain) {
			say = &r.problems[i]
		}
	}
	w.mu.Unlock()
	var err error
	var written *networkingv1.Ingress
	switch {
	case writes:
		list := w.want
		if !served {
			list = nil
		}
		err = call(ctx, func(ctx context.Context) (err error) {
			written, err = w.cfg.API.WriteIngress(ctx, object, list)
			return err
		})
	case say != nil:
		if err = call(ctx, func(ctx context.Context) error {
			return w.cfg.API.CreateEvent(ctx, eventOf(object, *say, w.cfg.RouterName, time.Now()))
		}); apierrors.IsAlreadyExists(err) {
			err = nil // a replica was first
		}
	}
	w.finish(r, object, written, say, err, time.Now())
}

// finish takes over how a call ended.
func (w *IngressWriter) finish(r *ingressRecord, sent, written *networkingv1.Ingress, said *ingress.Problem, err error, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.busy = false
	begun, ended := w.outage.after(err, r.key.Namespace, now)
	if begun {
		w.cfg.Log.Warn("cannot write status or Event of an Ingress", zap.Stringer("ingress", r.key), zap.Error(err))
	}
	if ended > 0 {
		w.cfg.Log.Info("status of Ingresses is written again", zap.Duration("after", ended), zap.Int("pending", w.queue.len()))
	}
	if w.all[r.key] != r {
		return // another of its name by now
	}
	switch {
	case err == nil && written != nil:
		w.wrote(r, sent, written, now)
	case err == nil && said != nil:
		if r.said == nil {
			r.said = make(map[ingress.Problem]time.Time)
		}
		r.said[*said], r.failures = now, 0
		r.prune()
	case err == nil:
	case apierrors.IsNotFound(err):
		w.lease.lost(r.key.Namespace, now)
		w.forget(r)
		return
	case apierrors.IsConflict(err):
		w.stats.Conflicts++
		w.lease.lost(r.key.Namespace, now)
		if r.object == sent { // what came between is not known yet
			w.enqueue(r, now.Add(retryAfter))
			return
		}
	default:
		w.stats.Failed++
		r.failures++
		w.enqueue(r, now.Add(retryTime(err, r.failures)))
		return
	}
	w.consider(r, now)
}

// wrote takes over that a status was written.
func (w *IngressWriter) wrote(r *ingressRecord, sent, written *networkingv1.Ingress, now time.Time) {
	w.lease.wrote()
	if now.Sub(r.wrote) > 2*rewriteMost {
		r.rewrites = 0
	} else {
		r.rewrites++
	}
	r.wrote, r.failures, r.mine = now, 0, r.served
	if r.served {
		w.stats.Written++
	} else {
		w.stats.Removed++
	}
	if r.object == sent { // nothing newer has been delivered
		next := *sent
		next.ResourceVersion, next.Status = written.ResourceVersion, written.Status
		r.object = &next
	}
}
