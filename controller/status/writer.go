package status

import (
	"context"
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"turnout/internal/bound"
	"turnout/internal/keyed"
)

const (
	callTimeout   = 10 * time.Second // of one call to the API
	endTimeout    = 2 * time.Second  // of the call in flight when the writer is ended
	writeSpacing  = time.Second      // between two writes of one route
	defaultResync = 30 * time.Minute
	defaultRate   = 100
)

// API is the cluster as the writer sees it. Errors are those of the Kubernetes client.
// All methods may be called by one goroutine at a time; what they return is read-only.
type API interface {
	// GetRoute returns a route as it is now. Of it namespace, name, UID, resourceVersion and
	// status count.
	GetRoute(ctx context.Context, namespace, name string) (*routev1.Route, error)
	// WriteStatus makes the status of a route that of the given one, of which only
	// namespace, name, UID, resourceVersion and status count. It fails with a conflict
	// when the route has another UID or resourceVersion. It returns the route as it is
	// then, at least the parts that count.
	WriteStatus(ctx context.Context, route *routev1.Route) (*routev1.Route, error)
	// List returns a page of all routes, selected or not, and the token of the next page,
	// "" for the last. The first page has the token "". A page may be empty that is not the last, and pages need not be of one time.
	List(ctx context.Context, token string) (routes []routev1.Route, next string, err error)
}

// WriterConfig is what a Writer needs.
type WriterConfig struct {
	API        API           // required
	RouterName string        // whose entries are written; required
	Log        *zap.Logger   // nil = no logs
	Bounds     *bound.Counts // counts bounds that routes reach; nil = nobody does
	Resync     time.Duration // after which sources tell everything again; a tenth is the contention interval; 0 = 30 min
	Rate       float64       // writes per second; 0 = 100
	Burst      int           // writes at once, at least 2; 0 = as many as Rate
	// KeepStale leaves the entry of a route that the router does not select any more
	// where it is.
	KeepStale bool
	// KeepUnservable leaves the condition UnservableInFutureVersions of all routes as it is.
	// Otherwise it is as reported where a route is admitted.
	KeepUnservable bool
	// Sweep is closed when every route the router selects has been reported. Entries of
	// this router on other routes are then looked for, once, and removed. nil = that is
	// not done; nor is it with KeepStale.
	Sweep <-chan struct{}
}

// Stats is what a Writer has counted since it was made.
type Stats struct {
	Written   uint64 // entries written
	Removed   uint64 // entries removed
	Conflicts uint64 // writes refused because somebody else was first
	Contended uint64 // writes left out because another process writes something else to that route
	Failed    uint64 // calls that failed for another reason
	Pending   int    // routes whose entry is to be written or removed
	Leader    bool   // the last write succeeded and nobody has been first since
}

// Writer writes the entries of this router into the status of routes. It implements
// Reporter. Of each route it remembers what its status is and what it should be, so that
// a flood of changes is one write, and what is lost in a conflict or while the API is
// away is made again of the latest.
type Writer struct {
	cfg   WriterConfig
	wake  chan struct{} // one slot
	limit *rate.Limiter
	rules rules
	seed  maphash.Seed

	mu         sync.Mutex
	routes     *keyed.Set[types.NamespacedName, record]
	queue      queue[*record]
	queued     uint64 // routes ever queued
	busy       int    // routes the worker has
	lease      lease
	contention contention
	flushAt    time.Time
	outage     outage
	sweep      sweep
	stats      Stats
}

var _ Reporter = (*Writer)(nil)

// record is one route.
type record struct {
	key     types.NamespacedName
	uid     types.UID
	spec    uint64                 // a hash of the spec as the source delivered it last; 0 = it never did
	version string                 // newest known
	entries []routev1.RouteIngress // at that version; read-only
	seen    *routev1.RouteIngress  // this router's entry when it was judged last; nil = none

	want    *routev1.RouteIngress // what the entry should be; nil = nothing was said yet
	settled *routev1.RouteIngress // the want that was written or agreed upon last
	writing *routev1.RouteIngress // being written now; nil = nothing is
	wrote   instant               // last
	left    *departure            // nil = the router selects it

	place
	refused   string // version the last conflict was with
	conflicts int32  // in a row
	failures  int32  // in a row, for reasons of its own
	busy      bool   // the worker has it
	skipped   bool   // left out because of contention
}

func (r *record) tenancy() string { return r.key.Namespace }

// departure is that of a route that the router does not select any more.
type departure struct {
	since time.Time
	entry time.Time // how old the entry was that is to be removed
}

// NewWriter returns a writer that writes nothing before Run. It fails when cfg cannot be
// used.
func NewWriter(cfg WriterConfig) (*Writer, error) {
	switch {
	case cfg.API == nil:
		return nil, errors.New("cannot make status writer: no API given")
	case cfg.RouterName == "":
		return nil, errors.New("cannot make status writer: no router name given")
	case cfg.Rate < 0 || cfg.Burst < 0 || cfg.Resync < 0:
		return nil, errors.New("cannot make status writer: negative rate, burst or resync")
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Resync == 0 {
		cfg.Resync = defaultResync
	}
	if cfg.Rate == 0 {
		cfg.Rate = defaultRate
	}
	if cfg.Burst == 0 {
		cfg.Burst = int(cfg.Rate)
	}
	cfg.Burst = max(cfg.Burst, 2) // what one removal takes
	w := &Writer{
		cfg: cfg, wake: make(chan struct{}, 1), limit: rate.NewLimiter(rate.Limit(cfg.Rate), cfg.Burst),
		rules:      rules{keepUnservable: cfg.KeepUnservable},
		seed:       maphash.MakeSeed(),
		routes:     keyed.New(func(r *record) types.NamespacedName { return r.key }),
		lease:      lease{chance: rand.Float64},
		queue:      newQueue[*record](),
		contention: newContention(cfg.Resync / 10),
		outage:     outage{chance: rand.Float64},
	}
	w.flushAt = time.Now().Add(2 * w.contention.interval)
	return w, nil
}

// Stats returns what was counted. Any goroutine may call it.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	s.Pending, s.Leader = w.queue.len()+w.busy, w.lease.state == leader
	return s
}

// Observe takes over what a route is now. That the router has it is known from then on,
// even if it is not reported yet.
func (w *Writer) Observe(route *routev1.Route) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.record(route)
	r.enter()
	w.observed(r, route, now)
}

// Report asks for an entry. Of an entry that is there already nothing comes.
func (w *Writer) Report(route *routev1.Route, entry *routev1.RouteIngress) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.record(route)
	r.enter()
	r.want = entry
	w.observed(r, route, now)
}

// Withdraw takes the route out of what is reported and, unless stale entries are kept,
// asks that the entry be removed if the route still exists.
func (w *Writer) Withdraw(route *routev1.Route) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.routes.Get(keyOf(route))
	if r == nil || r.uid != route.UID {
		return
	}
	r.observe(route)
	w.leave(r, now, now)
}

// leave asks that the entry of a route be removed. One that somebody has written since
// is another router's, by the same name, or that of a replica that knows better.
func (w *Writer) leave(r *record, since, now time.Time) {
	live := w.entryOf(r)
	if w.cfg.KeepStale || live == nil && r.writing == nil {
		w.forget(r)
		return
	}
	left := &departure{since: since}
	switch {
	case live != nil:
		left.entry = touched(live)
	case r.left != nil:
		left.entry = r.left.entry
	}
	r.want, r.settled, r.skipped, r.left = nil, nil, false, left
	w.enqueue(r, now)
}

// enter takes back that the route has left. That its entry was removed is not anybody
// else's opinion then.
func (r *record) enter() {
	if r.left != nil {
		r.left, r.seen = nil, nil
	}
}

func keyOf(route *routev1.Route) types.NamespacedName {
	return types.NamespacedName{Namespace: route.Namespace, Name: route.Name}
}

// record returns the record of a route, made when it is asked for first.
func (w *Writer) record(route *routev1.Route) *record {
	key := keyOf(route)
	r := w.routes.Get(key)
	if r != nil && r.uid != route.UID {
		w.forget(r) // deleted and made again: its status went with it
		r = nil
	}
	if r == nil {
		r = &record{key: key, uid: route.UID, place: place{at: -1}, version: route.ResourceVersion, entries: route.Status.Ingress}
		r.seen = w.entryOf(r)
		w.routes.Put(r)
	}
	return r
}

// forget drops a record. A write of it in flight ends without effect on others.
func (w *Writer) forget(r *record) {
	w.queue.remove(r)
	if w.routes.Get(r.key) == r {
		w.routes.Delete(r.key)
	}
}

// observed takes over a state of a route and does what it asks for.
func (w *Writer) observed(r *record, route *routev1.Route, now time.Time) {
	r.spec = w.specOf(route)
	r.observe(route)
	if r.want != nil {
		w.judge(r, now)
		w.adopt(r)
	}
	w.consider(r, now)
}

// adopt has what is wanted be what is there, if that says the same: it is held once then.
func (w *Writer) adopt(r *record) {
	live := w.entryOf(r)
	if !Same(live, r.want) {
		return
	}
	if r.settled == r.want {
		r.settled = live
	}
	r.want = live
}

// specOf is a number that tells one spec of a route from another, never 0.
func (w *Writer) specOf(route *routev1.Route) uint64 {
	data, err := route.Spec.Marshal()
	if err != nil { // it cannot be written either
		return 1
	}
	return max(maphash.Bytes(w.seed, data), 1)
}

// observe takes over a state of the route, unless a newer one is known.
func (r *record) observe(route *routev1.Route) {
	if order, err := resourceversion.CompareResourceVersion(route.ResourceVersion, r.version); err == nil && order < 0 {
		return
	}
	r.version, r.entries = route.ResourceVersion, route.Status.Ingress
}

// entryOf returns this router's entry as far as it is known, nil if there is none.
func (w *Writer) entryOf(r *record) *routev1.RouteIngress {
	return Find(Options{RouterName: w.cfg.RouterName}, r.entries)
}

// judge finds out whether somebody changed the entry since it was looked at last, and
// what to think of it.
func (w *Writer) judge(r *record, now time.Time) {
	live, before := w.entryOf(r), r.seen
	r.seen = live
	if before == nil || live != nil && sameOpinion(before, live) {
		return // an entry that is new has not been changed
	}
	switch {
	case live == nil:
		w.contention.changed(r.key.Namespace, r.uid, nil, now)
	case w.rules.agrees(live, r.want) || r.writing != nil && w.rules.agrees(live, r.writing):
		w.contention.confirmed(r.uid, live)
	case w.rules.agreesButWords(live, r.want):
		r.settled = r.want // a replica puts it in other words, which do as well
	default:
		w.contention.changed(r.key.Namespace, r.uid, live, now)
	}
}

// consider queues a route if its entry is to be written, and takes it out of the queue
// if not.
func (w *Writer) consider(r *record, now time.Time) {
	if w.nothingToWrite(r) {
		if r.at >= 0 && lastWriter(r.entries) == w.cfg.RouterName {
			w.lease.followed(r.key.Namespace, now)
		}
		w.queue.remove(r)
		r.conflicts, r.failures, r.skipped = 0, 0, false
		return
	}
	w.enqueue(r, now)
}

// nothingToWrite reports whether nothing is to be written for a route.
func (w *Writer) nothingToWrite(r *record) bool {
	if r.want == nil {
		return true // nothing was said yet
	}
	live := w.entryOf(r)
	if w.rules.agrees(live, r.want) {
		r.settled = r.want
		return true
	}
	// Replicas that have seen another history may put a rejection in other words. Only one
	// whose own opinion has changed writes.
	return r.settled != nil && (r.settled == r.want || w.rules.agrees(r.settled, r.want)) && w.rules.agreesButWords(live, r.want)
}

// enqueue makes a route wait for the worker. One that waits already keeps its place.
func (w *Writer) enqueue(r *record, now time.Time) {
	if r.busy {
		return // it is looked at again after the call
	}
	due := now.Add(w.lease.first())
	if next := r.wrote.time().Add(writeSpacing); r.left == nil && next.After(due) {
		due = next
	}
	switch {
	case r.at < 0:
		w.queued++
		r.since = w.queued
		w.queue.addRecord(r, due)
	case r.conflicts > 0 && r.version != r.refused:
		// What came between is known now: no need to wait for the whole time.
		if sooner := now.Add(min(retryAfter, followerMin<<min(r.conflicts, 10))); instantOf(sooner) < r.due {
			w.queue.move(r, sooner)
		}
	}
	w.signal()
}

func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
