// Package gateways writes the status of objects of the Gateway API: what is wanted is merged with what others have written, and written where that
// is a change, by the one of several processes that leads.
//
// The last version of an object that was seen is what a write is made from; another's write in between makes the API server refuse it, and the object
// is read and merged again. What the API server will not have, however often it is asked, is logged once and left until the object changes.
package gateways

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway"
	"turnout/internal/bound"
)

// Config is what a Writer needs.
type Config struct {
	Client     rest.Interface // of gateway.networking.k8s.io/v1; required
	Controller string         // whose entries are ours
	Log        *zap.Logger    // nil = no logs
	Bounds     *bound.Counts  // counts writes that wait in a contention; nil = nobody does
	// Gather is how long further changes of an object that was written a moment ago are waited for; 0 = 100 ms.
	Gather time.Duration
	now    func() metav1.Time // nil = metav1.Now, but in tests
}

// Pauses in a contention over a status.
const (
	firstPause = time.Second
	lastPause  = 10 * time.Minute
)

// How many writes are under way at a time: of Gateways and what else counts routes, which do not wait until the status of each route is written, and of
// all others.
const (
	workersOfCounts = 4
	workers         = 12
)

// Writer writes status. It is made by New; its methods may be called by any goroutine.
type Writer struct {
	cfg    Config
	counts workqueue.TypedRateLimitingInterface[gateway.Ref] // Gateways and their like
	others workqueue.TypedRateLimitingInterface[gateway.Ref]

	mu      sync.Mutex
	items   map[gateway.Ref]*item
	leading bool
}

// item is one object and the status that it is to have. What it points to is read-only.
type item struct {
	have    runtime.Object // the last version that is known
	want    any            // *gatewayv1.GatewayStatus and the like; nil = no entries of ours
	written time.Time
	wrote   any           // what want was then
	pause   time.Duration // after written, before the same is written again: somebody else takes it out
	refused string        // the version that the API server would not take a status of
}

// New returns a writer that writes nothing before Run.
func New(cfg Config) *Writer {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Gather <= 0 {
		cfg.Gather = 100 * time.Millisecond
	}
	if cfg.now == nil {
		cfg.now = metav1.Now
	}
	return &Writer{cfg: cfg, counts: newQueue(), others: newQueue(), items: make(map[gateway.Ref]*item)}
}

func newQueue() workqueue.TypedRateLimitingInterface[gateway.Ref] {
	return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[gateway.Ref](20*time.Millisecond, 30*time.Second))
}

// queue is where an object waits.
func (w *Writer) queue(ref gateway.Ref) workqueue.TypedRateLimitingInterface[gateway.Ref] {
	switch ref.Kind {
	case "GatewayClass", "Gateway", "ListenerSet":
		return w.counts
	}
	return w.others
}

// Status says what an object is now and which status it is to have, a pointer to that of its kind; nil = it is none of ours, and loses entries
// that are.
func (w *Writer) Status(ref gateway.Ref, have runtime.Object, want any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	it := w.items[ref]
	if it == nil {
		it = new(item)
		w.items[ref] = it
	}
	it.have, it.want = have, want
	if !w.leading {
		return
	}
	if left := w.cfg.Gather - time.Since(it.written); left > 0 {
		w.queue(ref).AddAfter(ref, left)
		return
	}
	w.queue(ref).Add(ref)
}

// Forget says that there is no such object any more.
func (w *Writer) Forget(ref gateway.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.items, ref)
}

// Run writes until ctx is done: this process leads. It may be called again.
func (w *Writer) Run(ctx context.Context) {
	w.mu.Lock()
	w.leading = true
	for ref := range w.items {
		w.queue(ref).Add(ref)
	}
	w.mu.Unlock()
	var running sync.WaitGroup
	running.Go(func() { w.work(ctx, w.counts, workersOfCounts) })
	w.work(ctx, w.others, workers)
	running.Wait()
	w.mu.Lock()
	w.leading = false
	w.mu.Unlock()
}

// work writes what waits in a queue until ctx is done.
func (w *Writer) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[gateway.Ref], workers int) {
	jobs := make(chan gateway.Ref)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for ref := range jobs {
				w.write(ctx, ref)
				queue.Done(ref)
			}
		})
	}
	wake := context.AfterFunc(ctx, func() { queue.Add(gateway.Ref{}) }) // Get returns
	for ctx.Err() == nil {
		ref, _ := queue.Get()
		if ref.Kind == "" {
			queue.Done(ref)
			continue
		}
		jobs <- ref
	}
	wake()
	close(jobs)
	running.Wait()
}

// write brings one object up to date.
func (w *Writer) write(ctx context.Context, ref gateway.Ref) {
	w.mu.Lock()
	it := w.items[ref]
	if it == nil {
		w.mu.Unlock()
		return
	}
	have, want := it.have, it.want
	contended := time.Until(it.written.Add(it.pause))
	if it.wrote == nil || it.wrote != want {
		contended = 0
	}
	refused := it.refused != "" && it.refused == versionOf(have)
	w.mu.Unlock()
	if refused || ctx.Err() != nil {
		return
	}
	status, changed, err := merge(have, want, gatewayv1.GatewayController(w.cfg.Controller), w.cfg.now())
	if err != nil {
		w.cfg.Log.Warn("the status of an object has no place for all that is to be said", zap.String("kind", ref.Kind), zap.Stringer("object", ref.Key), zap.Error(err))
	}
	if !changed {
		w.queue(ref).Forget(ref)
		return
	}
	if contended > 0 {
		w.cfg.Bounds.Reached(bound.StatusWrites)
		w.queue(ref).AddAfter(ref, contended)
		return
	}
	next, err := w.patch(ctx, ref, have, status)
	switch {
	case err == nil:
		w.queue(ref).Forget(ref)
		w.saw(ref, have, next)
		w.noteWrite(ref, want)
	case ctx.Err() != nil:
	case apierrors.IsNotFound(err): // the event that says so is on its way
		w.queue(ref).Forget(ref)
	case apierrors.IsConflict(err):
		if next, err = w.read(ctx, ref); err == nil {
			w.saw(ref, have, next)
		}
		w.queue(ref).AddRateLimited(ref)
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		w.cfg.Log.Error("the API server does not take a status", zap.String("kind", ref.Kind), zap.Stringer("object", ref.Key), zap.Error(err))
		w.mu.Lock()
		if it := w.items[ref]; it != nil {
			it.refused = versionOf(have)
		}
		w.mu.Unlock()
		w.queue(ref).Forget(ref)
	default:
		w.cfg.Log.Warn("cannot write the status of an object; it is tried again", zap.String("kind", ref.Kind), zap.Stringer("object", ref.Key), zap.Error(err))
		w.queue(ref).AddRateLimited(ref)
	}
}

// saw notes a version that the API server gave, unless another one than before has come meanwhile.
func (w *Writer) saw(ref gateway.Ref, before, next runtime.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if it := w.items[ref]; it != nil && it.have == before {
		it.have = next
	}
}

// noteWrite notes that a status was written. One that is written a second time because somebody else has changed it is written again after a second, then
// after twice as long each time: two controllers that contend for an entry do not keep the API server busy.
func (w *Writer) noteWrite(ref gateway.Ref, want any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	it := w.items[ref]
	if it == nil {
		return
	}
	if want != nil && it.wrote == want {
		it.pause = min(max(2*it.pause, firstPause), lastPause)
	} else {
		it.pause = 0
	}
	it.written, it.wrote = time.Now(), want
}

// patch writes a status, unless the object is another by now.
func (w *Writer) patch(ctx context.Context, ref gateway.Ref, have runtime.Object, status any) (runtime.Object, error) {
	fields, err := replacing(have, status)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": versionOf(have)}, "status": fields})
	if err != nil {
		return nil, fmt.Errorf("cannot write a status: %w", err)
	}
	next, plural := made(ref.Kind)
	err = w.cfg.Client.Patch(types.MergePatchType).NamespaceIfScoped(ref.Namespace, ref.Namespace != "").Resource(plural).Name(ref.Name).
		SubResource("status").Body(body).Do(ctx).Into(next)
	return next, err
}

// replacing returns a status as a merge patch (RFC 7396) that leaves nothing of the one that an object has.
func replacing(have runtime.Object, status any) (map[string]any, error) {
	var before struct {
		Status map[string]any `json:"status"`
	}
	var fields map[string]any
	for _, step := range []struct{ from, to any }{{have, &before}, {status, &fields}} {
		text, err := json.Marshal(step.from)
		if err == nil {
			err = json.Unmarshal(text, step.to)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot write a status: %w", err)
		}
	}
	for name := range before.Status {
		if _, stays := fields[name]; !stays {
			fields[name] = nil
		}
	}
	return fields, nil
}

func (w *Writer) read(ctx context.Context, ref gateway.Ref) (runtime.Object, error) {
	next, plural := made(ref.Kind)
	err := w.cfg.Client.Get().NamespaceIfScoped(ref.Namespace, ref.Namespace != "").Resource(plural).Name(ref.Name).Do(ctx).Into(next)
	return next, err
}

func versionOf(o runtime.Object) string {
	if m, ok := o.(metav1.Object); ok {
		return m.GetResourceVersion()
	}
	return ""
}

var errKind = errors.New("BUG: no status of this kind is known")
