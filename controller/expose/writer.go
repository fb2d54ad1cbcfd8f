package expose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/owned"
	"turnout/controller/source"
	"turnout/internal/bound"
)

// WriterConfig is what a Writer needs.
type WriterConfig struct {
	API        owned.Client // its manager is set by NewWriter
	Controller string       // of the classes whose Gateways these are
	Type       string       // of the Services, as the API has it; "" = LoadBalancer
	// Deployments says that Gateways may have pods of their own. Without it nothing of these is looked for.
	Deployments bool
	Image       string        // of such pods; "" = that of Pod
	Pod         source.Key    // that this process runs in
	Bounds      *bound.Counts // counts ports that get none, and Gateways that get no pods; nil = nobody does
	// Refused is called with why Gateways do not get what they need, all of them each time; nil = it is not called.
	Refused func(map[source.Key]string)
	Log     *zap.Logger // nil = no logs
}

// Now is what there is, for a Writer. It is read-only.
type Now struct {
	Gateways []Gateway
	Services map[source.Key]*corev1.Service // ours, by key
	Pods     []string                       // addresses of the router's pods that are ready
	Running  map[source.Key]bool            // Gateways with a Deployment, which the Writer knows itself
}

// Writer makes the objects of Gateways, and deletes those that are not needed any more. It is made by NewWriter.
type Writer struct {
	cfg  WriterConfig
	wake chan struct{} // one slot

	mu     sync.Mutex
	latest *Now
}

// Bounds of a Writer.
const (
	writes    = 8                // under way at a time
	retryWait = time.Second      // before what failed is tried again; twice as long each time
	retryLast = 30 * time.Second // the longest of these
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
	cfg.API.Manager = fieldManager
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

// written is what was written last.
type written struct {
	content []byte // nil = an earlier leader wrote it
	of      string // the label with the Gateway's name
	at      time.Time
}

// lead is one time that this process leads.
type lead struct {
	*Writer
	ports *Ports
	known map[owned.Object]written // what is there of ours, as far as is known
	said  map[source.Key]string    // of Refused
	wrong map[source.Key]error     // what failed last, by Gateway; the zero value = of all of them
	fails int                      // rounds in a row in which something failed
	read  bool                     // what earlier leaders wrote is known
}

// lead returns what has written nothing yet.
func (w *Writer) lead() *lead {
	l := &lead{Writer: w, ports: NewPorts(w.cfg.Controller, corev1.ServiceType(w.cfg.Type)), known: make(map[owned.Object]written)}
	l.ports.refused = func() { w.cfg.Bounds.Reached(bound.GatewayPorts) }
	l.ports.crowded = func() { w.cfg.Bounds.Reached(bound.GatewayDeployments) }
	l.ports.image, l.ports.bound = w.cfg.Image, w.cfg.Deployments
	return l
}

// Run writes until ctx is done: this process leads. It may be called again.
func (w *Writer) Run(ctx context.Context) {
	l := w.lead()
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-again.C:
		}
		w.mu.Lock()
		now := w.latest
		w.mu.Unlock()
		if now == nil {
			continue
		}
		if wait := l.settle(ctx, *now); wait > 0 {
			again.Reset(wait)
		}
	}
}

// recall notes what earlier leaders have made: Services are known without being asked for.
func (l *lead) recall(ctx context.Context) error {
	list := []owned.Resource{owned.Slices}
	if l.cfg.Deployments {
		list = append(list, owned.Deployments, owned.ServiceAccounts, owned.Roles, owned.RoleBindings)
	}
	for _, r := range list {
		objects, err := l.cfg.API.List(ctx, r, labelOfController+"="+labelOf(l.cfg.Controller))
		if err != nil {
			return fmt.Errorf("cannot list %s: %w", r.Plural, err)
		}
		for o, labels := range objects {
			if _, ok := l.known[o]; !ok {
				l.known[o] = written{of: labels[gatewayv1.GatewayNameLabelKey]}
			}
		}
	}
	l.read = true
	return nil
}

// ownImage finds out which image this process runs.
func (l *lead) ownImage(ctx context.Context) (string, error) {
	pod := new(corev1.Pod)
	at := owned.Object{Resource: owned.Pods, Namespace: l.cfg.Pod.Namespace, Name: l.cfg.Pod.Name}
	if err := l.cfg.API.Read(ctx, at, pod); err != nil {
		return "", fmt.Errorf("cannot read %s: %w", at, err)
	}
	for _, c := range pod.Spec.Containers {
		if c.Name == "router" || len(pod.Spec.Containers) == 1 {
			return c.Image, nil
		}
	}
	return "", errors.New("no container of " + at.String() + " is called router")
}

// settle writes what differs, and returns after which time there is something to do even if nothing changes; 0 = nothing.
func (l *lead) settle(ctx context.Context, now Now) time.Duration {
	if !l.read {
		if err := l.recall(ctx); err != nil {
			l.warn(ctx, "what earlier routers have made for Gateways is not known, and stays", zap.Error(err))
		}
	}
	if l.cfg.Deployments && l.ports.image == "" && slices.ContainsFunc(now.Gateways, func(g Gateway) bool { return g.apart() && g.Parameters.Image == "" }) {
		l.ports.image, l.ports.why = l.ownImage(ctx)
	}
	now.Running = make(map[source.Key]bool)
	for i := range now.Gateways {
		g := &now.Gateways[i]
		if _, has := l.known[owned.Object{Resource: owned.Deployments, Namespace: g.Object.Namespace, Name: ObjectName(g.Object)}]; has {
			now.Running[g.key()] = true
		}
	}
	for key, s := range now.Services {
		if o := (owned.Object{Resource: owned.Services, Namespace: key.Namespace, Name: key.Name}); l.known[o].at.IsZero() {
			l.known[o] = written{of: s.Labels[gatewayv1.GatewayNameLabelKey]}
		}
	}
	wanted := l.ports.Plan(now, time.Now())
	wrong := l.write(ctx, &now, &wanted)
	for of, err := range wrong {
		if before := l.wrong[of]; before == nil || before.Error() != err.Error() {
			l.warn(ctx, "an object of a Gateway is not as it is to be", zap.Stringer("gateway", of), zap.Error(err))
		}
		if wanted.Refused[of] == "" {
			wanted.Refused[of] = err.Error()
		}
	}
	l.wrong = wrong
	l.tell(wanted.Refused)
	wait := wanted.Again
	if l.fails++; len(wrong) == 0 && l.read && l.ports.why == nil {
		l.fails = 0
	} else if pause := min(retryWait<<min(l.fails-1, 8), retryLast); wait == 0 || pause < wait {
		wait = pause
	}
	return wait
}

// warn logs what went wrong, unless that is because this process leads no longer.
func (w *Writer) warn(ctx context.Context, text string, fields ...zap.Field) {
	if ctx.Err() == nil {
		w.cfg.Log.Warn(text+"; it is tried again", fields...)
	}
}

// tell says which Gateways do not get what they need, if they are others than before.
func (l *lead) tell(refused map[source.Key]string) {
	if why := refused[source.Key{}]; why != "" { // nobody's own pods may read what they need
		delete(refused, source.Key{})
		for key := range l.ports.run {
			refused[key] = why
		}
	}
	if l.cfg.Refused != nil && !maps.Equal(l.said, refused) {
		l.said = refused
		l.cfg.Refused(refused)
	}
}

// write writes what differs from what there is, by stages, and deletes what is not wanted. Of a Gateway of which something fails nothing more is written or deleted.
// It returns what failed.
func (l *lead) write(ctx context.Context, now *Now, wanted *Wanted) map[source.Key]error {
	there := make(map[owned.Object]struct{})
	before, wrong := maps.Clone(l.known), make(map[source.Key]error)
	for step := range stages {
		c := newCrowd()
		for _, t := range wanted.things(step) {
			_, twice := there[t.Object]
			if there[t.Object] = struct{}{}; wrong[t.of] != nil {
				continue
			}
			if twice {
				wrong[t.of] = notOurs(t)
				continue
			}
			text, err := json.Marshal(t.body)
			if err != nil {
				wrong[t.of] = fmt.Errorf("BUG: %s cannot be written: %w", t, err)
				continue
			}
			last, known := before[t.Object]
			gone := missing(t.Object, now, last.at)
			if known && bytes.Equal(last.content, text) && !gone {
				continue
			}
			label := gatewayLabel(t.of.Name)
			c.do(t.of, func() error { return l.apply(ctx, t, text, known && !gone && last.of == label) }, func() { l.known[t.Object] = written{text, label, time.Now()} })
		}
		c.end(wrong)
	}
	for i := range now.Gateways {
		if g := &now.Gateways[i]; wrong[g.key()] != nil {
			wanted.keep(g, true)
		}
	}
	c := newCrowd()
	for o := range before {
		if _, stays := there[o]; !stays && !wanted.Keeps(o) {
			c.do(source.Key{Name: o.String()}, func() error { return l.remove(ctx, o) }, func() { delete(l.known, o) })
		}
	}
	c.end(wrong)
	return wrong
}

// apply writes an object. One that was not known to be ours is looked at first.
func (l *lead) apply(ctx context.Context, t thing, text []byte, known bool) error {
	if !known && t.of != (source.Key{}) {
		meta, err := l.cfg.API.Metadata(ctx, t.Object)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", t, err)
		}
		if meta != nil && (meta.Labels[labelOfController] != labelOf(l.cfg.Controller) || meta.Labels[gatewayv1.GatewayNameLabelKey] != gatewayLabel(t.of.Name)) {
			return notOurs(t)
		}
	}
	if err := l.cfg.API.Apply(ctx, t.Object, text, nil); err != nil {
		return fmt.Errorf("cannot write %s: %w", t, err)
	}
	return nil
}

func notOurs(t thing) error {
	return fmt.Errorf("%s is not the Gateway's: rename or delete it, or rename the Gateway", t)
}

func (l *lead) remove(ctx context.Context, o owned.Object) error {
	if err := l.cfg.API.Delete(ctx, o, ""); err != nil {
		return fmt.Errorf("cannot delete %s: %w", o, err)
	}
	return nil
}

// crowd is writes that are under way, a few at a time. It is made by newCrowd.
type crowd struct {
	running sync.WaitGroup
	slots   chan struct{}

	mu   sync.Mutex
	good []func()
	bad  map[source.Key]error // one for each Gateway
}

func newCrowd() *crowd {
	return &crowd{slots: make(chan struct{}, writes), bad: make(map[source.Key]error)}
}

// do does one, for a Gateway. done is called at the end, if this succeeds.
func (c *crowd) do(of source.Key, f func() error, done func()) {
	c.slots <- struct{}{}
	c.running.Go(func() {
		defer func() { <-c.slots }()
		err := f()
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			c.bad[of] = err
			return
		}
		c.good = append(c.good, done)
	})
}

// end waits for all, and notes what failed.
func (c *crowd) end(wrong map[source.Key]error) {
	c.running.Wait()
	for _, done := range c.good {
		done()
	}
	maps.Copy(wrong, c.bad)
}

// things are the objects that are written at a stage.
func (w *Wanted) things(at stage) (list []thing) {
	if at == ways {
		of := func(m *metav1.ObjectMeta) source.Key {
			return source.Key{Namespace: m.Namespace, Name: m.OwnerReferences[0].Name}
		}
		for _, s := range w.Services {
			list = append(list, thing{owned.Object{Resource: owned.Services, Namespace: s.Namespace, Name: s.Name}, of(&s.ObjectMeta), ways, s})
		}
		for _, s := range w.Slices {
			list = append(list, thing{owned.Object{Resource: owned.Slices, Namespace: s.Namespace, Name: s.Name}, of(&s.ObjectMeta), ways, s})
		}
	}
	for _, t := range w.Others {
		if t.stage == at {
			list = append(list, t)
		}
	}
	return list
}

// missing reports whether a Service that was written some time ago is not there.
func missing(o owned.Object, now *Now, at time.Time) bool {
	return o.Resource == owned.Services && now.Services[source.Key{Namespace: o.Namespace, Name: o.Name}] == nil && time.Since(at) > settled
}
