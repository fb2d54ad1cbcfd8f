package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"turnout/controller/source"
	"turnout/internal/bound"
)

func secretOf(namespace, name, content string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metaOf(namespace, name), Type: corev1.SecretTypeTLS}
	s.Labels = map[string]string{"more": "than is read"}
	s.Data = map[string][]byte{"tls.crt": []byte("cert " + content), "tls.key": []byte("key " + content), "ca.crt": []byte("ca " + content), "other": []byte("not read")}
	return s
}

var theKey = source.Key{Namespace: "ns", Name: "cert"}

// wantSecret waits until a secret holds a content.
func (r *recorder) wantSecret(t *testing.T, name, content string) {
	t.Helper()
	r.until(t, name+" holds "+content, func() bool {
		s, ok := r.latest["Secret "+name].Object.(*corev1.Secret)
		return ok && string(s.Data["tls.crt"]) == "cert "+content && string(s.Data["tls.key"]) == "key "+content && string(s.Data["ca.crt"]) == "ca "+content && len(s.Data) == 3
	})
}

// wantFailure waits until a secret cannot be had, and returns why.
func (r *recorder) wantFailure(t *testing.T, name string) error {
	t.Helper()
	var err error
	r.until(t, name+" fails", func() bool {
		err = r.latest["Secret "+name].Err
		return err != nil
	})
	return err
}

// wantGone waits until an event says that a secret is not there.
func (r *recorder) wantGone(t *testing.T, name string) {
	t.Helper()
	r.until(t, name+" is gone", func() bool {
		e, ok := r.latest["Secret "+name]
		return ok && e.Object == nil && e.Err == nil
	})
}

func TestSecretLives(t *testing.T) {
	a := newFakeAPI(t)
	a.put(secretOf("ns", "other", "x"))
	a.put(secretOf("elsewhere", "cert", "x"))
	f, sink := start(t, a, Config{})
	f.Secrets().Watch(theKey)
	sink.wantGone(t, "ns/cert")
	a.put(secretOf("ns", "cert", "1"))
	sink.wantSecret(t, "ns/cert", "1")
	sink.mu.Lock()
	s := sink.latest["Secret ns/cert"].Object.(*corev1.Secret)
	if len(s.Data) != 3 || s.Labels != nil || s.Type != corev1.SecretTypeTLS || s.UID == "" || s.ResourceVersion == "" {
		t.Errorf("delivered: %+v", s)
	}
	sink.mu.Unlock()
	a.put(secretOf("ns", "cert", "2"))
	sink.wantSecret(t, "ns/cert", "2")
	a.remove(secretOf("ns", "cert", ""))
	sink.wantGone(t, "ns/cert")
	a.put(secretOf("ns", "cert", "3"))
	sink.wantSecret(t, "ns/cert", "3")
	if n := f.Objects(); n != 1 {
		t.Errorf("%d objects", n)
	}
	f.Secrets().Forget(theKey)
	a.put(secretOf("ns", "cert", "4"))
	f.Secrets().Watch(source.Key{Namespace: "ns", Name: "other"})
	sink.wantSecret(t, "ns/other", "x")
	sink.wantSecret(t, "ns/cert", "3") // nobody wants to know any more
	for _, name := range sink.names() {
		if name == "Secret elsewhere/cert" {
			t.Error("a secret that nobody asked for")
		}
	}
	// Two secrets, and three changes, each of which has the permission asked for anew if it comes some time after the last answer.
	if n := a.count("list secrets"); n < 2 || n > 5 || a.count("create subjectaccessreviews") != 3*n {
		t.Errorf("requests: %v", a.requests)
	}
}

func TestSecretAskedBeforeRun(t *testing.T) {
	s := newSecrets(newFakeSecrets(nil), newHealth(nopLog, "", 1), nopLog, soon, time.Hour)
	s.Watch(theKey)
	s.Watch(source.Key{Namespace: "ns", Name: "forgotten"})
	s.Forget(source.Key{Namespace: "ns", Name: "forgotten"})
	sink := newRecorder()
	stop := run(t, s, sink)
	sink.wantGone(t, "ns/cert")
	stop()
	s.Watch(source.Key{Namespace: "ns", Name: "late"}) // starts nothing, see the end of run
	if sink.events() != 1 {
		t.Errorf("%d events", sink.events())
	}
}

func TestSecretPermissions(t *testing.T) {
	a := newFakeAPI(t)
	a.put(secretOf("ns", "cert", "1"))
	var mu sync.Mutex
	var specs []authorizationv1.SubjectAccessReviewSpec
	may := map[string]int{"get": 0, "watch": 0, "list": 0}
	a.allowed = func(spec *authorizationv1.SubjectAccessReviewSpec) int {
		mu.Lock()
		defer mu.Unlock()
		specs = append(specs, *spec)
		return may[spec.ResourceAttributes.Verb]
	}
	grant := func(verbs ...string) {
		mu.Lock()
		defer mu.Unlock()
		for verb := range may {
			may[verb] = 0
		}
		for _, verb := range verbs {
			may[verb] = 1
		}
	}
	f, sink := start(t, a, Config{ServiceAccount: "here:me"})
	f.Secrets().Watch(theKey)
	denied := func(want ...string) {
		t.Helper()
		sink.until(t, "denied", func() bool {
			var e *source.DeniedError
			return errors.As(sink.latest["Secret ns/cert"].Err, &e) && slices.Equal(e.Verbs, want)
		})
	}
	denied("get", "watch", "list")
	if f.Problems() != 1 || f.Objects() != 0 {
		t.Errorf("%d problems, %d objects", f.Problems(), f.Objects())
	}
	grant("watch")
	denied("get", "list")
	if a.count("list secrets") != 0 {
		t.Error("a secret is read that must not be")
	}
	grant("get", "watch", "list")
	sink.wantSecret(t, "ns/cert", "1")
	if f.Problems() != 0 || f.Objects() != 1 {
		t.Errorf("%d problems, %d objects", f.Problems(), f.Objects())
	}
	mu.Lock()
	defer mu.Unlock()
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:here:me", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:here", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "ns", Name: "cert", Verb: "get", Resource: "secrets", Version: "v1"},
	}
	if diff := cmp.Diff(want, specs[0]); diff != "" {
		t.Errorf("review (-want +got):\n%s", diff)
	}
}

func TestSecretCannotBeReviewedOrRead(t *testing.T) {
	a := newFakeAPI(t)
	a.put(secretOf("ns", "cert", "1"))
	a.status["subjectaccessreviews"] = http.StatusForbidden
	f, sink := start(t, a, Config{})
	f.Secrets().Watch(theKey)
	const text = "cannot ask for the permissions of system:serviceaccount:openshift-ingress:router: as the test wants it"
	if err := sink.wantFailure(t, "ns/cert"); err.Error() != text {
		t.Errorf("got %v", err)
	}
	a.set(func(a *fakeAPI) {
		a.status["subjectaccessreviews"], a.status["secrets"] = 0, http.StatusForbidden
	})
	sink.until(t, "read without permission", func() bool {
		err := sink.latest["Secret ns/cert"].Err
		return err != nil && err.Error() == "as the test wants it"
	})
	a.asked(t, 3, "create subjectaccessreviews") // what is refused is reviewed anew
	a.set(func(a *fakeAPI) { a.status["secrets"] = 0 })
	sink.wantSecret(t, "ns/cert", "1")
}

// TestSecretInOutage leaves a secret as it was while nobody answers, and asks for it
// only when the server is back.
func TestSecretInOutage(t *testing.T) {
	a := newFakeAPI(t)
	a.put(secretOf("ns", "cert", "1"))
	f, sink := start(t, a, Config{})
	f.Secrets().Watch(theKey)
	sink.wantSecret(t, "ns/cert", "1")
	sink.wantSynced(t)
	a.set(func(a *fakeAPI) { a.down = true })
	a.cutWatches()
	a.asked(t, 3, allWatches...) // all readers have seen it
	before := a.count("list secrets") + a.count("watch secrets")
	a.asked(t, 20, allWatches...)
	if n := a.count("list secrets") + a.count("watch secrets") - before; n > 2 { // what was on its way
		t.Errorf("%d requests about secrets in an outage", n)
	}
	a.put(secretOf("ns", "cert", "2"))
	sink.wantSecret(t, "ns/cert", "1")
	a.set(func(a *fakeAPI) { a.down = false })
	sink.wantSecret(t, "ns/cert", "2")
	if n := a.count("create subjectaccessreviews"); n != 3 {
		t.Errorf("%d reviews; a permission counts for a while", n)
	}
}

func TestSecretExpired(t *testing.T) {
	a := newFakeAPI(t)
	a.put(secretOf("ns", "cert", "1"))
	f, sink := start(t, a, Config{})
	f.Secrets().Watch(theKey)
	sink.wantSecret(t, "ns/cert", "1")
	a.set(func(a *fakeAPI) { a.status["secrets"] = http.StatusServiceUnavailable })
	a.cutWatches()
	a.asked(t, 2, "list secrets")
	a.remove(secretOf("ns", "cert", ""))
	a.put(secretOf("ns", "cert", "2"))
	a.forget()
	a.set(func(a *fakeAPI) { a.status["secrets"] = 0 })
	sink.wantSecret(t, "ns/cert", "2")
}

func TestPermissionIsReviewedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeSecrets(nil)
		api.change(theKey, "1")
		s := newSecrets(api, newHealth(nopLog, "", 1), nopLog, soon, time.Hour)
		sink := newRecorder()
		s.Watch(theKey)
		stop := run(t, s, sink)
		synctest.Wait()
		if api.reviews != 1 {
			t.Fatalf("%d reviews", api.reviews)
		}
		api.mu.Lock()
		api.deny = true
		api.mu.Unlock()
		<-time.After(44 * time.Minute) // virtual
		api.cutAll()                   // as the server does every few minutes
		synctest.Wait()
		if api.reviews != 1 {
			t.Errorf("%d reviews before the time", api.reviews)
		}
		<-time.After(17 * time.Minute) // virtual
		api.cutAll()
		synctest.Wait()
		if api.reviews < 2 || sink.latest["Secret ns/cert"].Err == nil {
			t.Errorf("%d reviews, %+v", api.reviews, sink.latest["Secret ns/cert"])
		}
		stop()
	})
}

// TestChangesAreReviewed: a secret that changes after the permission was taken away is not delivered, although the watch goes on; many
// changes are not as many questions.
func TestChangesAreReviewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeSecrets(nil)
		api.change(theKey, "1")
		s := newSecrets(api, newHealth(nopLog, "", 1), nopLog, soon, time.Hour)
		sink := newRecorder()
		s.Watch(theKey)
		stop := run(t, s, sink)
		synctest.Wait()
		for i := range 100 {
			api.change(theKey, strconv.Itoa(i+2))
			synctest.Wait()
		}
		if api.reviews != 1 {
			t.Errorf("%d reviews of a hundred changes at once", api.reviews)
		}
		<-time.After(s.refuse.first) // virtual
		api.change(theKey, "102")
		synctest.Wait()
		if err := sink.latest["Secret ns/cert"].Err; err != nil || api.reviews != 2 {
			t.Errorf("%d reviews after a change, %v", api.reviews, err)
		}
		api.mu.Lock()
		api.deny = true
		api.mu.Unlock()
		<-time.After(s.refuse.first) // virtual
		api.change(theKey, "103")
		synctest.Wait()
		if sink.latest["Secret ns/cert"].Err == nil || api.reviews < 3 {
			t.Errorf("%d reviews, and a change is delivered without permission", api.reviews)
		}
		stop()
	})
}

// TestRefusalsAreAskedAboutSeldom bounds what missing permissions cost: after a day it is hours between two questions, unless a route
// changes, and then seconds.
func TestRefusalsAreAskedAboutSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeSecrets(nil)
		api.deny = true
		var counts bound.Counts
		s := newSecrets(api, newHealth(nopLog, "", 1), nopLog, retryAPI(), time.Hour)
		s.bounds = &counts
		sink := newRecorder()
		s.Watch(theKey)
		stop := run(t, s, sink)
		reviews := func() int {
			api.mu.Lock()
			defer api.mu.Unlock()
			return api.reviews
		}
		asked := func(during time.Duration, least, most int) {
			t.Helper()
			before := reviews()
			<-time.After(during) // virtual
			synctest.Wait()
			if n := reviews() - before; n < least || n > most {
				t.Errorf("%d reviews in %v", n, during)
			}
		}
		asked(time.Minute, 4, 9)
		asked(time.Hour-time.Minute, 4, 10)
		asked(24*time.Hour, 8, 30)
		asked(24*time.Hour, 6, 24)
		if counts.Of(bound.Reviews) == 0 {
			t.Error("nobody counts")
		}
		s.Again(theKey)
		asked(time.Minute, 4, 9)
		for range 1000 { // a route that changes all the time
			s.Again(theKey)
			<-time.After(20 * time.Millisecond)
		}
		asked(time.Second, 0, 25)
		if n := reviews(); n > 150 {
			t.Errorf("%d reviews", n)
		}
		s.Again(source.Key{Namespace: "ns", Name: "unknown"})
		api.mu.Lock()
		api.deny = false
		api.mu.Unlock()
		s.Again(theKey)
		<-time.After(3 * time.Second)
		synctest.Wait()
		if sink.latest["Secret ns/cert"].Err != nil {
			t.Error("a change does not help where it is allowed now")
		}
		stop()
	})
}

// TestNamespacesTakeTurns: what one namespace asks for much of does not hold up another one.
func TestNamespacesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(2)
		var mu sync.Mutex
		var order []string
		ask := func(namespace string) {
			if !s.takeSlot(t.Context(), namespace) {
				t.Error("no slot")
			}
			<-time.After(time.Second)
			mu.Lock()
			order = append(order, namespace)
			mu.Unlock()
			s.giveSlot()
		}
		for range 100 {
			go ask("big")
		}
		synctest.Wait()
		go ask("small")
		gone, cancel := context.WithCancel(t.Context())
		go func() {
			if s.takeSlot(gone, "gone") {
				t.Error("a slot for somebody who does not wait any more")
			}
		}()
		synctest.Wait()
		cancel()
		<-time.After(200 * time.Second)
		synctest.Wait()
		if i := slices.Index(order, "small"); i < 0 || i > 6 || len(order) != 101 {
			t.Errorf("small is number %d of %d", i, len(order))
		}
		if s.free != 2 || len(s.waiting) != 0 || len(s.order) != 0 {
			t.Errorf("%d free, %v wait", s.free, s.waiting)
		}
	})
}

func TestAccountOf(t *testing.T) {
	token := func(payload string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
	}
	f := func(want string, config rest.Config) {
		t.Helper()
		if got := accountOf(&config); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f("openshift-ingress:router", rest.Config{})
	f("a:b", rest.Config{BearerToken: token(`{"sub":"system:serviceaccount:a:b"}`)})
	f("openshift-ingress:router", rest.Config{BearerToken: token(`{"sub":"admin"}`)})
	f("openshift-ingress:router", rest.Config{BearerToken: token(`{"sub":"system:serviceaccount:a"}`)})
	f("openshift-ingress:router", rest.Config{BearerToken: "opaque"})
	f("openshift-ingress:router", rest.Config{BearerToken: "a.*.c"})
	f("openshift-ingress:router", rest.Config{BearerTokenFile: "/nonexistent"})
}
