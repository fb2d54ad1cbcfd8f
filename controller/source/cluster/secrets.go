package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"turnout/controller/source"
	"turnout/internal/bound"
)

// secretAPI is what is asked about one secret. Any goroutine may call its methods.
type secretAPI interface {
	// denied returns which of get, watch and list the router may not use on it.
	denied(ctx context.Context, key source.Key) ([]string, error)
	// read returns the secret, nil if there is none, and the version to watch from.
	read(ctx context.Context, key source.Key) (*corev1.Secret, string, error)
	// watch returns what happens to it from a version on.
	watch(ctx context.Context, key source.Key, version string) (watch.Interface, error)
}

// secrets delivers single secrets for as long as somebody wants them: each has a
// goroutine that asks for permission, reads, and watches. It implements source.Secrets.
//
// What was delivered last stays true until something else is delivered: while the API
// server does not answer, nothing is.
type secrets struct {
	api    secretAPI
	health *health
	log    *zap.Logger
	retry  backoff       // after failures
	refuse backoff       // between two questions about what is refused, unless something changes
	review time.Duration // how long a permission counts
	bounds *bound.Counts
	slots  *slots   // bounds the requests that are under way
	open   *watches // bounds the watches

	mu      sync.Mutex
	ctx     context.Context // of run; nil = not running yet
	sink    source.Sink     // of run
	ended   bool            // nothing more is started
	watched map[source.Key]*secretWatch
	running sync.WaitGroup
	refused int // of watched: delivered with an error last
	present int // of watched: delivered with an object last
}

// maxRequests is how many requests about secrets are under way at a time. A restart
// asks five for each secret.
const maxRequests = 16

// readPeriod is how often a secret is read that cannot be watched because too many are.
const readPeriod = 5 * time.Minute

// refusedFactor makes hours of the longest pause after a failure.
const refusedFactor = 900

// secretWatch is one secret that is watched.
type secretWatch struct {
	key   source.Key
	stop  context.CancelFunc // nil = no goroutine yet
	again chan struct{}      // one slot: what is refused is worth another question

	reviewed time.Time // when the permission was given last; the goroutine's own

	// What was delivered last, guarded by secrets.mu.
	object *corev1.Secret
	err    error
	sent   bool
}

func newSecrets(api secretAPI, h *health, log *zap.Logger, retry backoff, review time.Duration) *secrets {
	return &secrets{
		api: api, health: h, log: log, review: review,
		retry:  backoff{first: retry.first, last: 4 * retry.last},
		refuse: backoff{first: 2 * retry.first, last: refusedFactor * retry.last},
		slots:  newSlots(maxRequests), open: newWatches(maxWatches, namespaceWatches), watched: make(map[source.Key]*secretWatch),
	}
}

// Watch begins to deliver a secret. See source.Secrets.
func (s *secrets) Watch(key source.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched[key] != nil {
		return
	}
	w := &secretWatch{key: key, again: make(chan struct{}, 1)}
	s.watched[key] = w
	if s.ctx != nil {
		s.start(w)
	}
}

// Again has a secret that was refused asked for again soon. See source.Secrets.
func (s *secrets) Again(key source.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.watched[key]; w != nil {
		select {
		case w.again <- struct{}{}:
		default: // it was notified already
		}
	}
}

// Forget ends what Watch began. Nothing is delivered after it has returned.
func (s *secrets) Forget(key source.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watched[key]
	if w == nil {
		return
	}
	delete(s.watched, key)
	s.count(w, -1)
	if w.stop != nil {
		w.stop()
	}
}

// run delivers to sink until ctx is done and all watches have ended.
func (s *secrets) run(ctx context.Context, sink source.Sink) {
	s.mu.Lock()
	s.ctx, s.sink = ctx, sink
	for _, w := range s.watched {
		s.start(w)
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.running.Wait()
}

// start starts the goroutine of a watch. s.mu is held.
func (s *secrets) start(w *secretWatch) {
	if s.ended {
		return
	}
	ctx, stop := context.WithCancel(s.ctx)
	w.stop = stop
	s.running.Go(func() {
		defer stop()
		s.follow(ctx, w)
	})
}

// counts returns how many secrets are delivered and how many are refused.
func (s *secrets) counts() (present, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.present, s.refused
}

// deliver sends the sink what a secret is now, unless that is what was sent last or
// nobody wants it any more.
func (s *secrets) deliver(w *secretWatch, object *corev1.Secret, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched[w.key] != w || w.sent && sameSecret(w.object, object) && sameText(w.err, err) {
		return
	}
	s.count(w, -1)
	w.object, w.err, w.sent = object, err, true
	s.count(w, 1)
	e := source.Event{Kind: source.Secret, Key: w.key, Err: err}
	if object != nil {
		e.Object = object
	}
	s.sink.Event(e) // with the lock, so that what is forgotten and asked for again comes in order
}

// count adds n to the number that a watch counts for. s.mu is held.
func (s *secrets) count(w *secretWatch, n int) {
	switch {
	case w.err != nil:
		s.refused += n
	case w.object != nil:
		s.present += n
	}
}

// follow delivers one secret until ctx is done.
func (s *secrets) follow(ctx context.Context, w *secretWatch) {
	var permitted time.Time // until when the permission counts
	failures, refusals := 0, 0
	for s.health.wait(ctx) {
		if !time.Now().Before(permitted) {
			verbs, err := limited(ctx, s, w.key.Namespace, func() ([]string, error) { return s.api.denied(ctx, w.key) })
			switch {
			case err != nil:
				failures = s.fail(ctx, w, err, failures)
				continue
			case len(verbs) > 0:
				s.deliver(w, nil, &source.DeniedError{Verbs: verbs})
				refusals = s.refusal(ctx, w, refusals)
				continue
			}
			refusals = 0
			w.reviewed = time.Now()
			permitted = w.reviewed.Add(s.review - rand.N(s.review/4+1)) // not all again at once
		}
		began := time.Now()
		err := s.readAndWatch(ctx, w, permitted)
		if time.Since(began) > time.Minute {
			failures = 0
		}
		switch {
		case errors.Is(err, errChanged):
			permitted = time.Time{}
		case err != nil:
			if apierrors.IsForbidden(err) {
				permitted = time.Time{}
			}
			failures = s.fail(ctx, w, err, failures)
		}
	}
}

// fail waits after a number of failures and returns the next one. A failure that is more
// than no answer is delivered.
func (s *secrets) fail(ctx context.Context, w *secretWatch, err error, failures int) int {
	if ctx.Err() != nil {
		return failures
	}
	if isOutage(err) {
		s.log.Debug("no answer about a secret", zap.Stringer("secret", w.key), zap.Error(err))
		s.retry.sleep(ctx, failures, err)
		return failures + 1
	}
	s.deliver(w, nil, err)
	return s.refusal(ctx, w, failures)
}

// refusal waits after a number of refusals and returns the next one, which is the first again when something has changed meanwhile.
// Nobody tells when a permission is granted. However much changes, there is some time between two questions.
func (s *secrets) refusal(ctx context.Context, w *secretWatch, refusals int) int {
	begun := time.Now()
	pause := s.refuse.delay(refusals)
	if refusals > 0 {
		s.bounds.Reached(bound.Reviews)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-w.again:
		timer.Reset(s.refuse.first - time.Since(begun))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		return 0
	}
	return refusals + 1
}

// readAndWatch delivers what a secret is and becomes, until it is to be read again or
// the permission no longer counts. A secret that cannot be watched because too many are is only read.
func (s *secrets) readAndWatch(ctx context.Context, w *secretWatch, permitted time.Time) error {
	var object *corev1.Secret
	version, err := limited(ctx, s, w.key.Namespace, func() (version string, err error) {
		object, version, err = s.api.read(ctx, w.key)
		return version, err
	})
	if err != nil {
		return err
	}
	s.deliver(w, object, nil)
	if !s.open.enter(w.key.Namespace) {
		s.bounds.Reached(bound.SecretWatches)
		pause(ctx, readPeriod-rand.N(readPeriod/4)) // not all again at once
		return nil
	}
	defer s.open.leave(w.key.Namespace)
	for ctx.Err() == nil && time.Now().Before(permitted) {
		began := time.Now()
		changes, err := limited(ctx, s, w.key.Namespace, func() (watch.Interface, error) { return s.api.watch(ctx, w.key, version) })
		if err == nil {
			version, err = s.deliverEvents(ctx, w, changes, version)
			changes.Stop()
		}
		switch {
		case err != nil && isExpired(err):
			return nil
		case err != nil:
			return err
		case ctx.Err() == nil && time.Since(began) < time.Second:
			return errShortWatch // a server that ends watches at once must not be asked all the time
		}
	}
	return nil
}

// pause waits, unless ctx is done before.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

var (
	errShortWatch = errors.New("the watch ended at once")
	// errChanged: the secret has changed, and whether it may be read is to be asked before it is delivered. A watch goes on when the
	// permission is taken away.
	errChanged = errors.New("the secret has changed")
)

// deliverEvents delivers the events of a watch until it ends, and returns the version to go on from.
func (s *secrets) deliverEvents(ctx context.Context, w *secretWatch, changes watch.Interface, version string) (string, error) {
	for {
		var e watch.Event
		var ok bool
		select {
		case <-ctx.Done():
			return version, nil
		case e, ok = <-changes.ResultChan():
		}
		if !ok {
			return version, nil
		}
		if e.Type == watch.Error {
			return version, apierrors.FromObject(e.Object)
		}
		object, isSecret := e.Object.(*corev1.Secret)
		if !isSecret {
			return version, fmt.Errorf("cannot use an event of the watch of a secret: %T", e.Object)
		}
		version = object.ResourceVersion
		switch {
		case e.Type == watch.Bookmark || object.Name != w.key.Name:
		case e.Type == watch.Deleted:
			s.deliver(w, nil, nil)
		case time.Since(w.reviewed) >= s.refuse.first:
			return version, errChanged
		default:
			trim(object, false)
			s.deliver(w, object, nil)
		}
	}
}

// limited asks something for a namespace while few others do.
func limited[T any](ctx context.Context, s *secrets, namespace string, ask func() (T, error)) (T, error) {
	if !s.slots.takeSlot(ctx, namespace) {
		var nothing T
		return nothing, ctx.Err()
	}
	defer s.slots.giveSlot()
	return ask()
}

func sameSecret(a, b *corev1.Secret) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion && a.ResourceVersion != ""
}

func sameText(a, b error) bool {
	if a == nil || b == nil {
		return (a == nil) == (b == nil)
	}
	return a.Error() == b.Error()
}
