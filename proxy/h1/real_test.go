package h1

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/proxy"
	"turnout/routing"
)

// realRouter is the request path on real sockets: loops, pools, servers.
type realRouter struct {
	addr     netip.AddrPort
	store    *routing.Store
	registry *balancer.Registry
	workers  []*proxy.Worker
	loops    []*reactor.Loop
}

func startReal(t testing.TB, loops int, log proxy.AccessLog) *realRouter {
	t.Helper()
	r := &realRouter{store: routing.NewStore(), registry: balancer.NewRegistry()}
	group, err := reactor.NewGroup(loops, reactor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	servers := map[*reactor.Loop]*Server{}
	r.loops = group.Loops()
	for _, loop := range group.Loops() {
		pools, err := NewPools(PoolsConfig{Loop: loop})
		if err != nil {
			t.Fatal(err)
		}
		w, err := proxy.NewWorker(proxy.Config{Store: r.store, Clock: Clock{loop}, Upstreams: pools, AccessLog: log, Timeouts: proxy.DefaultTimeouts()})
		if err != nil {
			t.Fatal(err)
		}
		r.workers = append(r.workers, w)
		if servers[loop], err = NewServer(ServerConfig{Loop: loop, Worker: w}); err != nil {
			t.Fatal(err)
		}
	}
	r.addr, err = group.Listen("127.0.0.1:0", func(c *reactor.Conn) reactor.Handler { return servers[c.Loop()].Accept(c, false) })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- group.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// route publishes one route to the addresses.
func (r *realRouter) route(t testing.TB, host string, addrs ...string) {
	t.Helper()
	r.routeWith(t, host, nil, addrs...)
}

// routeWith lets change alter the route first.
func (r *realRouter) routeWith(t testing.TB, host string, change func(*routing.RouteSpec), addrs ...string) {
	t.Helper()
	spec := routing.RouteSpec{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: host, UID: host}, Host: host, Balance: balancer.RoundRobin,
		Policy: routing.Policy{ServerTimeout: 30 * time.Second, TunnelTimeout: time.Hour, ConnectTimeout: 5 * time.Second},
	}
	for _, a := range addrs {
		spec.Targets = append(spec.Targets, balancer.Target{ID: "ept:svc::" + a, Addr: netip.MustParseAddrPort(a), Weight: 1})
	}
	if change != nil {
		change(&spec)
	}
	table, rejected := routing.Compile(routing.Options{Registry: r.registry}, r.store.Load(), []routing.RouteSpec{spec})
	if len(rejected) > 0 {
		t.Fatalf("rejected: %v", rejected)
	}
	r.store.Publish(table)
}

// TestRealBodies sends bodies of many sizes both ways at once through real sockets,
// with a length and in chunks, from many clients, and compares every byte.
func TestRealBodies(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/length" {
			body, err := io.ReadAll(q.Body)
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			_, _ = w.Write(body)
			return
		}
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, q.Body)
	}))
	defer backend.Close()
	r := startReal(t, 2, nil)
	r.route(t, "app.test", backend.Listener.Addr().String())

	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	defer client.CloseIdleConnections()
	sizes := []int{0, 1, 100, 4095, 4096, 65535, 65536, 65537, 1 << 20, 5 << 20}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 1))
			for _, n := range sizes {
				for _, path := range []string{"/length", "/duplex"} {
					body := make([]byte, n)
					for i := range body {
						body[i] = byte(rng.Uint32())
					}
					var from io.Reader = bytes.NewReader(body)
					if path == "/duplex" {
						from = io.MultiReader(from) // no known length: chunks
					}
					req, err := http.NewRequest("POST", "http://"+r.addr.String()+path, from)
					if err != nil {
						t.Error(err)
						return
					}
					req.Host = "app.test"
					resp, err := client.Do(req)
					if err != nil {
						t.Errorf("%s %d: %v", path, n, err)
						return
					}
					got, err := io.ReadAll(resp.Body)
					resp.Body.Close()
					if err != nil || resp.StatusCode != 200 || sha256.Sum256(got) != sha256.Sum256(body) {
						t.Errorf("%s %d: status %d, %d bytes back, %v", path, n, resp.StatusCode, len(got), err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestRealUpgrade echoes through an upgraded connection, small and bulk.
func TestRealUpgrade(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(c, rw)
	}))
	defer backend.Close()
	r := startReal(t, 1, nil)
	r.route(t, "ws.test", backend.Listener.Addr().String())

	c, err := net.Dial("tcp", r.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: ws.test\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
	head := make([]byte, 0, 512)
	one := make([]byte, 1)
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		if _, err := c.Read(one); err != nil {
			t.Fatal(err, string(head))
		}
		head = append(head, one[0])
	}
	if !strings.HasPrefix(string(head), "HTTP/1.1 101 ") || !strings.Contains(string(head), "upgrade: echo\r\n") {
		t.Fatalf("head %q", head)
	}
	const total = 8 << 20 // beyond the point where splicing begins
	sum := sha256.New()
	go func() {
		rng := rand.New(rand.NewPCG(1, 2))
		buf := make([]byte, 32<<10)
		for sent := 0; sent < total; sent += len(buf) {
			for i := range buf {
				buf[i] = byte(rng.Uint32())
			}
			sum.Write(buf)
			if _, err := c.Write(buf); err != nil {
				t.Error(err)
				return
			}
		}
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	got := sha256.New()
	n, err := io.Copy(got, c)
	if err != nil || n != total || !bytes.Equal(got.Sum(nil), sum.Sum(nil)) {
		t.Fatalf("%d of %d bytes came back, %v", n, total, err)
	}
}

func ok(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}
