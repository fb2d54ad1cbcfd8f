package gateways

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway"
	"turnout/controller/source"
)

// slow is an API server that takes no status of a route before the test is over.
type slow struct{ gateways chan string }

// RoundTrip implements http.RoundTripper.
func (s *slow) RoundTrip(q *http.Request) (*http.Response, error) {
	if strings.Contains(q.URL.Path, "/httproutes/") {
		<-q.Context().Done()
		return nil, errors.New("the test is over")
	}
	s.gateways <- q.URL.Path
	return answer(http.StatusOK, &gatewayv1.Gateway{TypeMeta: metav1.TypeMeta{APIVersion: gatewayv1.GroupVersion.String(), Kind: "Gateway"}}), nil
}

// TestCountsDoNotWait: what a Gateway says of its routes does not wait behind the statuses of these, however many there are.
func TestCountsDoNotWait(t *testing.T) {
	s := &slow{gateways: make(chan string, 10)}
	w := New(Config{Client: clientOf(t, s), Controller: "turnout.router/gateway", Gather: time.Millisecond})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	for i := range 10 * workers {
		key := source.Key{Namespace: "ns", Name: fmt.Sprint("r", i)}
		w.Status(gateway.Ref{Kind: "HTTPRoute", Key: key}, &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: key.Name}},
			&gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{parent("turnout.router/gateway", "Ours")}})
	}
	key := source.Key{Namespace: "ns", Name: "gw"}
	w.Status(gateway.Ref{Kind: "Gateway", Key: key}, &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gw"}},
		&gatewayv1.GatewayStatus{Listeners: []gatewayv1.ListenerStatus{{Name: "http", AttachedRoutes: 10 * int32(workers)}}})
	select {
	case path := <-s.gateways:
		if !strings.HasSuffix(path, "/gateways/gw/status") {
			t.Error(path)
		}
	case <-time.After(20 * time.Second):
		t.Error("the Gateway waits behind its routes")
	}
}
