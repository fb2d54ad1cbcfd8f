package testkit

import (
	"testing"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/wire/protocol"
	"turnout/proxy"
	"turnout/proxy/h1"
	"turnout/proxy/h2"
	"turnout/proxy/tunnel"
	"turnout/proxy/upstream"
	"turnout/routing"
)

// LaneConfig is what a Lane needs; Loop and Store are required.
type LaneConfig struct {
	Loop      *reactor.Loop
	Store     *routing.Store
	Log       proxy.AccessLog // nil: none
	Secure    func(c *reactor.Conn, id *balancer.TLS, done func(error))
	Negotiate func(c *reactor.Conn, id *balancer.TLS, done func(spoken protocol.Protocol, err error))
	Change    []func(*proxy.Config) // of the worker
}

// Lane is the request path of one loop, on real sockets or in memory.
type Lane struct {
	Loop        *reactor.Loop
	Pools       *h1.Pools
	Pools2      *h2.Pools
	Worker      *proxy.Worker
	Server      *h1.Server // makes way for Server2 when a connection begins with the preface of HTTP/2
	Server2     *h2.Server
	Passthrough *tunnel.Passthrough
}

// NewLane assembles the packages of a loop.
func NewLane(t testing.TB, cfg LaneConfig) *Lane {
	t.Helper()
	l := &Lane{Loop: cfg.Loop}
	var err error
	if l.Pools, err = h1.NewPools(h1.PoolsConfig{Loop: cfg.Loop, Secure: cfg.Secure}); err != nil {
		t.Fatal(err)
	}
	if l.Pools2, err = h2.NewPools(h2.PoolsConfig{Loop: cfg.Loop, Adopt: l.Pools.Adopt, Secure: cfg.Negotiate}); err != nil {
		t.Fatal(err)
	}
	worker := proxy.Config{Store: cfg.Store, Clock: h1.Clock{Loop: cfg.Loop}, Upstreams: upstream.New(l.Pools, l.Pools2), AccessLog: cfg.Log, Timeouts: proxy.DefaultTimeouts()}
	for _, c := range cfg.Change {
		c(&worker)
	}
	if l.Worker, err = proxy.NewWorker(worker); err != nil {
		t.Fatal(err)
	}
	cfg.Loop.OnTrim(l.Worker.Trim)
	cfg.Loop.CountHeld(reactor.HeldBodies, l.Worker.Kept)
	if l.Server2, err = h2.NewServer(h2.ServerConfig{Loop: cfg.Loop, Worker: l.Worker}); err != nil {
		t.Fatal(err)
	}
	l.Server, err = h1.NewServer(h1.ServerConfig{
		Loop: cfg.Loop, Worker: l.Worker,
		HTTP2: func(c *reactor.Conn, client proxy.Client) reactor.Handler { return l.Server2.AcceptFrom(c, client) },
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Passthrough = &tunnel.Passthrough{Loop: cfg.Loop, Worker: l.Worker}
	return l
}
