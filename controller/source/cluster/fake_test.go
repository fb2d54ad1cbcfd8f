package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	shards "turnout/controller/shard/api"
)

// fakeAPI is as much of an API server as the package asks: lists, watches, watches
// that begin with what is there, selectors, access reviews, and ways to fail.
type fakeAPI struct {
	server *httptest.Server
	config *rest.Config

	mu      sync.Mutex
	version int
	objects map[string]object // by resource/namespace/name
	history []change
	oldest  int           // changes up to this version are forgotten
	moved   chan struct{} // closed and replaced after each change
	cut     chan struct{} // closed and replaced to end all watches

	down     bool                                               // connections are closed without an answer
	status   map[string]int                                     // answers for resources
	old      bool                                               // watches cannot begin with what is there
	allowed  func(*authorizationv1.SubjectAccessReviewSpec) int // 1 = yes, 0 = no, else a status; nil = yes
	requests map[string]int                                     // by "list routes", "watch routes"
	asking   chan struct{}                                      // closed and replaced by each request
}

type object interface {
	runtime.Object
	metav1.Object
}

type change struct {
	resource    string
	version     int
	before, now object // nil = not there
}

func newFakeAPI(t testing.TB) *fakeAPI {
	a := &fakeAPI{
		objects: map[string]object{}, moved: make(chan struct{}), cut: make(chan struct{}), version: 100,
		status: map[string]int{}, requests: map[string]int{}, asking: make(chan struct{}),
	}
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	a.config = &rest.Config{Host: a.server.URL}
	t.Cleanup(func() {
		a.cutWatches()
		a.server.CloseClientConnections()
		a.server.Close()
	})
	return a
}

// kindOf returns the apiVersion and kind of the objects of a resource.
func kindOf(plural string) schema.GroupVersionKind {
	return map[string]schema.GroupVersionKind{
		"routes":         routev1.GroupVersion.WithKind("Route"),
		"endpointslices": discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
		"services":       corev1.SchemeGroupVersion.WithKind("Service"),
		"namespaces":     corev1.SchemeGroupVersion.WithKind("Namespace"),
		"ingresses":      networkingv1.SchemeGroupVersion.WithKind("Ingress"),
		"ingressclasses": networkingv1.SchemeGroupVersion.WithKind("IngressClass"),
		"secrets":        corev1.SchemeGroupVersion.WithKind("Secret"),
		"routers":        shards.GroupVersion.WithKind("Router"),
		"gateways":       schema.GroupVersion(gatewayv1.GroupVersion).WithKind("Gateway"),
		"httproutes":     schema.GroupVersion(gatewayv1.GroupVersion).WithKind("HTTPRoute"),
		"routebindings":  shards.GroupVersion.WithKind("RouteBinding"),
		"tcproutes":      schema.FromAPIVersionAndKind(gatewayv1.GroupVersion.String(), "TCPRoute"),
	}[plural]
}

// pluralOf returns the resource of an object.
func pluralOf(o object) string {
	name := fmt.Sprintf("%T", o)
	name = strings.ToLower(name[strings.LastIndex(name, ".")+1:])
	if strings.HasSuffix(name, "s") {
		name += "e"
	}
	return name + "s"
}

// put makes or changes an object. The object given is not kept.
func (a *fakeAPI) put(o object) {
	o = o.DeepCopyObject().(object)
	plural := pluralOf(o)
	o.GetObjectKind().SetGroupVersionKind(kindOf(plural))
	a.mu.Lock()
	defer a.mu.Unlock()
	key := plural + "/" + o.GetNamespace() + "/" + o.GetName()
	before := a.objects[key]
	a.version++
	o.SetResourceVersion(strconv.Itoa(a.version))
	switch {
	case before != nil:
		o.SetUID(before.GetUID())
	case o.GetUID() == "":
		o.SetUID(types.UID("uid-" + strconv.Itoa(a.version)))
	}
	a.objects[key] = o
	a.note(change{plural, a.version, before, o})
}

// remove deletes an object, if it is there.
func (a *fakeAPI) remove(o object) {
	plural := pluralOf(o)
	a.mu.Lock()
	defer a.mu.Unlock()
	key := plural + "/" + o.GetNamespace() + "/" + o.GetName()
	before := a.objects[key]
	if before == nil {
		return
	}
	a.version++
	delete(a.objects, key)
	a.note(change{plural, a.version, before, nil})
}

func (a *fakeAPI) note(c change) {
	a.history = append(a.history, c)
	close(a.moved)
	a.moved = make(chan struct{})
}

// set changes how the server behaves.
func (a *fakeAPI) set(change func(a *fakeAPI)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

// cutWatches ends all watches as a server that goes away does.
func (a *fakeAPI) cutWatches() {
	a.set(func(a *fakeAPI) {
		close(a.cut)
		a.cut = make(chan struct{})
	})
}

// forget forgets the history: watches of versions up to now are answered with 410.
func (a *fakeAPI) forget() { a.set(func(a *fakeAPI) { a.oldest = a.version }) }

// count returns how often something was asked.
func (a *fakeAPI) count(what string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests[what]
}

// asked waits until something has been asked n times more.
func (a *fakeAPI) asked(t *testing.T, n int, what ...string) {
	t.Helper()
	for _, w := range what {
		a.askedInAll(t, a.count(w)+n, w)
	}
}

// askedInAll waits until something has been asked so often since the start.
func (a *fakeAPI) askedInAll(t *testing.T, n int, what string) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		a.mu.Lock()
		ok, asking := a.requests[what] >= n, a.asking
		a.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-asking:
		case <-deadline:
			t.Fatalf("never: %q %d times", what, n)
		}
	}
}

func (a *fakeAPI) serve(w http.ResponseWriter, req *http.Request) {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	namespace, plural := "", parts[len(parts)-1]
	if len(parts) > 2 && parts[len(parts)-3] == "namespaces" {
		namespace = parts[len(parts)-2]
	}
	verb := "list"
	switch {
	case req.Method == http.MethodPost:
		verb = "create"
	case req.FormValue("watch") != "" && req.FormValue("watch") != "false" && req.FormValue("watch") != "0":
		verb = "watch"
	}
	a.mu.Lock()
	a.requests[verb+" "+plural]++
	close(a.asking)
	a.asking = make(chan struct{})
	down, status := a.down, a.status[plural]
	a.mu.Unlock()
	switch {
	case down:
		panic(http.ErrAbortHandler)
	case status != 0:
		fail(w, status, metav1.StatusReason(strings.ReplaceAll(http.StatusText(status), " ", "")))
	case plural == "subjectaccessreviews":
		a.review(w, req)
	default:
		q := &query{plural: plural, namespace: namespace, req: req, labels: labels.Everything(), fields: fields.Everything()}
		var errLabels, errFields error
		if s := req.FormValue("labelSelector"); s != "" {
			q.labels, errLabels = labels.Parse(s)
		}
		if s := req.FormValue("fieldSelector"); s != "" {
			q.fields, errFields = fields.ParseSelector(s)
		}
		if errLabels != nil || errFields != nil {
			fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
			return
		}
		if verb == "watch" {
			a.watch(w, q)
		} else {
			a.list(w, q)
		}
	}
}

func (a *fakeAPI) review(w http.ResponseWriter, req *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	a.mu.Lock()
	allowed := a.allowed
	a.mu.Unlock()
	answer := 1
	if allowed != nil {
		answer = allowed(&review.Spec)
	}
	if answer > 1 {
		fail(w, answer, metav1.StatusReason(http.StatusText(answer)))
		return
	}
	review.Status.Allowed = answer == 1
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(&review)
}

// query is what is asked of a resource.
type query struct {
	plural, namespace string
	labels            labels.Selector
	fields            fields.Selector
	req               *http.Request
}

func (q *query) matches(o object) bool {
	return o != nil && (q.namespace == "" || q.namespace == o.GetNamespace()) && q.labels.Matches(labels.Set(o.GetLabels())) &&
		q.fields.Matches(fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()})
}

// there returns the objects that match, by key. a.mu is held.
func (a *fakeAPI) there(q *query) []object {
	var out []object
	for _, key := range slices.Sorted(maps.Keys(a.objects)) {
		if o := a.objects[key]; strings.HasPrefix(key, q.plural+"/") && q.matches(o) {
			out = append(out, o)
		}
	}
	return out
}

func (a *fakeAPI) list(w http.ResponseWriter, q *query) {
	a.mu.Lock()
	items, version := a.there(q), a.version
	a.mu.Unlock()
	kind := kindOf(q.plural)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": kind.Kind + "List", "apiVersion": kind.GroupVersion().String(), "metadata": map[string]any{"resourceVersion": strconv.Itoa(version)}, "items": items,
	})
}

func (a *fakeAPI) watch(w http.ResponseWriter, q *query) {
	from, _ := strconv.Atoi(q.req.FormValue("resourceVersion"))
	initial := q.req.FormValue("sendInitialEvents") == "true"
	w.Header().Set("Content-Type", "application/json")
	send := func(kind watch.EventType, o any) {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": o})
	}
	a.mu.Lock()
	cut, at := a.cut, 0
	switch {
	case initial && a.old:
		a.mu.Unlock()
		fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		return
	case initial:
		for _, o := range a.there(q) {
			send(watch.Added, o)
		}
		send(watch.Bookmark, bookmark(q.plural, a.version))
		from, at = a.version, len(a.history)
	case from < a.oldest:
		a.mu.Unlock()
		send(watch.Error, metav1.Status{Status: "Failure", Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old"})
		return
	}
	a.mu.Unlock()
	for {
		a.mu.Lock()
		news, moved := a.history[at:], a.moved
		at = len(a.history)
		a.mu.Unlock()
		for _, c := range news {
			if c.resource != q.plural || c.version <= from {
				continue
			}
			before, now := q.matches(c.before), q.matches(c.now)
			switch {
			case before && now:
				send(watch.Modified, c.now)
			case now:
				send(watch.Added, c.now)
			case before:
				gone := c.before.DeepCopyObject().(object)
				gone.SetResourceVersion(strconv.Itoa(c.version))
				send(watch.Deleted, gone)
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-moved:
		case <-cut:
			return
		case <-q.req.Context().Done():
			return
		}
	}
}

// bookmark is the object that ends the first events of a watch.
func bookmark(plural string, version int) any {
	kind := kindOf(plural)
	return map[string]any{"kind": kind.Kind, "apiVersion": kind.GroupVersion().String(), "metadata": map[string]any{
		"resourceVersion": strconv.Itoa(version), "annotations": map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason, Message: "as the test wants it",
	})
}
