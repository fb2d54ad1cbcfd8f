package gateways

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway"
	"turnout/controller/source"
)

// crowd is an API server with many HTTPRoutes, of which each write and read fails in one way or another at first.
type crowd struct {
	mu     sync.Mutex
	routes map[string]*gatewayv1.HTTPRoute
	asked  map[string]int
	moved  chan struct{} // closed and replaced by each write
}

// RoundTrip implements http.RoundTripper.
func (c *crowd) RoundTrip(q *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := path.Base(strings.TrimSuffix(q.URL.Path, "/status"))
	r := c.routes[name]
	c.asked[name]++
	switch n := c.asked[name]; {
	case r == nil:
		return failure(http.StatusNotFound, metav1.StatusReasonNotFound), nil
	case n == 1:
		return nil, errors.New("connection reset by peer")
	case n == 2:
		return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError), nil
	case n == 3:
		return failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), nil
	case q.Method == http.MethodGet:
		return answer(http.StatusOK, r), nil
	}
	patch := new(gatewayv1.HTTPRoute)
	if err := json.NewDecoder(q.Body).Decode(patch); err != nil {
		return nil, err
	}
	if patch.ResourceVersion != r.ResourceVersion {
		return failure(http.StatusConflict, metav1.StatusReasonConflict), nil
	}
	next := r.DeepCopy()
	next.Status = patch.Status
	c.put(name, next)
	return answer(http.StatusOK, next), nil
}

// put stores a route as another version. c.mu is held.
func (c *crowd) put(name string, r *gatewayv1.HTTPRoute) {
	version, _ := strconv.Atoi(r.ResourceVersion)
	r.ResourceVersion = strconv.Itoa(version + 1)
	c.routes[name] = r
	close(c.moved)
	c.moved = make(chan struct{})
}

// wrong says of some route whose status is not the last one that was wanted, "" if there is none.
func (c *crowd) wrong(last string) (string, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, r := range c.routes {
		if len(r.Status.Parents) != 1 || r.Status.Parents[0].Conditions[0].Reason != last {
			return fmt.Sprintf("%s has %+v", name, r.Status.Parents), c.moved
		}
	}
	return "", nil
}

// TestNothingIsLost: 300 routes change again and again while the API server fails, and others write them; in the end each has the status that is wanted
// last, whatever became of those in between.
func TestNothingIsLost(t *testing.T) {
	const many, turns = 300, 10
	c := &crowd{routes: make(map[string]*gatewayv1.HTTPRoute), asked: make(map[string]int), moved: make(chan struct{})}
	w := New(Config{Client: clientOf(t, c), Controller: "turnout.router/gateway", Gather: time.Millisecond})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	for turn := range turns {
		for _, i := range rand.Perm(many) {
			name := fmt.Sprint("r", i)
			c.mu.Lock()
			r := c.routes[name]
			if r == nil {
				r = &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: "1"}}
				r.TypeMeta = metav1.TypeMeta{APIVersion: gatewayv1.GroupVersion.String(), Kind: "HTTPRoute"}
			}
			next := r.DeepCopy()
			next.Generation++
			c.put(name, next)
			c.mu.Unlock()
			w.Status(gateway.Ref{Kind: "HTTPRoute", Key: source.Key{Namespace: "ns", Name: name}}, next,
				&gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{parent("turnout.router/gateway", fmt.Sprint("Turn", turn))}})
		}
	}
	patience := time.After(60 * time.Second)
	for {
		text, moved := c.wrong(fmt.Sprint("Turn", turns-1))
		if text == "" {
			return
		}
		select {
		case <-moved:
		case <-patience:
			t.Fatal(text)
		}
	}
}
