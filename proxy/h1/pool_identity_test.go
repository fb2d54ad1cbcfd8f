package h1_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/proxy/h1"
	"turnout/routing"
)

// TestPoolIdentity: routes to one and the same address share a connection only if
// everything about how it is reached is the same.
func TestPoolIdentity(t *testing.T) {
	front, pod := netip.MustParseAddrPort("192.0.2.1:80"), netip.MustParseAddrPort("198.51.100.1:8080")
	n := memnet.New(1)
	loop := reactor.NewOn(n, reactor.Config{})
	store, registry := routing.NewStore(), balancer.NewRegistry()
	secured := map[string]int{} // connections by TLS identity
	pools, err := h1.NewPools(h1.PoolsConfig{Loop: loop, Secure: func(_ *reactor.Conn, id *balancer.TLS, done func(error)) {
		secured[id.Key]++
		done(nil) // what the bytes look like does not matter here
	}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := proxy.NewWorker(proxy.Config{Store: store, Clock: h1.Clock{Loop: loop}, Upstreams: pools, Timeouts: proxy.DefaultTimeouts()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h1.NewServer(h1.ServerConfig{Loop: loop, Worker: w})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loop.Listen(front, func(c *reactor.Conn) reactor.Handler { return s.Accept(c, false) }); err != nil {
		t.Fatal(err)
	}
	identities := map[string]*balancer.TLS{"plain.test": nil, "same.test": nil, "tenant.test": nil}
	for host, config := range map[string]balancer.TLSConfig{
		"unverified.test": {}, "sni.test": {SNI: "a"}, "alpn.test": {ALPN: []protocol.Protocol{protocol.HTTP1}}, "name.test": {ServerName: "a"},
	} {
		if identities[host], err = balancer.NewTLS(config); err != nil {
			t.Fatal(err)
		}
	}
	var specs []routing.RouteSpec
	for host, id := range identities {
		namespace := "ns"
		if host == "tenant.test" { // another tenant, the same address
			namespace = "other"
		}
		specs = append(specs, routing.RouteSpec{
			RouteKey: routing.RouteKey{Namespace: namespace, Name: host, UID: host}, Host: host,
			Policy:  routing.Policy{ServerTimeout: 30 * time.Second, TunnelTimeout: time.Hour, ConnectTimeout: 5 * time.Second},
			Targets: []balancer.Target{{ID: "ept:" + host, Addr: testaddr.Of(pod), Weight: 1, TLS: id}},
		})
	}
	table, rejected := routing.Compile(routing.Options{Registry: registry}, nil, specs)
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	store.Publish(table)
	hosts := make([]map[string]bool, 0) // that each connection carried
	n.Accept(pod, func(p *memnet.Peer) {
		seen := map[string]bool{}
		hosts = append(hosts, seen)
		p.OnData = func(p *memnet.Peer) {
			for request := p.TakeThrough("\r\n\r\n"); request != nil; request = p.TakeThrough("\r\n\r\n") {
				_, after, _ := bytes.Cut(request, []byte("host: "))
				host, _, _ := bytes.Cut(after, []byte("\r\n"))
				seen[string(host)] = true
				p.Write([]byte("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"))
			}
		}
	})
	for range 3 {
		for host := range identities {
			c := n.Connect(front)
			c.Write([]byte("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"))
			n.Run()
			if !bytes.HasPrefix(c.Received(), []byte("HTTP/1.1 200 ")) {
				t.Fatalf("%s: %q", host, c.Received())
			}
		}
	}
	for _, seen := range hosts {
		if shared := seen["plain.test"] || seen["same.test"]; len(seen) != 1 && !(shared && len(seen) == 2 && seen["plain.test"] && seen["same.test"]) {
			t.Errorf("one connection carried %v", seen)
		}
	}
	if len(hosts) != 6 || len(secured) != 4 {
		t.Errorf("%d connections, %d identities, want 6 and 4", len(hosts), len(secured))
	}
}
