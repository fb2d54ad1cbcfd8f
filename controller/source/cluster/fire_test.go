package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"turnout/controller/source"
)

var nopLog = zap.NewNop()

// run lets secrets run; the function returned ends that and waits for the end.
func run(t *testing.T, s *secrets, sink source.Sink) func() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { s.run(ctx, sink); close(done) }()
	stop := sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

// fakeSecrets is the secrets of an API server without the server.
type fakeSecrets struct {
	chance *rand.Rand // nil = nothing fails

	mu      sync.Mutex
	version int
	there   map[source.Key]*corev1.Secret
	watches map[*fakeWatch]source.Key
	deny    bool
	reviews int
}

type fakeWatch struct {
	events chan watch.Event
	ended  bool
	owner  *fakeSecrets
}

func newFakeSecrets(chance *rand.Rand) *fakeSecrets {
	return &fakeSecrets{chance: chance, there: map[source.Key]*corev1.Secret{}, watches: map[*fakeWatch]source.Key{}}
}

// randomError returns an error now and then. f.mu is held.
func (f *fakeSecrets) randomError() error {
	if f.chance != nil && f.chance.IntN(20) == 0 {
		return errors.New("no answer")
	}
	return nil
}

func (f *fakeSecrets) denied(context.Context, source.Key) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reviews++
	if f.deny || f.chance != nil && f.chance.IntN(10) == 0 {
		return []string{"get"}, nil
	}
	return nil, f.randomError()
}

func (f *fakeSecrets) read(_ context.Context, key source.Key) (*corev1.Secret, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.there[key].DeepCopy(), strconv.Itoa(f.version), f.randomError()
}

func (f *fakeSecrets) watch(_ context.Context, key source.Key, version string) (watch.Interface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.randomError(); err != nil {
		return nil, err
	}
	w := &fakeWatch{events: make(chan watch.Event, 1000), owner: f}
	// It has no history: what has moved on since is answered as too old.
	if s := f.there[key]; s == nil && version != strconv.Itoa(f.version) || s != nil && newer(s.ResourceVersion, version) {
		w.events <- watch.Event{Type: watch.Error, Object: &metav1.Status{Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired}}
	}
	f.watches[w] = key
	return w, nil
}

func newer(a, b string) bool {
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return x > y
}

func (w *fakeWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *fakeWatch) Stop() {
	w.owner.mu.Lock()
	defer w.owner.mu.Unlock()
	w.end()
}

// end ends a watch. The owner's mu is held.
func (w *fakeWatch) end() {
	delete(w.owner.watches, w)
	if !w.ended {
		w.ended = true
		close(w.events)
	}
}

func (f *fakeSecrets) cutAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.watches {
		w.end()
	}
}

// change makes a secret hold a content, "" deletes it.
func (f *fakeSecrets) change(key source.Key, content string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	before := f.there[key]
	e := watch.Event{Type: watch.Modified}
	switch {
	case content == "" && before == nil:
		return
	case content == "":
		delete(f.there, key)
		gone := before.DeepCopy()
		gone.ResourceVersion = strconv.Itoa(f.version)
		e = watch.Event{Type: watch.Deleted, Object: gone}
	default:
		s := secretOf(key.Namespace, key.Name, content)
		s.ResourceVersion, s.UID = strconv.Itoa(f.version), types.UID(strconv.Itoa(f.version))
		if before != nil {
			s.UID = before.UID
		} else {
			e.Type = watch.Added
		}
		f.there[key] = s
		e.Object = s.DeepCopy()
	}
	for w, of := range f.watches {
		if of != key {
			continue
		}
		if f.chance != nil && f.chance.IntN(10) == 0 {
			w.end()
			continue
		}
		w.events <- e
	}
}

// ordered is a sink that checks that nothing older comes after something newer.
type ordered struct {
	*recorder
	t    *testing.T
	mu   sync.Mutex
	last map[source.Key]int
}

func (o *ordered) Event(events ...source.Event) {
	for _, e := range events {
		if s, ok := e.Object.(*corev1.Secret); ok {
			version, _ := strconv.Atoi(s.ResourceVersion)
			o.mu.Lock()
			if o.last[e.Key] > version {
				o.t.Errorf("%s: version %d comes after %d", e.Key, version, o.last[e.Key])
			}
			o.last[e.Key] = version
			o.mu.Unlock()
		}
	}
	o.recorder.Event(events...)
}

// TestSecretsUnderFire has many goroutines watch, forget, rotate, delete and create
// secrets while requests fail, permissions come and go, and watches end. What is watched
// in the end is delivered as it is in the end, and nothing older ever comes later.
func TestSecretsUnderFire(t *testing.T) {
	const keys, writers, askers, steps = 40, 8, 8, 600
	api := newFakeSecrets(rand.New(rand.NewPCG(1, 2)))
	quick := backoff{first: time.Microsecond, last: 100 * time.Microsecond}
	s := newSecrets(api, newHealth(nopLog, "", 1), nopLog, quick, time.Millisecond)
	sink := &ordered{recorder: newRecorder(), t: t, last: map[source.Key]int{}}
	stop := run(t, s, sink)
	keyOf := func(i int) source.Key { return source.Key{Namespace: "ns", Name: fmt.Sprint("s", i)} }
	var busy sync.WaitGroup
	for n := range writers {
		busy.Go(func() {
			chance := rand.New(rand.NewPCG(uint64(n), 3))
			for i := range steps {
				content := fmt.Sprint(n, "-", i)
				if chance.IntN(4) == 0 {
					content = ""
				}
				api.change(keyOf(chance.IntN(keys)), content)
				if chance.IntN(50) == 0 {
					api.cutAll()
				}
			}
		})
	}
	for n := range askers {
		busy.Go(func() {
			chance := rand.New(rand.NewPCG(uint64(n), 4))
			for range steps {
				if key := keyOf(chance.IntN(keys)); chance.IntN(2) == 0 {
					s.Watch(key)
				} else {
					s.Forget(key)
				}
			}
		})
	}
	busy.Wait()
	api.mu.Lock()
	api.chance = nil
	api.mu.Unlock()
	for i := range keys {
		s.Watch(keyOf(i))
	}
	for i := range keys {
		api.mu.Lock()
		want := api.there[keyOf(i)]
		api.mu.Unlock()
		name := keyOf(i).String()
		if want == nil {
			sink.wantGone(t, name)
			continue
		}
		sink.until(t, name+" is as it is", func() bool {
			got, ok := sink.latest["Secret "+name].Object.(*corev1.Secret)
			return ok && got.ResourceVersion == want.ResourceVersion && string(got.Data["tls.crt"]) == string(want.Data["tls.crt"])
		})
	}
	present, refused := s.counts()
	if present != len(api.there) || refused != 0 {
		t.Errorf("%d present, %d refused, want %d and 0", present, refused, len(api.there))
	}
	for i := range keys {
		s.Forget(keyOf(i))
	}
	if present, refused := s.counts(); present != 0 || refused != 0 || len(s.watched) != 0 {
		t.Errorf("%d present, %d refused after all are forgotten", present, refused)
	}
	stop() // waits for all goroutines
	if len(api.watches) != 0 {
		t.Errorf("%d watches are left", len(api.watches))
	}
}
