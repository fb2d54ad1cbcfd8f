package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"turnout/balancer"
	"turnout/controller/source"
	"turnout/routing"
)

// api is a cluster with routes and secrets that anybody may change at any time. It
// delivers secrets that are watched, each from a goroutine of its own, as late as it
// pleases, but the latest state last.
type api struct {
	*testing.T
	sink    source.Sink
	mu      sync.Mutex
	idle    sync.Cond // all watches have delivered
	secrets map[source.Key]source.Event
	watches map[source.Key]*watch
	routes  map[string]*routev1.Route
	pending int               // watches with something to deliver
	calls   int               // of Watch and Forget
	good    map[string]string // the certificate in each secret that has one
	version atomic.Int64      // of the latest certificate
	spare   [3]string         // a certificate, its key, and another key
	ended   sync.WaitGroup
}

// watch is one secret somebody wants to know.
type watch struct {
	key  source.Key
	news bool // something is to be delivered
	stop bool
	wake *sync.Cond
}

func newAPI(t *testing.T) *api {
	a := &api{T: t, secrets: make(map[source.Key]source.Event), watches: make(map[source.Key]*watch), good: make(map[string]string), routes: make(map[string]*routev1.Route)}
	a.idle.L = &a.mu
	a.spare[0], a.spare[1] = keyPair(t, "x")
	_, a.spare[2] = keyPair(t, "x")
	return a
}

func (a *api) Watch(key source.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	if a.watches[key] != nil {
		a.Errorf("%s is watched already", key)
	}
	w := &watch{key: key, wake: sync.NewCond(&a.mu)}
	a.watches[key] = w
	a.notify(key)
	a.ended.Add(1)
	go a.deliver(w)
}

func (a *api) Again(source.Key) {}

func (a *api) Forget(key source.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	w := a.watches[key]
	if w == nil {
		a.Errorf("%s is not watched", key)
		return
	}
	w.stop = true
	w.wake.Signal()
	delete(a.watches, key)
}

// notify makes a watch deliver. mu is held.
func (a *api) notify(key source.Key) {
	if w := a.watches[key]; w != nil && !w.news {
		w.news = true
		a.pending++
		w.wake.Signal()
	}
}

// deliver runs until the watch is forgotten; what it had to deliver then may still come.
func (a *api) deliver(w *watch) {
	defer a.ended.Done()
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		for !w.news && !w.stop {
			w.wake.Wait()
		}
		if w.news && a.watches[w.key] != nil && a.watches[w.key] != w {
			w.news = false // a later watch tells
			a.pending--
		}
		if w.news {
			w.news = false
			a.sink.Event(a.state(w.key))
			a.pending--
		}
		a.idle.Broadcast()
		if w.stop {
			return
		}
	}
}

// state returns the event that says what a secret is. mu is held.
func (a *api) state(key source.Key) source.Event {
	if e, ok := a.secrets[key]; ok {
		return e
	}
	return gone(source.Secret, key.Name)
}

// change changes a secret in one of the ways secrets change.
func (a *api) change(name, how string) {
	version := a.version.Add(1)
	cert, key := a.spare[0], a.spare[1]
	e := gone(source.Secret, name)
	switch how {
	case "good":
		cert, key = keyPair(a, fmt.Sprintf("%s#%d", name, version))
		e = aSecret(name, corev1.SecretTypeTLS, cert, key)
	case "torn":
		e = aSecret(name, corev1.SecretTypeTLS, cert, a.spare[2])
	case "junk":
		e = aSecret(name, corev1.SecretTypeTLS, "junk", key)
	case "opaque":
		e = aSecret(name, corev1.SecretTypeOpaque, cert, key)
	case "denied":
		e.Err = errDenied
	case "failed":
		e.Err = errors.New("cannot read secret: connection refused")
	case "gone":
	default:
		panic("BUG: " + how)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if how == "good" {
		a.good[name] = fmt.Sprintf("%s#%d", name, version)
	} else {
		delete(a.good, name)
	}
	a.secrets[e.Key] = e
	a.notify(e.Key)
}

// route changes a route and delivers it.
func (a *api) route(name string, change func(*routev1.Route)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var o *routev1.Route
	if before := a.routes[name]; before != nil {
		o = before.DeepCopy()
	} else {
		o = aRoute(name, name+".test", 0, edge("", "")).Object.(*routev1.Route)
		o.UID = types.UID(strconv.Itoa(int(a.version.Add(1))))
	}
	change(o)
	a.routes[name] = o
	a.sink.Event(event(source.Route, o))
}

func (a *api) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.routes, name)
	a.sink.Event(gone(source.Route, name))
}

// settle waits until nothing is on its way.
func (a *api) settle(ctx context.Context, c *Controller) {
	a.Helper()
	for {
		a.mu.Lock()
		for a.pending > 0 {
			a.idle.Wait()
		}
		calls := a.calls
		a.mu.Unlock()
		if err := c.Wait(ctx); err != nil {
			a.Fatal(err)
		}
		a.mu.Lock()
		quiet := a.pending == 0 && a.calls == calls
		a.mu.Unlock()
		if quiet {
			return
		}
	}
}

// guard is a status.Reporter that looks at each table after it was published.
type guard struct {
	*testing.T
	store  *routing.Store
	latest map[string]int // the newest version served of each secret
	steady bool           // the route "steady" has been served
	over   atomic.Bool    // it may go
}

func (g *guard) Observe(*routev1.Route)  { g.table() }
func (g *guard) Withdraw(*routev1.Route) { g.table() }

// table looks at all routes of the table: none has the certificate of a secret of
// another, none goes back to an older one, and what nobody took away is there.
func (g *guard) table() {
	steady := false
	for r := range g.store.Load().Routes {
		steady = steady || r.Name() == "steady"
		secret, version := g.leaf(r)
		if secret == "" {
			continue
		}
		if !strings.HasPrefix(secret, r.Name()+"-") {
			g.Errorf("route %s has the certificate of %s", r.Name(), secret)
		}
		if version < g.latest[secret] {
			g.Errorf("route %s went back from version %d of %s to %d", r.Name(), g.latest[secret], secret, version)
		}
		g.latest[secret] = version
	}
	if g.steady && !steady && !g.over.Load() {
		g.Error("the steady route is not served")
	}
	g.steady = g.steady || steady
}

// leaf returns the secret a route has its certificate from, and the version.
func (g *guard) leaf(r *routing.Route) (string, int) {
	c := g.store.Load().SNI(r.Host()).Certificate
	if c == nil {
		return "", 0
	}
	secret, text, _ := strings.Cut(c.Leaf.Subject.CommonName, "#")
	version, err := strconv.Atoi(text)
	if err != nil {
		g.Errorf("certificate %q", c.Leaf.Subject.CommonName)
	}
	return secret, version
}

// Report looks that what is reported of a route is what is served.
func (g *guard) Report(route *routev1.Route, entry *routev1.RouteIngress) {
	g.table()
	want := ""
	if ref := route.Spec.TLS.ExternalCertificate; ref != nil {
		want = ref.Name
	}
	admitted := entry.Conditions[0].Status == "True"
	for r := range g.store.Load().Routes {
		if r.Name() != route.Name {
			continue
		}
		if !admitted || r.Key().UID != string(route.UID) || r.Host() != entry.Host {
			g.Errorf("%+v is reported of route %+v", entry, r.Key())
		}
		if secret, _ := g.leaf(r); secret != want {
			g.Errorf("route %s refers to %q and has %q", route.Name, want, secret)
		}
		return
	}
	if admitted {
		g.Errorf("route %s is reported as served and is not", route.Name)
	}
}

// TestSecretsUnderFire changes routes and the secrets they refer to from many
// goroutines, and looks at every table, every status and what remains.
func TestSecretsUnderFire(t *testing.T) {
	a := newAPI(t)
	store := routing.NewStore()
	g := &guard{T: t, store: store, latest: make(map[string]int)}
	c, err := New(Config{
		Store: store, Routing: routing.Options{Registry: balancer.NewRegistry()}, Secrets: a, Status: g,
		HoldOff: time.Microsecond, Ceiling: time.Millisecond, SweepEvery: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	a.sink = c.Sink("test")
	ctx := run(t, c)
	const routes, rounds = 6, 120
	a.change("steady-a", "good")
	a.route("steady", func(o *routev1.Route) { referring("steady-a")(o) })
	a.sink.Synced()
	<-c.Ready()

	// Without a pause now and then most changes would be overtaken before they are seen.
	pause := func(rnd *rand.Rand) {
		if rnd.IntN(8) == 0 {
			return
		}
		if err := c.Wait(ctx); err != nil {
			t.Error(err)
		}
	}
	var fire sync.WaitGroup
	for i := range routes {
		name := fmt.Sprint("r", i)
		fire.Add(2)
		go func() {
			defer fire.Done()
			a.shootSecrets(rand.New(rand.NewPCG(uint64(i), 1)), name, rounds, pause)
		}()
		go func() {
			defer fire.Done()
			a.shootRoute(rand.New(rand.NewPCG(uint64(i), 2)), name, rounds, pause)
		}()
	}
	hows := []string{"good", "torn", "junk", "failed"}
	for i := range rounds {
		pause(rand.New(rand.NewPCG(uint64(i), 3)))
		a.change("steady-a", hows[i%len(hows)])
		a.route("steady", func(o *routev1.Route) { o.Labels = map[string]string{"i": strconv.Itoa(i)} })
	}
	fire.Wait()

	a.change("steady-a", "good")
	for i := range routes {
		for n, secret := range []string{"a", "b", "c"} {
			a.change(fmt.Sprintf("r%d-%s", i, secret), []string{"good", "gone", "good", "denied"}[(i+n)%4])
		}
	}
	a.settle(ctx, c)
	a.compare(c, g)

	g.over.Store(true)
	for name := range maps.Clone(a.routes) {
		a.remove(name)
	}
	a.settle(ctx, c)
	if n := len(a.watches); n != 0 {
		t.Fatalf("%d secrets are watched without routes", n)
	}
	a.ended.Wait()
}

// shootSecrets changes the secrets of a route.
func (a *api) shootSecrets(rnd *rand.Rand, route string, rounds int, pause func(*rand.Rand)) {
	hows := []string{"good", "good", "good", "torn", "junk", "opaque", "denied", "failed", "gone"}
	for range rounds {
		pause(rnd)
		a.change(route+"-"+[]string{"a", "b", "c"}[rnd.IntN(3)], hows[rnd.IntN(len(hows))])
	}
}

// shootRoute changes a route, and at times removes it or makes it again.
func (a *api) shootRoute(rnd *rand.Rand, name string, rounds int, pause func(*rand.Rand)) {
	for range rounds {
		pause(rnd)
		switch rnd.IntN(10) {
		case 0:
			a.remove(name)
		case 1:
			a.route(name, func(o *routev1.Route) { o.Spec.Host = fmt.Sprintf("%s-%d.test", name, rnd.IntN(2)) })
		case 2:
			a.route(name, func(o *routev1.Route) { o.Spec.TLS.ExternalCertificate = nil })
		case 3:
			a.route(name, func(o *routev1.Route) { o.UID = types.UID(strconv.Itoa(int(a.version.Add(1)))) })
		default:
			secret := name + "-" + []string{"a", "b", "c"}[rnd.IntN(3)]
			a.route(name, func(o *routev1.Route) { o.Spec.TLS.ExternalCertificate = &routev1.LocalObjectReference{Name: secret} })
		}
	}
}

// compare looks that the end is what the objects say, whatever went before.
func (a *api) compare(c *Controller, g *guard) {
	a.mu.Lock()
	defer a.mu.Unlock()
	watched := make(map[source.Key]bool)
	served := make(map[string]*routing.Route)
	for r := range g.store.Load().Routes {
		served[r.Name()] = r
	}
	for name, o := range a.routes {
		secret := ""
		if ref := o.Spec.TLS.ExternalCertificate; ref != nil {
			secret = ref.Name
			watched[source.Key{Namespace: "ns", Name: secret}] = true
		}
		shown, _ := c.Route("ns", name)
		condition := shown.Status.Ingress[0].Conditions[0]
		good := secret == "" || a.good[secret] != ""
		if (condition.Status == "True") != good || good && condition.Reason != "" || !good && condition.Reason != "ExternalCertificateValidationFailed" {
			a.Errorf("%s refers to %q, good %v: %+v", name, secret, good, condition)
		}
		if (served[name] != nil) != good {
			a.Errorf("%s refers to %q, good %v, served %v", name, secret, good, served[name] != nil)
		} else if good && secret != "" {
			if from, version := g.leaf(served[name]); fmt.Sprintf("%s#%d", from, version) != a.good[secret] {
				a.Errorf("%s has %s#%d, want %s", name, from, version, a.good[secret])
			}
		}
	}
	for key := range watched {
		if a.watches[key] == nil {
			a.Errorf("%s is not watched", key)
		}
	}
	if len(watched) != len(a.watches) {
		a.Errorf("%d secrets are watched, want %d", len(a.watches), len(watched))
	}
}
