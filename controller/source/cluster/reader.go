package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"turnout/controller/source"
	"turnout/internal/problem"
)

// resource is one kind of objects of the API, and which of them are read.
type resource struct {
	kind           source.Kind
	client         rest.Interface
	parameters     runtime.ParameterCodec
	plural         string
	namespace      string // "" = all
	labels, fields string // selectors; "" = all
	object         runtime.Object
	list           func() runtime.Object // an empty list
	optional       bool                  // a cluster that does not know them has none
}

// listRequest returns the request for the objects.
func (r *resource) listRequest(options *metav1.ListOptions) *rest.Request {
	options.LabelSelector, options.FieldSelector = r.labels, r.fields
	return r.client.Get().NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.plural).
		VersionedParams(options, r.parameters).MaxRetries(0) // who asks knows when to ask again
}

// List returns the objects that are there.
func (r *resource) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := r.list()
	if err := r.listRequest(&options).Do(ctx).Into(list); err != nil {
		return nil, err
	}
	return list, nil
}

// Watch returns what changes from options.ResourceVersion on.
func (r *resource) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	w, err := r.listRequest(&options).Watch(ctx)
	if err == nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()) {
		// What the client makes of a connection that is closed without an answer.
		return nil, errNoAnswer
	}
	return w, err
}

var errNoAnswer = errors.New("the connection was closed without an answer")

// reader reads one resource for as long as it runs, whatever happens.
type reader struct {
	resource *resource
	store    *store
	health   *health
	log      *zap.Logger
	problems *problem.List
	retry    backoff

	mu      sync.Mutex
	trouble string // why it cannot read although the server answers, as the log has it
	unknown bool   // the cluster does not know the objects
}

// run reads until ctx is done.
func (r *reader) run(ctx context.Context) {
	lw := &cache.ListWatch{
		// The contexts given are not those of run: the reflector does not end what it has
		// begun.
		ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return persist(ctx, r, &options, r.resource.List)
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return persist(ctx, r, &options, r.resource.Watch)
		},
	}
	silent := klog.Logger{} // what goes wrong is logged here, once
	cache.NewReflectorWithOptions(lw, r.resource.object, r.store, cache.ReflectorOptions{
		Logger: &silent, Name: r.resource.plural,
		Backoff: &wait.Backoff{Duration: r.retry.first, Factor: 2, Jitter: 1, Steps: 32, Cap: r.retry.last},
	}).RunWithContext(klog.NewContext(ctx, silent))
}

// persist asks until there is an answer that the reflector can go on with, or ctx is
// done.
func persist[T any](ctx context.Context, r *reader, options *metav1.ListOptions, ask func(context.Context, metav1.ListOptions) (T, error)) (T, error) {
	for attempt := 0; ; attempt++ {
		answer, err := ask(ctx, *options)
		switch {
		case ctx.Err() != nil:
			return answer, err
		case err == nil:
			r.works()
			return answer, nil
		case forReflector(err, options):
			return answer, err
		}
		r.fails(err)
		if !r.retry.sleep(ctx, attempt, err) {
			return answer, ctx.Err()
		}
	}
}

// forReflector reports whether an error is one that a reflector answers by asking for
// something else: the version it asked for is too old or too new, or the server cannot
// send what is there as a watch.
func forReflector(err error, options *metav1.ListOptions) bool {
	return isExpired(err) || options.SendInitialEvents != nil && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err))
}

// isExpired reports whether an error says that a version is too old or too new to go on
// from.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// works notes that the server gave what was asked for.
func (r *reader) works() {
	r.health.answered(r.resource.plural)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unknown {
		r.unknown = false
		r.tellUnknown(nil)
		r.log.Info("the cluster knows " + r.resource.plural + " now")
	}
	if r.trouble != "" {
		r.trouble = ""
		r.problems.Set("source/" + r.resource.plural)
		r.log.Info(r.resource.plural + " can be read now")
	}
}

// fails notes that it did not.
func (r *reader) fails(err error) {
	if isOutage(err) {
		r.health.failed(r.resource.plural, err)
		return
	}
	r.health.answered(r.resource.plural)
	if r.resource.optional && apierrors.IsNotFound(err) {
		r.absent()
		return
	}
	trouble := r.explain(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.trouble != trouble {
		r.trouble = trouble
		r.problems.Set("source/"+r.resource.plural, problem.Problem{Kind: problem.Source, Object: r.resource.plural, Text: trouble})
		r.log.Error(trouble)
	}
}

// absent notes that the cluster does not know the objects, which is no trouble. They are asked for again, because it may come to know them.
func (r *reader) absent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unknown {
		return
	}
	r.unknown = true
	r.log.Info("the cluster does not know " + r.resource.plural + ": there are none until it does")
	r.tellUnknown(&metav1.Status{Reason: metav1.StatusReasonNotFound})
	r.store.synced()
}

// tellUnknown passes on that the cluster does not know a kind of the Gateway API, or that it does: nil. Nobody asks for that of other kinds.
func (r *reader) tellUnknown(what runtime.Object) {
	if kind := r.resource.kind; kind.OfGatewayAPI() {
		r.store.sink.Event(source.Event{Kind: source.UnknownKind, Key: source.Key{Name: kind.String()}, Object: what})
	}
}

// troubled reports whether the objects cannot be read although the server answers.
func (r *reader) troubled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trouble != ""
}

// explain returns for people why the server does not give the objects.
func (r *reader) explain(err error) string {
	const again = "; it is tried again"
	if group := groupOf(r.resource.kind); apierrors.IsNotFound(err) && group != "" {
		return fmt.Sprintf("the cluster does not know %ss: the API %s is not there, install its CustomResourceDefinition%s", r.resource.kind, group, again)
	}
	code := ""
	if status, ok := err.(apierrors.APIStatus); ok {
		code = fmt.Sprintf(" (status %d)", status.Status().Code)
	}
	return fmt.Sprintf("cannot read %s: %v%s%s", r.resource.plural, err, code, again)
}
