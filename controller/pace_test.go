package controller

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"turnout/balancer"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// TestPace is when changes are handled, in virtual time: at once after a pause, and those that come while others are being
// handled once more, together, when the interval is over.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = time.Second
		store := routing.NewStore()
		var handled []string
		during := func(*routev1.Route) {}
		c, err := New(Config{
			Store: store, Routing: routing.Options{Registry: balancer.NewRegistry()}, HoldOff: interval, Ceiling: time.Hour,
			translating: func(o *routev1.Route) { handled = append(handled, o.Name); during(o) },
		})
		if err != nil {
			t.Fatal(err)
		}
		sink := c.Sink("test")
		sink.Synced()
		ctx := runFor(t, c, 2*time.Hour)
		<-c.Ready()
		took := func(id string, want time.Duration) {
			t.Helper()
			begin := time.Now()
			if err := c.Wait(ctx); err != nil || time.Since(begin) != want {
				t.Errorf("%s: handled after %v, %v; want %v", id, time.Since(begin), err, want)
			}
		}

		elapse(time.Hour)
		sink.Event(aRoute("a", "a.test", 0))
		took("none for a long time, then 1: immediate", 0)

		elapse(time.Hour / 2)
		during = func(o *routev1.Route) {
			if o.Name == "b" {
				sink.Event(aRoute("c", "c.test", 0))
				sink.Event(aRoute("d", "d.test", 0))
			}
		}
		handled = nil
		before := store.Load().Generation()
		sink.Event(aRoute("b", "b.test", 0))
		synctest.Wait()
		if !slices.Equal(handled, []string{"b"}) || store.Load().Generation() != before+1 {
			t.Errorf("change during a running handler: one more run after it, not before interval since start: %v are handled at once, generation %d after %d", handled, store.Load().Generation(), before)
		}
		took("change during a running handler: one more run after it, not before interval since start", interval)
		slices.Sort(handled)
		if !slices.Equal(handled, []string{"b", "c", "d"}) || store.Load().Generation() != before+2 {
			t.Errorf("change during a running handler: one more run after it, not before interval since start: %v are handled, generation %d after %d", handled, store.Load().Generation(), before)
		}
		elapse(10 * interval)
		synctest.Wait()
		if store.Load().Generation() != before+2 {
			t.Errorf("change during a running handler: one more run after it, not before interval since start: generation %d after %d, and nothing has changed", store.Load().Generation(), before)
		}
	})
}

// TestAppProtocol is what endpoints are spoken to in, by what their port says and where TLS ends.
func TestAppProtocol(t *testing.T) {
	ca, _ := keyPair(t, "ca.test")
	for _, tt := range []struct {
		id, appProtocol, termination string
		want                         protocol.Protocol
		alpn                         []protocol.Protocol // offered over TLS; nil = there is none
	}{
		{"appProtocol unknown-value, termination none: HTTP/1.1", "unknown-value", "", protocol.HTTP1, nil},
		{"appProtocol h2c, termination none: h2c", "h2c", "", protocol.HTTP2, nil},
		{"appProtocol kubernetes.io/h2c, termination none: h2c", "kubernetes.io/h2c", "", protocol.HTTP2, nil},
		{"appProtocol H2C, termination none: HTTP/1.1", "H2C", "", protocol.HTTP1, nil},
		{"edge", "h2c", "edge", protocol.HTTP2, nil},
		{"appProtocol h2c, termination reencrypt: TLS, ALPN negotiated", "h2c", "reencrypt", protocol.HTTP1, []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}},
		{"passthrough", "h2c", "passthrough", protocol.TCP, nil},
	} {
		t.Run(fmt.Sprint(tt.id, " ", tt.termination), func(t *testing.T) {
			r := newRig(t, Options{UpstreamALPN: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}})
			slice := aSlice("s-1", "s", "10.0.0.1")
			ports := slice.Object.(*discoveryv1.EndpointSlice).Ports
			ports[0].AppProtocol = &tt.appProtocol
			r.do(slice, aRoute("a", "a.test", 0, func(o *routev1.Route) {
				if tt.termination != "" {
					o.Spec.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationType(tt.termination)}
				}
				if tt.termination == "reencrypt" {
					o.Spec.TLS.DestinationCACertificate = ca
				}
			}))
			in := r.store.Load().Route(routing.RouteKey{Namespace: "ns", Name: "a", UID: "uid-a"})
			if in == nil || len(in.Pool().Servers()) != 1 {
				t.Fatalf("%s: the route is not served: %v", tt.id, in)
			}
			e := in.Pool().Servers()[0].Endpoint()
			var alpn []protocol.Protocol
			if e.TLS() != nil {
				alpn = e.TLS().ALPN
			}
			if e.Protocol() != tt.want || !slices.Equal(alpn, tt.alpn) {
				t.Errorf("%s: protocol %v, ALPN %v; want %v, %v", tt.id, e.Protocol(), alpn, tt.want, tt.alpn)
			}
		})
	}
}
