package lease

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
)

// leaseAPI is an API server with one Lease, without a network.
type leaseAPI struct {
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
}

// wire is how one process reaches it.
type wire struct {
	api *leaseAPI
	cut atomic.Bool
}

func answer(status int, object any) *http.Response {
	text, err := json.Marshal(object)
	if err != nil {
		status = http.StatusInternalServerError
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(text)))}
}

func failure(status int, reason string) *http.Response {
	return answer(status, map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "code": status})
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(q *http.Request) (*http.Response, error) {
	if w.cut.Load() {
		return nil, errors.New("the network is cut")
	}
	a := w.api
	a.mu.Lock()
	defer a.mu.Unlock()
	if q.Method == http.MethodGet {
		if a.lease == nil {
			return failure(http.StatusNotFound, "NotFound"), nil
		}
		return answer(http.StatusOK, a.lease), nil
	}
	lease := new(coordinationv1.Lease)
	if err := json.NewDecoder(q.Body).Decode(lease); err != nil {
		return nil, err
	}
	switch {
	case q.Method == http.MethodPost && a.lease != nil:
		return failure(http.StatusConflict, "AlreadyExists"), nil
	case q.Method == http.MethodPut && lease.ResourceVersion != a.lease.ResourceVersion:
		return failure(http.StatusConflict, "Conflict"), nil
	}
	a.version++
	lease.ResourceVersion = strconv.Itoa(a.version)
	lease.APIVersion, lease.Kind = "coordination.k8s.io/v1", "Lease"
	a.lease = lease
	return answer(http.StatusOK, lease), nil
}

// candidate is a process that wants to lead.
type candidate struct {
	wire    *wire
	leads   atomic.Bool
	stop    context.CancelFunc
	stopped chan struct{}
}

// stand starts a candidate. No two lead at a time.
func stand(t *testing.T, a *leaseAPI, name string, leaders *atomic.Int32) *candidate {
	t.Helper()
	c := &candidate{wire: &wire{api: a}, stopped: make(chan struct{})}
	client, err := NewClient(&rest.Config{Host: "http://api.test", Transport: c.wire, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Config{Client: client, Namespace: "ns", Name: "lease", Identity: name})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	c.stop = stop
	go func() {
		defer close(c.stopped)
		if err := e.Run(ctx, func(ctx context.Context) error {
			if leaders.Add(1) > 1 {
				t.Errorf("%s leads while another does", name)
			}
			c.leads.Store(true)
			<-ctx.Done()
			c.leads.Store(false)
			leaders.Add(-1)
			return nil
		}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}()
	return c
}

// TestElection: one process leads; another takes over, at once when the first ends, and when it is silent as soon as it is certain that it has stopped.
func TestElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leaders atomic.Int32
		a := new(leaseAPI)
		first := stand(t, a, "first", &leaders)
		<-time.After(leasePause)
		second := stand(t, a, "second", &leaders)
		<-time.After(time.Minute)
		if !first.leads.Load() || second.leads.Load() {
			t.Fatalf("first leads: %t, second: %t", first.leads.Load(), second.leads.Load())
		}
		first.wire.cut.Store(true)
		<-time.After(leaseDeadline + leasePause)
		if first.leads.Load() {
			t.Error("who cannot renew the lease leads on")
		}
		<-time.After(leaseDuration)
		if !second.leads.Load() {
			t.Fatal("nobody takes over from who is silent")
		}
		first.wire.cut.Store(false)
		<-time.After(time.Minute)
		if first.leads.Load() || !second.leads.Load() {
			t.Error("the lease is taken from who holds it")
		}
		second.stop()
		<-second.stopped
		<-time.After(2 * leasePause)
		if !first.leads.Load() {
			t.Error("a lease that was released is not taken at once")
		}
		first.stop()
		<-first.stopped
		if n := *a.lease.Spec.LeaseTransitions; n != 2 {
			t.Errorf("%d transitions", n)
		}
	})
}
