package shards

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"turnout/test/cluster"
	"turnout/test/cluster/load"
)

func resource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "turnout.router", Version: "v1alpha1", Resource: name}
}

// text is a field of an object, "" without one.
func text(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...) // what it is not is not there
	return s
}

// seen is the Routers and RouteBindings of the cluster as a watch has them.
type seen struct{ routers, bindings cache.Store }

// watchAll watches Routers and RouteBindings for as long as the test runs.
func watchAll(t *testing.T) *seen {
	t.Helper()
	factory := dynamicinformer.NewDynamicSharedInformerFactory(shared.objects, 0)
	routers, bindings := factory.ForResource(resource("routers")).Informer(), factory.ForResource(resource("routebindings")).Informer()
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	return &seen{routers.GetStore(), bindings.GetStore()}
}

func objects(in cache.Store) (all []*unstructured.Unstructured) {
	for _, o := range in.List() {
		all = append(all, o.(*unstructured.Unstructured))
	}
	return all
}

// names are what DNS says at a time: the addresses of each host, and all hosts.
type names struct {
	addresses map[string][]string
	hosts     []string
}

// resolve makes of Routers and RouteBindings what a DNS server makes of them: a host leads to the Routers whose binding is serving.
func (s *seen) resolve() *names {
	addresses := make(map[string][]string)
	for _, r := range objects(s.routers) {
		addresses[r.GetName()], _, _ = unstructured.NestedStringSlice(r.Object, "status", "addresses")
	}
	n := &names{addresses: make(map[string][]string)}
	for _, b := range objects(s.bindings) {
		if text(b, "status", "phase") != "Serving" {
			continue
		}
		host := text(b, "spec", "dns")
		if n.addresses[host] == nil {
			n.hosts = append(n.hosts, host)
		}
		n.addresses[host] = append(n.addresses[host], addresses[text(b, "spec", "router")]...)
	}
	return n
}

// ttl is how long clients keep what DNS has said, as the Routers of these tests have it.
const ttl = time.Second

// traffic is clients that ask for all routes without pause where DNS says that they are.
type traffic struct {
	from    cluster.Pod
	seen    *seen
	stop    context.CancelFunc
	follows sync.WaitGroup
	names   atomic.Pointer[names]
	clients load.Clients
}

// pace is between two requests of a client.
const pace = 2 * time.Millisecond

// startLoad starts clients of three kinds: with a connection for each request, with connections that are kept, and with one host and one connection for as
// long as the router lets it be.
func startLoad(t *testing.T, s *seen, from cluster.Pod) *traffic {
	t.Helper()
	l := &traffic{from: from, seen: s}
	ctx, stop := context.WithCancel(t.Context())
	l.stop = stop
	first := s.resolve()
	l.names.Store(first)
	l.follows.Go(func() { l.follow(ctx) })
	for _, fresh := range []bool{true, false} {
		for range 2 {
			l.run(ctx, fresh)
		}
	}
	for i := range 8 {
		host := first.hosts[i*len(first.hosts)/8]
		l.stay(ctx, host)
	}
	return l
}

// follow asks DNS again when the TTL is over.
func (l *traffic) follow(ctx context.Context) {
	tick := time.NewTicker(ttl)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l.names.Store(l.seen.resolve())
	}
}

// client is one whose connections lead where address says at the time they are made.
func (l *traffic) client(address func() string) *http.Client {
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 4, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return l.from.Dial(ctx, network, net.JoinHostPort(address(), strconv.Itoa(httpPort)))
	}}}
}

func (l *traffic) run(ctx context.Context, fresh bool) {
	clients := make(map[string]*http.Client)
	l.clients.Go(ctx, pace, func(ctx context.Context) error {
		n := l.names.Load()
		host := n.hosts[rand.IntN(len(n.hosts))]
		all := n.addresses[host]
		if len(all) == 0 {
			return fmt.Errorf("%s has no address", host)
		}
		address := all[rand.IntN(len(all))]
		if clients[address] == nil {
			clients[address] = l.client(func() string { return address })
			clients[address].Transport.(*http.Transport).DisableKeepAlives = fresh
		}
		_, err := load.Ask(ctx, clients[address], host)
		return err
	})
}

// stay asks for one host, on one connection as long as the router lets it be.
func (l *traffic) stay(ctx context.Context, host string) {
	c := l.client(func() string {
		all := l.names.Load().addresses[host]
		if len(all) == 0 {
			return "192.0.2.1" // documentation's: nobody
		}
		return all[rand.IntN(len(all))]
	})
	l.clients.Go(ctx, pace, func(ctx context.Context) error {
		_, err := load.Ask(ctx, c, host)
		return err
	})
}

// end stops the clients. No request may have failed.
func (l *traffic) end(t *testing.T) {
	t.Helper()
	l.stop()
	l.follows.Wait()
	if asked, _ := l.clients.Wait(t); asked < 100 {
		t.Errorf("only %d requests of clients", asked)
	}
}
