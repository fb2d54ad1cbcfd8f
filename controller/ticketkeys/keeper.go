// Package ticketkeys keeps the secrets by which the routers of a cluster resume each other's TLS sessions in one Secret of the API. Each router follows the Secret. When its
// contents are due, whichever router comes first replaces them; the others' writes are conflicts, and they read what the first one wrote. So no process has to be chosen,
// and clocks may be apart: one that is ahead rotates early, by that much.
//
//	            1st rotation    2nd             3rd
//	A:  next    │ current       │ previous      │ (gone)
//	B:          │ next          │ current       │ previous
//	C:          │               │ next          │ current
//
// A router that has missed one rotation still has the secret that makes new tickets.
package ticketkeys

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"turnout/internal/problem"
)

// MinEvery is the least time between two rotations.
const MinEvery = 10 * time.Second

// How long things take at most, and are waited for.
const (
	callTime   = 10 * time.Second // a call of the API server
	firstPause = time.Second      // after the first of several failures
	lastPause  = time.Minute      // after the later ones
	watchTime  = 5 * time.Minute  // a watch, which is followed by a reading
	leastWatch = 200 * time.Millisecond
)

// Config is which Secret is kept.
type Config struct {
	Client          rest.Interface // of the group v1; required
	Namespace, Name string         // of the Secret; required
	Every           time.Duration  // between two rotations, MinEvery at least
	Log             *zap.Logger    // nil = no logs
	Problems        *problem.List  // nil = nobody asks
}

// Keeper follows one Secret. It is made by New.
type Keeper struct {
	cfg    Config
	slack  time.Duration // how long this router waits for others to be first
	failed string        // what was logged last; "" = nothing has failed since the last success
	shared string        // the version that was shared last
}

// New returns a keeper. It fails when cfg cannot be used; the API server is not asked yet.
func New(cfg Config) (*Keeper, error) {
	if cfg.Client == nil || cfg.Namespace == "" || cfg.Name == "" {
		return nil, errors.New("cannot keep secrets of session tickets: client and Secret are required")
	}
	if cfg.Every < MinEvery {
		return nil, fmt.Errorf("cannot keep secrets of session tickets: %v between two rotations is less than %v", cfg.Every, MinEvery)
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	return &Keeper{cfg: cfg, slack: rand.N(min(cfg.Every/20, time.Minute))}, nil
}

// NewClient returns a client for Config.Client.
func NewClient(reach *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("BUG: cannot register API types: %w", err)
	}
	own := rest.CopyConfig(reach)
	own.GroupVersion, own.APIPath = &corev1.SchemeGroupVersion, "/api"
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client of Secrets: %w", err)
	}
	return client, nil
}

// Share takes the contents of the Secret by key, and keeps them. Its error says why they cannot be used.
type Share = func(contents map[string][]byte) error

// First shares what the Secret has now, if it can be had at once; otherwise Run does it later.
func (k *Keeper) First(ctx context.Context, share Share) {
	if _, err := k.step(ctx, share); err != nil {
		k.report(err)
	}
}

// Run follows the Secret, and replaces its contents when they are due, until ctx is done. It returns nil.
func (k *Keeper) Run(ctx context.Context, share Share) error {
	failures := 0
	for ctx.Err() == nil {
		begun := time.Now()
		s, err := k.step(ctx, share)
		if ctx.Err() == nil { // else that is what is wrong
			k.report(err)
		}
		if err == nil {
			failures = 0
			k.wait(ctx, s)
			sleep(ctx, leastWatch-time.Since(begun))
		} else {
			sleep(ctx, min(firstPause<<min(failures, 10), lastPause))
			failures++
		}
	}
	return nil
}

// step reads the Secret, replaces its contents if they are due, and shares them.
func (k *Keeper) step(ctx context.Context, share Share) (*corev1.Secret, error) {
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	s, err := k.read(call)
	if err != nil {
		return nil, err
	}
	at, own := due(s, k.cfg.Every, time.Now())
	first := len(s.Data) == 0
	if own && (first || !time.Now().Before(at.Add(k.slack))) {
		if s, err = k.replace(call, s); err != nil {
			return nil, err
		}
	}
	if s.ResourceVersion == k.shared {
		return s, nil
	}
	if err := share(s.Data); err != nil {
		return nil, err
	}
	k.shared = s.ResourceVersion
	k.cfg.Log.Info("secrets of session tickets are those of the Secret", zap.String("secret", k.cfg.Namespace+"/"+k.cfg.Name), zap.Int("secrets", len(s.Data)))
	return s, nil
}

// read returns the Secret, which is created if it is missing.
func (k *Keeper) read(ctx context.Context) (*corev1.Secret, error) {
	s := new(corev1.Secret)
	err := k.cfg.Client.Get().Namespace(k.cfg.Namespace).Resource("secrets").Name(k.cfg.Name).Do(ctx).Into(s)
	if !apierrors.IsNotFound(err) {
		return s, err
	}
	s = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.cfg.Namespace, Name: k.cfg.Name}, Type: corev1.SecretTypeOpaque}
	rotate(s, time.Now())
	err = k.cfg.Client.Post().Namespace(k.cfg.Namespace).Resource("secrets").Body(s).Do(ctx).Into(s)
	switch {
	case apierrors.IsAlreadyExists(err):
		return s, k.cfg.Client.Get().Namespace(k.cfg.Namespace).Resource("secrets").Name(k.cfg.Name).Do(ctx).Into(s)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("it is missing, and this account may not create it: create it empty (%w)", err)
	}
	return s, err
}

// replace writes new contents. When another router was faster, it returns what that one wrote.
func (k *Keeper) replace(ctx context.Context, s *corev1.Secret) (*corev1.Secret, error) {
	secrets := func(r *rest.Request) *rest.Request {
		return r.Namespace(k.cfg.Namespace).Resource("secrets").Name(k.cfg.Name)
	}
	rotate(s, time.Now())
	written := new(corev1.Secret)
	err := secrets(k.cfg.Client.Put()).Body(s).Do(ctx).Into(written)
	if apierrors.IsConflict(err) {
		return written, secrets(k.cfg.Client.Get()).Do(ctx).Into(written)
	}
	return written, err
}

// wait returns when s has changed, when its contents are due, and now and then.
func (k *Keeper) wait(ctx context.Context, s *corev1.Secret) {
	patience := watchTime
	if at, own := due(s, k.cfg.Every, time.Now()); own {
		patience = min(patience, max(time.Until(at)+k.slack, leastWatch))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	options := metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, k.cfg.Name).String(), ResourceVersion: s.ResourceVersion, Watch: true,
	}
	w, err := k.cfg.Client.Get().Namespace(k.cfg.Namespace).Resource("secrets").VersionedParams(&options, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		sleep(ctx, firstPause) // the reading that follows says what is wrong
		return
	}
	defer w.Stop()
	select {
	case <-w.ResultChan():
	case <-ctx.Done():
	}
}

// report says once what is wrong, and has the list of problems say it as long as it is so.
func (k *Keeper) report(err error) {
	const about = "secrets of session tickets stay as they were"
	switch {
	case err == nil:
		k.failed = ""
		k.cfg.Problems.Set("tickets")
	case err.Error() != k.failed:
		k.failed = err.Error()
		full := &Error{Namespace: k.cfg.Namespace, Name: k.cfg.Name, Err: err}
		k.cfg.Problems.Set("tickets", problem.Problem{Kind: problem.File, Text: about + ": " + full.Error()})
		k.cfg.Log.Error(about, zap.Error(full))
	}
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
