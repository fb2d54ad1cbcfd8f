package server

import (
	"net/netip"
	"os"
	"runtime"
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/cgroup"
	"turnout/internal/problem"
	"turnout/internal/ratelimit"
	"turnout/internal/wire/http1"
	"turnout/proxy"
	"turnout/proxy/identity"
	"turnout/routing"
	"turnout/tlsmux"
)

// Config is what a Server is made from. The zero value serves HTTP and TLS as the router does by default, on no port.
type Config struct {
	// HTTPAddr is where plain HTTP is served, HTTPSAddr where TLS is: host:port, port 0 for one of the system's choice; "" = such
	// a port is not opened.
	HTTPAddr, HTTPSAddr string
	// Ports are served besides: what they lead to are listeners of the table, see routing.ListenerSpec.
	Ports []Port
	Loops int // event loops; 0 = one per processor that the process may use by the CPU limit of its control group

	Store    *routing.Store     // whose table is served; nil = a new one, see RequestPath.Store
	Registry *balancer.Registry // that of the store's tables, whose endpoints are checked; nil = a new one, see RequestPath.Registry
	Rates    *ratelimit.Memory  // that of the store's tables; nil = none, there is nothing to sweep

	// Proxy is what exchanges go by. New sets Store, Upstreams, Bounds, RouteConnections, Crowded, Overloaded and Panicked;
	// Timeouts that are all zero are proxy.DefaultTimeouts, and each loop adds its index to a Seed;
	// without a Clock it is that of the loop.
	Proxy proxy.Config
	// TLS is what TLS towards clients looks like. New sets Protocols.
	TLS        tlsmux.PolicyConfig
	StrictSNI  bool           // clients whose server name no certificate covers are refused
	Identities identity.Rules // of clients that are asked for certificates

	ProxyProtocol bool           // every connection begins with a PROXY header
	ProxyTrusted  []netip.Prefix // whose header is believed; nil = everybody's

	UDPIdle time.Duration // silence in both directions that ends the session of a client of UDP; 0 = a minute

	Limits       Limits
	Adjust       http1.AdjustName // how names of fields are spelled; nil = in lower case
	IgnoreProbes bool             // connections that never sent a byte end without an answer
	DontLogNull  bool             // the access log is not given those
	KeepIdle     bool             // idle connections get one more answer when the server stops

	// OwnsProcess says that the process is there for this Server alone, which then has the garbage collector and the scheduler work
	// for it: GOMAXPROCS, GOGC, memory that is returned, a table of descriptors allocated at the start. false = it leaves them as
	// they are.
	OwnsProcess bool
	MemoryLimit uint64 // of the process, in bytes, see memory.SetLimit; 0 = none

	Inherit func(name string) []int // listening sockets of the process before this one, by SocketName; nil = none
	Bounds  *bound.Counts           // counts bounds that are reached; nil = nobody does
	Log     Logger                  // nil = nothing is logged
	// Problems says which endpoints get no requests; nil = nobody asks.
	Problems *problem.List
	// Panicked is called about each panic that the server recovered from, by any goroutine; nil = one in a second is logged.
	Panicked func(where string, v any, stack []byte)
}

// Limits bound what clients and routes may take of a server.
type Limits struct {
	Connections int // of clients that may be open; 0 = no bound but that of descriptors
	// RouteShare is which percentage of them one route may have when they run out; 0 or 100 = any number.
	RouteShare int
	// UDPSessions is how many clients of ports for UDP there may be at a time; with one more, the one that was silent for longest begins anew.
	// 0 = 65,536. There are no more than a quarter of the descriptors in any case.
	UDPSessions int
	HeldBytes   int // for what peers do not take or complete; 0 = a quarter of the memory limit, 256 MiB without one
	// BufferSize is how many bytes a head may have together with what is added to it, but at least half of it are for the head;
	// 0 = that of http1.Limits.
	BufferSize int
}

// complete returns cfg with defaults in the place of zero values.
func (cfg Config) complete() Config {
	if cfg.Log == nil {
		cfg.Log = func(Level, string, ...Field) {}
	}
	if cfg.Loops <= 0 {
		cfg.Loops = defaultLoops(runtime.GOMAXPROCS(0), cgroup.Processors(os.DirFS("/")))
	}
	if cfg.Store == nil {
		cfg.Store = routing.NewStore()
	}
	if cfg.Registry == nil {
		cfg.Registry = balancer.NewRegistry()
		cfg.Registry.SetClock(SystemClock{})
		cfg.Registry.SetBounds(cfg.Bounds)
	}
	if cfg.Proxy.Timeouts == (proxy.Timeouts{}) {
		cfg.Proxy.Timeouts = proxy.DefaultTimeouts()
	}
	return cfg
}

// SystemClock implements balancer.Clock.
type SystemClock struct{}

// Now implements balancer.Clock.
func (SystemClock) Now() time.Time { return time.Now() }

// AfterFunc implements balancer.Clock.
func (SystemClock) AfterFunc(d time.Duration, fn func()) { time.AfterFunc(d, fn) }
