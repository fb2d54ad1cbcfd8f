// Package externaldns writes names of DNS as DNSEndpoint objects, which external-dns brings to the servers of others. Several processes may
// write: all of them write the same.
package externaldns

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"turnout/controller/shard/zones"
	"turnout/internal/problem"
)

// Config is what a Writer needs. Reach and Namespace are required.
type Config struct {
	Reach     *rest.Config
	Namespace string        // of the objects; nobody else may write objects with zones.EndpointLabel there
	Log       *zap.Logger   // nil = no logs
	Problems  *problem.List // says what cannot be written; nil = nobody asks
	// Again is how often what is there is compared though nothing has changed, because others may have changed it; 0 = 10 min. First and Last are
	// pauses after failures: the first, doubled each time up to the last; 0 = 1 s and 1 min.
	Again, First, Last time.Duration
}

// Writer writes objects. It is made by New.
type Writer struct {
	cfg    Config
	api    dynamic.ResourceInterface
	wake   chan struct{} // holds one
	errors atomic.Uint64

	mu     sync.Mutex
	shards []zones.Shard
	given  bool
}

// manager is who writes, for the API server.
const manager = "turnout-dns"

// timeout is of one request.
const timeout = 15 * time.Second

// New returns a Writer. The API server is not asked yet.
func New(cfg Config) (*Writer, error) {
	if cfg.Reach == nil || cfg.Namespace == "" {
		return nil, errors.New("cannot write DNSEndpoint objects: there is no namespace for them")
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	for _, d := range []struct {
		set *time.Duration
		def time.Duration
	}{{&cfg.Again, 10 * time.Minute}, {&cfg.First, time.Second}, {&cfg.Last, time.Minute}} {
		if *d.set <= 0 {
			*d.set = d.def
		}
	}
	client, err := dynamic.NewForConfig(cfg.Reach)
	if err != nil {
		return nil, fmt.Errorf("cannot write DNSEndpoint objects: %w", err)
	}
	return &Writer{cfg: cfg, api: client.Resource(zones.EndpointResource).Namespace(cfg.Namespace), wake: make(chan struct{}, 1)}, nil
}

// Publish has objects be what shards are from now on. The slice must not be changed any more.
func (w *Writer) Publish(shards []zones.Shard) {
	w.mu.Lock()
	w.shards, w.given = shards, true
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Errors is how many requests have failed. Any goroutine may call it.
func (w *Writer) Errors() uint64 { return w.errors.Load() }

// Run writes until ctx is done. It returns nil then. It is to be called once.
func (w *Writer) Run(ctx context.Context) error {
	written := map[string]string{} // what each object is known to be
	pause, known := w.cfg.First, false
	for {
		err := w.write(ctx, written, &known)
		next := w.cfg.Again
		if ctx.Err() == nil && w.tell(err) {
			next, known = pause, false
			pause = min(2*pause, w.cfg.Last)
		} else {
			pause = w.cfg.First
		}
		timer := time.NewTimer(next)
		var woken <-chan struct{}
		if err == nil {
			woken = w.wake // after a failure what is new waits, too
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-woken:
		case <-timer.C:
			known = false
		}
		timer.Stop()
	}
}

// tell logs an error once, and reports whether there is one.
func (w *Writer) tell(err error) bool {
	const owner = "dns/endpoints"
	if err == nil {
		w.cfg.Problems.Set(owner)
		return false
	}
	w.errors.Add(1)
	if added := w.cfg.Problems.Set(owner, problem.Problem{Kind: problem.Source, Text: err.Error()}); len(added) > 0 || w.cfg.Problems == nil {
		w.cfg.Log.Error("names are not written; it is tried again", zap.Error(err))
	}
	return true
}

// write brings what is there to what should be.
func (w *Writer) write(ctx context.Context, written map[string]string, known *bool) error {
	w.mu.Lock()
	shards, given := w.shards, w.given
	w.mu.Unlock()
	if !given {
		return nil
	}
	if !*known {
		clear(written)
		if err := w.read(ctx, written); err != nil {
			return err
		}
		*known = true
	}
	wanted := map[string]bool{}
	for i := range shards {
		for _, o := range zones.Endpoints(&shards[i], w.cfg.Namespace) {
			wanted[o.Name] = true
			if err := w.apply(ctx, &o, written); err != nil {
				return err
			}
		}
	}
	for name := range written {
		if wanted[name] {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		err := w.api.Delete(ctx, name, metav1.DeleteOptions{})
		cancel()
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot delete DNSEndpoint %s/%s: %w", w.cfg.Namespace, name, err)
		}
		delete(written, name)
	}
	return nil
}

// read finds out what is there.
func (w *Writer) read(ctx context.Context, written map[string]string) error {
	options := metav1.ListOptions{LabelSelector: zones.EndpointLabel, Limit: 100}
	for {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		list, err := w.api.List(ctx, options)
		cancel()
		if apierrors.IsNotFound(err) {
			return errors.New("the cluster does not know DNSEndpoints: install the CustomResourceDefinition of external-dns")
		}
		if err != nil {
			return fmt.Errorf("cannot list DNSEndpoints of namespace %s: %w", w.cfg.Namespace, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			spec, err := json.Marshal(o.Object["spec"])
			if err != nil {
				return fmt.Errorf("cannot read DNSEndpoint %s: %w", o.GetName(), err)
			}
			written[o.GetName()] = digest(o.GetLabels()[zones.EndpointLabel], spec)
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// digest is equal for objects of the same content.
func digest(label string, spec []byte) string {
	var plain any
	if json.Unmarshal(spec, &plain) != nil {
		return ""
	}
	sorted, err := json.Marshal(plain)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(append([]byte(label+"\n"), sorted...))
	return string(sum[:])
}

// apply writes an object unless it is there already.
func (w *Writer) apply(ctx context.Context, o *zones.DNSEndpoint, written map[string]string) error {
	spec, err := json.Marshal(o.Spec)
	if err != nil {
		return fmt.Errorf("BUG: %w", err)
	}
	is := digest(o.Labels[zones.EndpointLabel], spec)
	if written[o.Name] == is {
		return nil
	}
	patch, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("BUG: %w", err)
	}
	force := true
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := w.api.Patch(ctx, o.Name, types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: manager, Force: &force}); err != nil {
		return fmt.Errorf("cannot write DNSEndpoint %s/%s: %w", o.Namespace, o.Name, err)
	}
	written[o.Name] = is
	return nil
}
