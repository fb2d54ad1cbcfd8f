package expose

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"turnout/controller/source"
	"turnout/internal/bound"
)

// WriterConfig is what a Writer needs.
type WriterConfig struct {
	Core, Discovery rest.Interface // of v1 and discovery.k8s.io/v1; required
	Controller      string         // of the classes whose Gateways these are
	Type            string         // of the Services, as the API has it; "" = LoadBalancer
	Bounds          *bound.Counts  // counts ports that get none; nil = nobody does
	Log             *zap.Logger    // nil = no logs
}

// Now is what there is, for a Writer. It is read-only.
type Now struct {
	Gateways []Gateway
	Services map[source.Key]*corev1.Service // ours, by key
	Pods     []string                       // addresses of the router's pods that are ready
}

// Writer makes the Services and EndpointSlices of Gateways, and deletes those that are not needed any more. It is made by NewWriter.
type Writer struct {
	cfg  WriterConfig
	wake chan struct{} // one slot

	mu     sync.Mutex
	latest *Now
}

// Bounds of a Writer.
const (
	writes    = 8                // under way at a time
	retryWait = time.Second      // before what failed is tried again
	settled   = 10 * time.Second // after that long an object that was written and is not there is written again
)

// fieldManager is who writes, for the API server.
const fieldManager = "turnout-gateways"

// NewWriter returns a writer that writes nothing before Run.
func NewWriter(cfg WriterConfig) *Writer {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Type == "" {
		cfg.Type = string(corev1.ServiceTypeLoadBalancer)
	}
	return &Writer{cfg: cfg, wake: make(chan struct{}, 1)}
}

// Set says what there is from now on. Any goroutine may call it.
func (w *Writer) Set(now Now) {
	w.mu.Lock()
	w.latest = &now
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// object is one that is to be there.
type object struct {
	client    rest.Interface
	resource  string
	namespace string
	name      string
}

// written is what was written last.
type written struct {
	content []byte
	at      time.Time
}

// Run writes until ctx is done: this process leads. It may be called again.
func (w *Writer) Run(ctx context.Context) {
	ports := NewPorts(w.cfg.Controller)
	ports.refused = func() { w.cfg.Bounds.Reached(bound.GatewayPorts) }
	known := make(map[object]written)
	if err := w.read(ctx, known); err != nil && ctx.Err() == nil {
		w.cfg.Log.Warn("cannot read the EndpointSlices of Gateways that there are: those without a Gateway stay", zap.Error(err))
	}
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-retry.C:
		}
		w.mu.Lock()
		now := w.latest
		w.mu.Unlock()
		if now != nil && !w.settle(ctx, now, ports, known) {
			retry.Reset(retryWait)
		}
	}
}

// read notes the EndpointSlices that an earlier leader has made.
func (w *Writer) read(ctx context.Context, known map[object]written) error {
	list := new(metav1.PartialObjectMetadataList)
	text, err := w.cfg.Discovery.Get().Resource("endpointslices").Param("labelSelector", labelOfController+"="+labelOf(w.cfg.Controller)).
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").DoRaw(ctx)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, list); err != nil {
		return fmt.Errorf("cannot read a list: %w", err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		known[object{w.cfg.Discovery, "endpointslices", m.Namespace, m.Name}] = written{}
	}
	return nil
}

// settle writes what differs. The bool is false when some of it failed.
func (w *Writer) settle(ctx context.Context, now *Now, ports *Ports, known map[object]written) bool {
	wanted := ports.Plan(now.Gateways, now.Services, now.Pods, corev1.ServiceType(w.cfg.Type))
	there := make(map[object][]byte)
	put := func(client rest.Interface, resource string, m *metav1.ObjectMeta, o any) {
		if text, err := json.Marshal(o); err == nil {
			there[object{client, resource, m.Namespace, m.Name}] = text
		}
	}
	for _, s := range wanted.Services {
		put(w.cfg.Core, "services", &s.ObjectMeta, s)
	}
	for _, s := range wanted.Slices {
		put(w.cfg.Discovery, "endpointslices", &s.ObjectMeta, s)
	}
	for key := range now.Services {
		o := object{w.cfg.Core, "services", key.Namespace, key.Name}
		if _, ok := known[o]; !ok {
			known[o] = written{}
		}
	}
	var mu sync.Mutex
	good := true
	var running sync.WaitGroup
	slots := make(chan struct{}, writes)
	do := func(o object, what string, f func() error, done func()) {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			err := f()
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				done()
				return
			}
			if good = false; ctx.Err() == nil {
				w.cfg.Log.Warn("cannot "+what+" an object of a Gateway; it is tried again", zap.String("resource", o.resource), zap.String("namespace", o.namespace), zap.String("name", o.name), zap.Error(err))
			}
		})
	}
	before := maps.Clone(known)
	for o, text := range there {
		if last := before[o]; bytes.Equal(last.content, text) && !missing(o, now, last.at) {
			continue
		}
		do(o, "write", func() error { return o.apply(ctx, text) }, func() { known[o] = written{content: text, at: time.Now()} })
	}
	for o := range before {
		if _, stays := there[o]; !stays {
			do(o, "delete", func() error { return o.delete(ctx) }, func() { delete(known, o) })
		}
	}
	running.Wait()
	return good
}

// missing reports whether a Service that was written some time ago is not there.
func missing(o object, now *Now, at time.Time) bool {
	return o.resource == "services" && now.Services[source.Key{Namespace: o.namespace, Name: o.name}] == nil && time.Since(at) > settled
}

func (o object) apply(ctx context.Context, text []byte) error {
	return o.client.Patch(types.ApplyPatchType).Namespace(o.namespace).Resource(o.resource).Name(o.name).
		Param("fieldManager", fieldManager).Param("force", "true").Body(text).Do(ctx).Error()
}

func (o object) delete(ctx context.Context) error {
	err := o.client.Delete().Namespace(o.namespace).Resource(o.resource).Name(o.name).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
