// Package lease decides by a Lease of an API server which of several processes works. The package of client-go that does so brings all kinds of Kubernetes
// into the program.
package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// How long the Lease is for, in the proportions that controllers of Kubernetes use.
const (
	leaseDuration = 15 * time.Second // others take it that long after its holder has renewed it last
	leaseDeadline = 10 * time.Second // its holder stops writing that long after it has renewed it last
	leasePause    = 2 * time.Second
)

// Config is which Lease decides.
type Config struct {
	Client          rest.Interface // of coordination.k8s.io/v1; required
	Namespace, Name string         // of the Lease; required
	Identity        string         // of this process among the others; required
	Log             *zap.Logger    // nil = no logs
}

// Election decides which of several processes leads. It is made by New.
type Election struct {
	client              rest.Interface
	namespace, name, me string
	log                 *zap.Logger

	holder   string    // as last seen
	version  string    // of the Lease, as last seen
	observed time.Time // when version was first seen, by this process' clock
}

// New returns an election. It fails when cfg cannot be used; the API server is not asked yet.
func New(cfg Config) (*Election, error) {
	if cfg.Client == nil || cfg.Namespace == "" || cfg.Name == "" || cfg.Identity == "" {
		return nil, errors.New("cannot make an election: client, lease and identity are required")
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	return &Election{client: cfg.Client, namespace: cfg.Namespace, name: cfg.Name, me: cfg.Identity, log: cfg.Log}, nil
}

// NewClient returns a client for Config.Client.
func NewClient(reach *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("BUG: cannot register API types: %w", err)
	}
	own := rest.CopyConfig(reach)
	own.GroupVersion, own.APIPath = &coordinationv1.SchemeGroupVersion, "/apis"
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client of leases: %w", err)
	}
	return client, nil
}

// Run calls lead each time that this process has come to lead, until ctx is done. The context of lead ends when it may not write any more; Run waits
// for lead to return. An error of lead ends Run. It must be called once.
func (e *Election) Run(ctx context.Context, lead func(context.Context) error) error {
	for ctx.Err() == nil {
		if !e.acquire(ctx) {
			continue
		}
		e.log.Info("this process leads", zap.String("lease", e.namespace+"/"+e.name))
		if err := e.hold(ctx, lead); err != nil {
			return err
		}
		if ctx.Err() == nil {
			e.log.Warn("this process does not lead any more: the lease could not be renewed", zap.String("lease", e.namespace+"/"+e.name))
		}
	}
	return nil
}

// acquire waits for the Lease. It returns false when ctx is done, and now and then.
func (e *Election) acquire(ctx context.Context) bool {
	ok, err := e.try(ctx)
	if ok {
		return true
	}
	if err != nil && ctx.Err() == nil {
		e.log.Warn("cannot get the lease by which one of several processes leads; it is tried again", zap.String("lease", e.namespace+"/"+e.name), zap.Error(err))
	}
	sleep(ctx, leasePause+rand.N(leasePause/2))
	return false
}

// hold renews the Lease while lead runs, and lets go of it afterwards.
func (e *Election) hold(ctx context.Context, lead func(context.Context) error) error {
	leading, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- lead(leading) }()
	renewed := time.Now()
	tick := time.NewTicker(leasePause)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			e.release()
			return err
		case <-ctx.Done():
			err := <-ended
			e.release()
			return err
		case <-tick.C:
		}
		asked := time.Now()
		attempt, cancel := context.WithDeadline(ctx, renewed.Add(leaseDeadline))
		ok, err := e.try(attempt)
		cancel()
		switch {
		case ok:
			renewed = asked
		case err == nil || time.Since(renewed) >= leaseDeadline: // another has it, or may soon
			stop()
			return <-ended
		}
	}
}

// try takes or renews the Lease if nobody else has it. The error says why that could not be found out.
func (e *Election) try(ctx context.Context) (bool, error) {
	lease := new(coordinationv1.Lease)
	err := e.client.Get().Namespace(e.namespace).Resource("leases").Name(e.name).Do(ctx).Into(lease)
	if apierrors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: e.name}}
		e.fill(lease)
		err = e.client.Post().Namespace(e.namespace).Resource("leases").Body(lease).Do(ctx).Into(lease)
		return e.wrote(lease, err)
	}
	if err != nil {
		return false, fmt.Errorf("cannot read lease: %w", err)
	}
	holder := ""
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	if lease.ResourceVersion != e.version {
		e.holder, e.version, e.observed = holder, lease.ResourceVersion, time.Now()
	}
	if holder != e.me && holder != "" && time.Since(e.observed) < leaseDuration {
		return false, nil
	}
	e.fill(lease)
	err = e.client.Put().Namespace(e.namespace).Resource("leases").Name(e.name).Body(lease).Do(ctx).Into(lease)
	return e.wrote(lease, err)
}

// wrote notes what became of a write.
func (e *Election) wrote(lease *coordinationv1.Lease, err error) (bool, error) {
	switch {
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		return false, nil // another was faster
	case err != nil:
		return false, fmt.Errorf("cannot write lease: %w", err)
	}
	e.holder, e.version, e.observed = e.me, lease.ResourceVersion, time.Now()
	return true, nil
}

// fill makes a Lease this process'.
func (e *Election) fill(lease *coordinationv1.Lease) {
	seconds, now := int32(leaseDuration/time.Second), metav1.NowMicro()
	if h := lease.Spec.HolderIdentity; h == nil || *h != e.me {
		changes := int32(0)
		if lease.Spec.LeaseTransitions != nil {
			changes = *lease.Spec.LeaseTransitions + 1
		}
		lease.Spec.AcquireTime, lease.Spec.LeaseTransitions = &now, &changes
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &e.me, &seconds, &now
}

// release lets others take the Lease at once.
func (e *Election) release() {
	ctx, cancel := context.WithTimeout(context.Background(), leasePause)
	defer cancel()
	lease := new(coordinationv1.Lease)
	err := e.client.Get().Namespace(e.namespace).Resource("leases").Name(e.name).Do(ctx).Into(lease)
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != e.me {
		return // it runs out
	}
	nobody, second := "", int32(1)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &nobody, &second
	if err := e.client.Put().Namespace(e.namespace).Resource("leases").Name(e.name).Body(lease).Do(ctx).Error(); err != nil {
		e.log.Info("the lease was not released; others take it when it has run out", zap.Error(err))
	}
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
