package controller

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"turnout/controller/source"
)

// world is the latest event of each object, as a cluster has it.
type world struct {
	rnd    *rand.Rand
	pairs  [][2]string // certificates and keys
	events map[object]source.Event
}

// change returns the event of a random change, and remembers it. final leaves out what
// has an effect on what was there before: a secret that holds junk.
func (w *world) change(final bool) source.Event {
	pick := func(words ...string) string { return words[w.rnd.IntN(len(words))] }
	namespace := pick("n1", "n2", "n3")
	var e source.Event
	switch n := w.rnd.IntN(10); {
	case n < 5:
		e = w.route(namespace, pick)
	case n < 6:
		e = selected(namespace)
		if w.rnd.IntN(3) == 0 {
			e = unselected(namespace)
		}
	case n < 8:
		e = w.secret(pick("c1", "c2"), pick, final)
		e.Key.Namespace = namespace
	default:
		e = aSlice(pick("x1", "x2"), pick("s", "t"), fmt.Sprintf("10.0.0.%d", 1+w.rnd.IntN(9)))
		e.Key.Namespace = namespace
		if w.rnd.IntN(4) == 0 {
			e.Object = nil
		}
	}
	w.events[object{e.Kind, e.Key}] = e
	return e
}

func (w *world) route(namespace string, pick func(...string) string) source.Event {
	e := of(namespace, aRoute(pick("a", "b", "c", "d"), pick("h1.test", "h2.test", "h3.d.test", "h4.d.test"), w.rnd.IntN(5), func(o *routev1.Route) {
		o.Spec.Path = pick("", "", "/p")
		o.Spec.To.Name = pick("s", "t")
		o.Spec.WildcardPolicy = routev1.WildcardPolicyType(pick("None", "None", "Subdomain"))
		o.UID += types.UID(pick("", "2"))
		switch pick("plain", "edge", "external", "external", "passthrough") {
		case "edge":
			edge(w.pairs[0][0], w.pairs[w.rnd.IntN(2)][1])(o)
		case "external":
			referring(pick("c1", "c2"))(o)
		case "passthrough":
			o.Spec.TLS = &routev1.TLSConfig{Termination: "passthrough"}
		}
	}))
	if w.rnd.IntN(5) == 0 {
		e.Object = nil
	}
	return e
}

func (w *world) secret(name string, pick func(...string) string, final bool) source.Event {
	i := w.rnd.IntN(len(w.pairs))
	e := aSecret(name, corev1.SecretTypeTLS, w.pairs[i][0], w.pairs[i][1])
	switch how := pick("good", "good", "opaque", "gone", "denied", "torn"); {
	case how == "opaque":
		e = aSecret(name, corev1.SecretTypeOpaque, w.pairs[i][0], w.pairs[i][1])
	case how == "gone":
		e.Object = nil
	case how == "denied":
		e.Object, e.Err = nil, errDenied
	case how == "torn" && !final:
		e = aSecret(name, corev1.SecretTypeTLS, w.pairs[i][0], w.pairs[(i+1)%len(w.pairs)][1])
	}
	return e
}

// outcome returns what is served, with which servers and certificates, and what is reported.
func (r *rig) outcome() []string {
	var out []string
	for route := range r.store.Load().Routes {
		var servers []string
		for _, s := range route.Pool().Servers() {
			servers = append(servers, s.Endpoint().Addr().String())
		}
		out = append(out, fmt.Sprintf("%s/%s serves %s%s wildcard %v %v from %v", route.Namespace(), route.Name(), route.Host(), route.Path(),
			route.Wildcard(), route.Termination(), servers))
	}
	for _, route := range r.c.Routes() {
		for _, entry := range route.Status.Ingress {
			c := entry.Conditions[0]
			out = append(out, fmt.Sprintf("%s/%s has status %s %s %s", route.Namespace, route.Name, entry.Host, c.Status, c.Reason))
		}
	}
	for _, host := range []string{"h1.test", "h2.test", "h3.d.test", "x.d.test"} {
		out = append(out, host+" has the certificate "+r.leaf(host))
	}
	slices.Sort(out)
	return out
}

// asking gives a rig secrets on demand: those it asks for come with the next batch.
type asking struct {
	vault
	w    *world
	sink func() source.Sink
}

func (a *asking) Watch(key source.Key) {
	a.vault.Watch(key)
	e, ok := a.w.events[object{source.Secret, key}]
	if !ok {
		e = source.Event{Kind: source.Secret, Key: key}
	}
	a.sink().Event(e)
}

// TestOutcomeDependsOnObjectsAlone changes everything at random, in batches, and compares
// what is there in the end to what a controller makes of the last objects that has never
// seen others.
func TestOutcomeDependsOnObjectsAlone(t *testing.T) {
	var pairs [][2]string
	for i := range 3 {
		cert, key := keyPair(t, fmt.Sprint("c", i, ".test"))
		pairs = append(pairs, [2]string{cert, key})
	}
	for _, o := range []Options{
		{SelectNamespaces: true, AllowWildcard: true}, {SelectNamespaces: true, DisableNamespaceOwnership: true}, {AllowWildcard: true}, {},
	} {
		for seed := range uint64(25) {
			w := &world{rnd: rand.New(rand.NewPCG(seed, 1)), pairs: pairs, events: make(map[object]source.Event)}
			fresh := func() (*rig, *asking) {
				a := &asking{w: w}
				var r *rig
				a.sink = func() source.Sink { return r.sink }
				r = newRig(t, o, func(c *Config) { c.Secrets = a })
				return r, a
			}
			step, asked := fresh()
			step.do()
			for range 40 {
				for range w.rnd.IntN(4) {
					if e := w.change(false); e.Kind != source.Secret || asked.watched[e.Key] {
						step.sink.Event(e)
					}
				}
				step.do()
			}
			// Secrets end as something that says the same whatever was before.
			for _, key := range sortedKeys(w.events) {
				if key.kind != source.Secret {
					continue
				}
				e := w.secret(key.key.Name, func(words ...string) string { return words[w.rnd.IntN(len(words))] }, true)
				e.Key = key.key
				w.events[key] = e
				if asked.watched[e.Key] {
					step.sink.Event(e)
				}
			}
			step.settle()
			once, _ := fresh()
			for _, e := range w.events {
				if e.Kind != source.Secret && e.Object != nil {
					once.sink.Event(e)
				}
			}
			once.settle()
			if diff := cmp.Diff(once.outcome(), step.outcome()); diff != "" {
				t.Fatalf("options %+v, seed %d: at once (-) and step by step (+) differ:\n%s", o, seed, diff)
			}
			if len(asked.wrong) > 0 {
				t.Fatalf("options %+v, seed %d: %q", o, seed, asked.wrong)
			}
			step.forgetsAll(w)
		}
	}
}

func sortedKeys(events map[object]source.Event) []object {
	keys := make([]object, 0, len(events))
	for key := range events {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b object) int {
		return strings.Compare(fmt.Sprint(a.kind, a.key), fmt.Sprint(b.kind, b.key))
	})
	return keys
}

// settle handles events until no secret is asked for.
func (r *rig) settle() {
	for range 5 { // as deep as secrets can make each other be asked for
		r.c.handle()
	}
}

// forgetsAll takes all objects away and looks that nothing is left of them.
func (r *rig) forgetsAll(w *world) {
	r.Helper()
	for key, e := range w.events {
		e.Object, e.Err = nil, nil
		if key.kind != source.Secret {
			r.sink.Event(e)
		}
	}
	r.settle()
	s := r.c.state
	if n := s.routes.Len() + s.services.Len() + s.slices.Len() + len(s.secrets) + len(s.views.outside) + len(s.namespaces) + len(s.unanswered) +
		len(s.unused) + r.c.views.routes.Len(); n != 0 || r.store.Load().Len() != 0 {
		r.Fatalf("%d things are remembered of nothing, %d routes are served", n, r.store.Load().Len())
	}
	if claims, hosts := s.claims.Len(); claims+hosts != 0 {
		r.Fatalf("%d claims of %d hosts are left", claims, hosts)
	}
	r.c.state.unswept = true
	s.sweep()
	if pools, endpoints := r.c.cfg.Routing.Registry.Len(); pools+endpoints != 0 {
		r.Fatalf("%d pools and %d endpoints are left", pools, endpoints)
	}
}

// TestClocks looks that wrong clocks, of the author of an object or of this machine, do no
// more than order routes and date what is reported.
func TestClocks(t *testing.T) {
	cert, key := keyPair(t, "h.test")
	r := newRig(t, Options{})
	const century = 100 * 365 * 24
	r.now = time.Date(1970, 1, 1, 0, 0, 1, 0, time.UTC)
	r.do(aRoute("late", "h.test", century, edge(cert, key)), aRoute("later", "h.test", century+1), aRoute("early", "e.test", -century))
	r.wantCondition("late", "True")
	r.wantCondition("early", "True")
	r.wantCondition("later", "False HostAlreadyClaimed: route late already exposes h.test and is older")
	// A clock that goes back changes nothing that was reported.
	before, _ := r.c.Route("ns", "late")
	r.now = r.now.AddDate(-50, 0, 0)
	r.do(aRoute("late", "h.test", century, edge(cert, key), func(o *routev1.Route) { o.Labels = map[string]string{"x": "y"} }))
	after, _ := r.c.Route("ns", "late")
	if diff := cmp.Diff(before.Status, after.Status); diff != "" {
		t.Errorf("after the clock went back: %s", diff)
	}
	// A route without a creation time is older than any.
	r.do(aRoute("ageless", "h.test", 0, func(o *routev1.Route) { o.CreationTimestamp.Time = time.Time{} }))
	r.wantCondition("ageless", "True")
	r.wantCondition("late", "False HostAlreadyClaimed: replaced by older route ageless")
}
