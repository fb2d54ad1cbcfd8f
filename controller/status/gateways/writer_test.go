package gateways

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway"
	"turnout/controller/source"
)

// api is an API server with one HTTPRoute, without a network.
type api struct {
	mu      sync.Mutex
	route   *gatewayv1.HTTPRoute
	invalid bool // it takes no status
	calls   []string
	called  chan struct{} // a value for each call
}

func answer(status int, object any) *http.Response {
	text, err := json.Marshal(object)
	if err != nil {
		status = http.StatusInternalServerError
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(text)))}
}

func failure(status int, reason metav1.StatusReason) *http.Response {
	return answer(status, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: reason, Code: int32(status)})
}

// RoundTrip implements http.RoundTripper.
func (a *api) RoundTrip(q *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, q.Method)
	defer func() { a.called <- struct{}{} }()
	if q.Method == http.MethodPatch {
		patch := new(gatewayv1.HTTPRoute)
		if err := json.NewDecoder(q.Body).Decode(patch); err != nil {
			return nil, err
		}
		switch {
		case a.invalid:
			return failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid), nil
		case patch.ResourceVersion != a.route.ResourceVersion:
			return failure(http.StatusConflict, metav1.StatusReasonConflict), nil
		}
		a.put(func(r *gatewayv1.HTTPRoute) { r.Status = patch.Status })
	}
	return answer(http.StatusOK, a.route), nil
}

// put changes the route. a.mu is held.
func (a *api) put(change func(r *gatewayv1.HTTPRoute)) {
	next := a.route.DeepCopy()
	change(next)
	version, _ := strconv.Atoi(a.route.ResourceVersion)
	next.ResourceVersion = strconv.Itoa(version + 1)
	a.route = next
}

// parent is an entry of the status of a route.
func parent(controller, reason string) gatewayv1.RouteParentStatus {
	return gatewayv1.RouteParentStatus{
		ParentRef: gatewayv1.ParentReference{Name: "gw"}, ControllerName: gatewayv1.GatewayController(controller),
		Conditions: []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue, Reason: reason, ObservedGeneration: 1}},
	}
}

var ref = gateway.Ref{Kind: "HTTPRoute", Key: source.Key{Namespace: "ns", Name: "r"}}

// start returns an API server and a writer that leads until the test is over.
func start(t *testing.T) (*api, *Writer, func()) {
	t.Helper()
	a := &api{called: make(chan struct{}, 100), route: &gatewayv1.HTTPRoute{
		TypeMeta:   metav1.TypeMeta{APIVersion: gatewayv1.GroupVersion.String(), Kind: "HTTPRoute"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", ResourceVersion: "1", Generation: 1},
	}}
	a.route.Status.Parents = []gatewayv1.RouteParentStatus{parent("other.test/c", "Foreign")}
	w := New(Config{Client: clientOf(t, a), Controller: "turnout.router/gateway", Gather: time.Millisecond})
	lead := func() {
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); w.Run(ctx) }()
		t.Cleanup(func() { stop(); <-ended })
	}
	return a, w, lead
}

// clientOf returns a client of the API server that a transport is.
func clientOf(t *testing.T, server http.RoundTripper) rest.Interface {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := gatewayv1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	metav1.AddToGroupVersion(scheme, metav1.Unversioned)
	group := gatewayv1.SchemeGroupVersion //nolint:staticcheck // a client takes this type
	client, err := rest.RESTClientFor(&rest.Config{
		Host: "http://api.test", APIPath: "/apis", Transport: server, QPS: -1,
		ContentConfig: rest.ContentConfig{GroupVersion: &group, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// wait waits for n calls.
func (a *api) wait(t *testing.T, n int) {
	t.Helper()
	patience := time.After(20 * time.Second)
	for range n {
		select {
		case <-a.called:
		case <-patience:
			t.Fatalf("only %v", a.calls)
		}
	}
}

// reasons are those of the status, in order.
func (a *api) reasons() (list []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.route.Status.Parents {
		list = append(list, p.Conditions[0].Reason)
	}
	return list
}

func (a *api) now() *gatewayv1.HTTPRoute {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.route
}

func equal(t *testing.T, got []string, want string) {
	t.Helper()
	if strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWrite: what is wanted is written beside what others wrote, once this process leads; what is there already is not written again, and entries go
// with the last one that is wanted.
func TestWrite(t *testing.T) {
	a, w, lead := start(t)
	w.Status(ref, a.now(), &gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{parent("turnout.router/gateway", "Ours")}})
	equal(t, a.calls, "")
	lead()
	a.wait(t, 1)
	equal(t, a.reasons(), "Foreign Ours")
	w.Status(ref, a.now(), &gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{parent("turnout.router/gateway", "Ours")}})
	w.Status(ref, a.now(), nil)
	a.wait(t, 1)
	equal(t, a.reasons(), "Foreign")
	equal(t, a.calls, "PATCH PATCH")
}

// TestConflict: another's write in between is not lost, and ours follows it.
func TestConflict(t *testing.T) {
	a, w, lead := start(t)
	lead()
	old := a.now()
	a.mu.Lock()
	a.put(func(r *gatewayv1.HTTPRoute) {
		r.Status.Parents = append(r.Status.Parents, parent("third.test/c", "Third"))
	})
	a.mu.Unlock()
	w.Status(ref, old, &gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{parent("turnout.router/gateway", "Ours")}})
	a.wait(t, 3)
	equal(t, a.reasons(), "Foreign Third Ours")
	equal(t, a.calls, "PATCH GET PATCH")
}

// TestContention: another controller that takes our entry out again and again makes us write it ever more seldom, not all the time.
func TestContention(t *testing.T) {
	a, w, lead := start(t)
	lead()
	want := &gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{parent("turnout.router/gateway", "Ours")}}
	var at []time.Time
	for range 4 {
		w.Status(ref, a.now(), want)
		a.wait(t, 1)
		at = append(at, time.Now())
		a.mu.Lock()
		a.put(func(r *gatewayv1.HTTPRoute) { r.Status.Parents = r.Status.Parents[:1] })
		a.mu.Unlock()
	}
	if second, third, fourth := at[1].Sub(at[0]), at[2].Sub(at[1]), at[3].Sub(at[2]); second > firstPause || third < firstPause*9/10 || fourth < 2*firstPause*9/10 {
		t.Errorf("written again after %v, %v and %v", second, third, fourth)
	}
	equal(t, a.calls, "PATCH PATCH PATCH PATCH")
}

// TestRefused: what the API server does not take is asked once for each version of the object.
func TestRefused(t *testing.T) {
	a, w, lead := start(t)
	a.invalid = true
	lead()
	want := &gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{parent("turnout.router/gateway", "Ours")}}
	w.Status(ref, a.now(), want)
	a.wait(t, 1)
	w.Status(ref, a.now(), want)
	a.mu.Lock()
	a.invalid = false
	a.put(func(*gatewayv1.HTTPRoute) {})
	a.mu.Unlock()
	w.Status(ref, a.now(), want)
	a.wait(t, 1)
	equal(t, a.reasons(), "Foreign Ours")
	equal(t, a.calls, "PATCH PATCH")
}

// TestLeadsAgain: what is to be written while another process leads is written when this one leads again, and what that one wrote is not written again.
func TestLeadsAgain(t *testing.T) {
	a, w, _ := start(t)
	lead := func() (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); w.Run(ctx) }()
		return func() { cancel(); <-ended }
	}
	want := func(reason string) *gatewayv1.RouteStatus {
		return &gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{parent("turnout.router/gateway", reason)}}
	}
	stop := lead()
	w.Status(ref, a.now(), want("First"))
	a.wait(t, 1)
	stop()
	w.Status(ref, a.now(), want("Second"))
	equal(t, a.reasons(), "Foreign First")
	stop = lead()
	a.wait(t, 1)
	equal(t, a.reasons(), "Foreign Second")
	stop()
	a.mu.Lock()
	a.put(func(r *gatewayv1.HTTPRoute) { r.Status.Parents[1].Conditions[0].Reason = "Third" })
	a.mu.Unlock()
	w.Status(ref, a.now(), want("Third"))
	stop = lead()
	w.Status(ref, a.now(), want("Fourth"))
	a.wait(t, 1)
	stop()
	equal(t, a.reasons(), "Foreign Fourth")
	equal(t, a.calls, "PATCH PATCH PATCH")
}

// TestReplacing: a patch takes out what the status has no more.
func TestReplacing(t *testing.T) {
	kind := gatewayv1.IPAddressType
	have := &gatewayv1.Gateway{Status: gatewayv1.GatewayStatus{Addresses: []gatewayv1.GatewayStatusAddress{{Type: &kind, Value: "192.0.2.1"}}}}
	patch, err := replacing(have, gatewayv1.GatewayStatus{})
	if err != nil {
		t.Fatal(err)
	}
	if v, there := patch["addresses"]; !there || v != nil {
		t.Errorf("%v", patch)
	}
}
