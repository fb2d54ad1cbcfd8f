package server

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"turnout/internal/dns/zone"
)

func addresses(list string) []netip.Addr {
	var all []netip.Addr
	for _, a := range strings.Fields(list) {
		all = append(all, netip.MustParseAddr(a))
	}
	return all
}

const origin = "shard1.apps.test."

func shard1() zone.Spec {
	return zone.Spec{
		Origin: origin, Refresh: 3600, Retry: 60, Expire: 86400, TTL: 30, ServerTTL: 3600, NegativeTTL: 5,
		Servers: []zone.Server{{Name: "ns1." + origin, Addresses: addresses("127.0.0.1")}}, Addresses: addresses("10.0.0.1 10.0.0.2 2001:db8::1"),
		Names: []zone.Name{{Name: "moved." + origin, Addresses: addresses("10.0.0.9")}},
	}
}

func setOf(t testing.TB, serial uint32, specs ...zone.Spec) *zone.Set {
	t.Helper()
	var zones []*zone.Zone
	for _, spec := range specs {
		z, err := zone.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		zones = append(zones, z.WithSerial(serial))
	}
	set, err := zone.NewSet(zones...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// running is a server that runs until its test ends.
type running struct {
	*Server
	t    testing.TB
	stop func()

	mu     sync.Mutex
	events []Event
	moved  chan struct{}
}

// start runs a server with one zone, of serial 1.
func start(t testing.TB, cfg Config) *running {
	t.Helper()
	r := &running{t: t, moved: make(chan struct{})}
	cfg.Tell = func(e Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, e)
		close(r.moved)
		r.moved = make(chan struct{})
	}
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	var err error
	if r.Server, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	r.Publish(setOf(t, 1, shard1()))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended: %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// wait waits for an event of a kind, and returns it.
func (r *running) wait(kind EventKind) Event {
	r.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		r.mu.Lock()
		moved := r.moved
		for _, e := range r.events {
			if e.Kind == kind {
				r.mu.Unlock()
				return e
			}
		}
		r.mu.Unlock()
		select {
		case <-moved:
		case <-deadline:
			r.t.Fatalf("no event of kind %d", kind)
		}
	}
}

func question(name string, kind uint16) *dns.Msg {
	return new(dns.Msg).SetQuestion(dns.Fqdn(name), kind)
}

// ask asks the server over a network, udp or tcp.
func (r *running) ask(network string, q *dns.Msg) *dns.Msg {
	r.t.Helper()
	m, err := r.try(network, q)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *running) try(network string, q *dns.Msg) (*dns.Msg, error) {
	client := &dns.Client{Net: network, Timeout: 10 * time.Second, UDPSize: 4096}
	m, _, err := client.Exchange(q, r.Addr())
	return m, err
}
