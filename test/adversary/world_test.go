package adversary

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/internal/server"
	"turnout/proxy"
	"turnout/routing"
)

var (
	plainPort = netip.MustParseAddrPort("192.0.2.1:80")
	tlsPort   = netip.MustParseAddrPort("192.0.2.1:443") // what comes here is passed through to pass.test, whatever it is
	evilPort  = netip.MustParseAddrPort("192.0.2.1:444") // the same to evilpass.test
)

// world is one run: a router, everybody around it, and what went wrong.
type world struct {
	t         testing.TB
	seed      uint64
	rng       *rand.Rand
	net       *memnet.Network
	path      *server.RequestPath
	store     *routing.Store
	registry  *balancer.Registry
	routes    map[string]*routing.RouteSpec // by host
	hosts     []string                      // the same in a fixed order
	keys      map[string]bool               // of all pools there ever were
	began     int64
	calm      bool           // no new actions begin
	tokens    int            // given out
	refused   map[string]int // by token, by pods that recycle connections
	failed503 map[string]int // by token, by pods that answer 503 first
	dropped   time.Duration  // when a pod dropped a request last
	asks      []*ask
	byToken   map[string]*ask // the same
	failed    int             // of bystanders, with a permitted 502
	answered  int             // of bystanders, as expected
	failures  []string
}

// newWorld assembles the router and everybody around it.
func newWorld(t testing.TB, seed uint64) *world {
	w := &world{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0x616476)), net: memnet.New(seed),
		store: routing.NewStore(), registry: balancer.NewRegistry(), routes: map[string]*routing.RouteSpec{}, keys: map[string]bool{}, byToken: map[string]*ask{}, refused: map[string]int{}, failed503: map[string]int{},
	}
	w.began = w.net.Now()
	w.registry.SetClock(clock{w.net})
	w.assemble(1 + w.n(2))
	if w.chance(25) {
		w.net.SplitRandom(1 + w.n(4000))
	}
	if w.chance(25) {
		w.net.WriteLimitRandom(1 + w.n(20000))
	}
	w.startPods()
	w.publish()
	return w
}

// clock gives the balancer virtual time.
type clock struct{ net *memnet.Network }

// assemble makes the router on so many loops of the network, and its ports.
func (w *world) assemble(loops int) {
	var err error
	w.path, err = server.NewRequestPath(server.Config{
		Loops: loops, Store: w.store, Registry: w.registry,
		Panicked: func(where string, v any, stack []byte) { w.failf("%s: %v\n%s", where, v, stack) },
		Proxy:    proxy.Config{AccessLog: story{w}, Seed: w.seed<<1 + 1, Compression: proxy.NewCompression("text/compressible"), KeptBodies: w.keptBodies()},
	}, func(loops int, cfg reactor.Config) (made []*reactor.Loop, _ error) {
		for range loops {
			made = append(made, reactor.NewOn(w.net, cfg))
		}
		return made, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	pass := func(host string) func(*reactor.Conn) reactor.Handler {
		return func(c *reactor.Conn) reactor.Handler {
			if d := w.store.Load().SNI(host); d.Passthrough != nil {
				return w.path.PerLoop(c.Loop()).Passthrough.Accept(c, d.Passthrough, proxy.Client{Secure: true, ServerName: host})
			}
			return w.path.AcceptHTTP(c)
		}
	}
	ports := []netip.AddrPort{plainPort, tlsPort, evilPort} // in this order each time
	for _, loop := range w.path.Loops() {
		for i, fn := range []func(*reactor.Conn) reactor.Handler{w.path.AcceptHTTP, pass("pass.test"), pass("evilpass.test")} {
			if _, err := loop.Listen(ports[i], fn); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// n is a number below k.
func (w *world) n(k int) int { return w.rng.IntN(k) }

// chance is true in so many of a hundred cases.
func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

// some is a number from a to b.
func (w *world) some(a, b int) int { return a + w.rng.IntN(b-a+1) }

// oneOf chooses one of a list.
func oneOf[T any](w *world, list ...T) T { return list[w.rng.IntN(len(list))] }

// pause is a time between two actions: mostly none to a few milliseconds, now and then long.
func (w *world) pause() time.Duration {
	switch k := w.n(100); {
	case k < 40:
		return 0
	case k < 70:
		return time.Duration(1+w.n(20)) * time.Millisecond
	case k < 90:
		return time.Duration(1+w.n(900)) * time.Millisecond
	case k < 98:
		return time.Duration(1+w.n(5)) * time.Second
	}
	return time.Duration(1+w.n(40)) * time.Second
}

// now is the time since the run began.
func (w *world) now() time.Duration { return time.Duration(w.net.Now() - w.began) }

func (w *world) failf(format string, args ...any) {
	w.failures = append(w.failures, fmt.Sprintf("at %v: ", w.now())+fmt.Sprintf(format, args...))
	if *steps {
		fmt.Println("FAILED", w.failures[len(w.failures)-1])
	}
}

func (w *world) logf(format string, args ...any) {
	if *steps {
		fmt.Printf("%v %s\n", w.now(), fmt.Sprintf(format, args...))
	}
}

// token is a word that no other request has.
func (w *world) token() string {
	w.tokens++
	return fmt.Sprintf("q%d-%dz", w.seed, w.tokens)
}

// isToken reports that a word was given out, whole: pods of the adversary say two things at once now and then.
func (w *world) isToken(word string) bool {
	rest, ok := strings.CutPrefix(word, fmt.Sprintf("q%d-", w.seed))
	n, err := strconv.Atoi(strings.TrimSuffix(rest, "z"))
	return ok && strings.HasSuffix(rest, "z") && err == nil && n <= w.tokens
}

// digest is the same for the same course of things.
func (w *world) digest() uint64 {
	h := fnv.New64a()
	for i := range w.net.Conns() {
		up, down := w.net.Traffic(i)
		fmt.Fprintln(h, up, down)
	}
	fmt.Fprintln(h, w.tokens, w.answered, w.failures)
	return h.Sum64()
}

// adversity is how long the adversary goes on.
const adversity = 12 * time.Second

// live lets everybody act until the adversary is done.
func (w *world) live() {
	for range w.some(2, 5) {
		w.startBystander()
	}
	for range w.some(2, 8) {
		w.net.After(w.pause(), w.startAdversary)
	}
	w.startPresser()
	w.startLogins()
	w.net.After(w.pause(), w.change)
	w.net.Advance(adversity)
	w.calm = true
}

// story tells what became of requests.
type story struct{ w *world }

// Log implements proxy.AccessLog.
func (s story) Log(rec *proxy.Record) {
	s.w.logf("logged: %s %s%.30s: %d %v %s", rec.Method, rec.Host, rec.Target, rec.Status, rec.Reason, rec.Detail)
}
