package controller

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"turnout/controller/ingress"
	"turnout/controller/source"
)

// ingressChange returns the event of a random change of an Ingress or of what it needs, and remembers it.
func (w *world) ingressChange(t *testing.T) source.Event {
	pick := func(words ...string) string { return words[w.rnd.IntN(len(words))] }
	var e source.Event
	switch n := w.rnd.IntN(12); {
	case n < 6:
		e = w.ingress(t, pick)
	case n < 7:
		e = aClass(pick("mine", "other"), pick(ingress.Controller, "somebody/else"))
		if pick("", "default") != "" {
			e.Object.(*networkingv1.IngressClass).Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
		}
	case n < 9:
		e = aService(pick("s", "t"))
	case n < 10:
		e = w.secret(pick("c1", "c2"), pick, true)
	case n < 11:
		e = w.route("ns", pick)
	default:
		e = aSlice(pick("s-1", "s-2", "t-1"), pick("s", "t"), fmt.Sprintf("10.0.0.%d", 1+w.rnd.IntN(9)))
	}
	if e.Kind != source.Secret && w.rnd.IntN(5) == 0 {
		e.Object = nil
	}
	if e.Kind != source.IngressClass {
		e.Key.Namespace = "ns"
	}
	w.events[object{e.Kind, e.Key}] = e
	return e
}

func (w *world) ingress(t *testing.T, pick func(...string) string) source.Event {
	backend := func() string {
		return fmt.Sprintf("{service: {name: %s, port: {%s}}}", pick("s", "t", "none"), pick("name: http", "number: 443", "number: 1"))
	}
	var rules []string
	for range 1 + w.rnd.IntN(2) {
		rule := fmt.Sprintf("http: {paths: [{path: %s, pathType: %s, backend: %s}]}", pick("/", "/p", "/p/q"), pick("Prefix", "Exact", "ImplementationSpecific"), backend())
		if host := pick("h1.test", "h2.test", "'*.d.test'", "h3.d.test", ""); host != "" {
			rule += ", host: " + host
		}
		rules = append(rules, "{"+rule+"}")
	}
	spec := "rules: [" + strings.Join(rules, ", ") + "]"
	if pick("", "", "default") != "" {
		spec += ", defaultBackend: " + backend()
	}
	if pick("", "tls") != "" {
		spec += fmt.Sprintf(", tls: [{hosts: [%s], secretName: %s}]", pick("h1.test", "h3.d.test"), pick("c1", "c2"))
	}
	return anIngressOf(t, pick("a", "b", "c", "d"), w.rnd.IntN(5), "{"+spec+"}", func(o *networkingv1.Ingress) {
		switch class := pick("mine", "mine", "other", ""); class {
		case "":
			o.Spec.IngressClassName = nil
		default:
			o.Spec.IngressClassName = &class
		}
		if pick("", "", "once") != "" {
			o.Annotations = map[string]string{"haproxy.router.openshift.io/balance": pick("roundrobin", "nonsense")}
		}
	})
}

// claimWords are those about who has a host: one who had it before is told in other words than one who never did, as the HAProxy router does it.
var claimWords = regexp.MustCompile("is not served: [^;]*")

// ingressOutcome is outcome, and what is said of the Ingresses that are there.
func (r *rig) ingressOutcome(said told, w *world) []string {
	out := r.outcome()
	for name, text := range said {
		if e := w.events[object{source.Ingress, source.Key{Namespace: "ns", Name: name}}]; e.Object != nil && text != "withdrawn" {
			out = append(out, "Ingress "+name+" is "+claimWords.ReplaceAllString(text, "is not served"))
		}
	}
	slices.Sort(out)
	return out
}

// TestOutcomeDependsOnIngressesAlone is TestOutcomeDependsOnObjectsAlone with Ingresses, their classes, Services and Secrets, and Routes beside them: whatever
// came before and in which order, the table, the certificates and what is said are those of the last objects.
func TestOutcomeDependsOnIngressesAlone(t *testing.T) {
	var pairs [][2]string
	for _, host := range []string{"h1.test", "h3.d.test", "x.d.test"} {
		cert, key := keyPair(t, host)
		pairs = append(pairs, [2]string{cert, key})
	}
	for seed := range uint64(60) {
		w := &world{rnd: rand.New(rand.NewPCG(seed, 2)), pairs: pairs, events: make(map[object]source.Event)}
		fresh := func() (*rig, *asking, told) {
			a, said := &asking{w: w}, told{}
			var r *rig
			a.sink = func() source.Sink { return r.sink }
			r = newRig(t, Options{Ingress: true, AllowWildcard: true}, func(c *Config) { c.Secrets, c.Ingresses = a, said })
			return r, a, said
		}
		step, asked, stepSaid := fresh()
		step.do()
		for range 40 {
			for range w.rnd.IntN(4) {
				if e := w.ingressChange(t); e.Kind != source.Secret || asked.watched[e.Key] {
					step.sink.Event(e)
				}
			}
			step.do()
		}
		for _, key := range sortedKeys(w.events) {
			if key.kind == source.Secret && w.rnd.IntN(2) == 0 {
				e := aSecret(key.key.Name, corev1.SecretTypeTLS, pairs[0][0], pairs[0][1])
				e.Key = key.key
				if w.events[key] = e; asked.watched[e.Key] {
					step.sink.Event(e)
				}
			}
		}
		step.settle()
		once, _, onceSaid := fresh()
		all := sortedKeys(w.events)
		w.rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, key := range all {
			if e := w.events[key]; e.Kind != source.Secret && e.Object != nil {
				once.sink.Event(e)
			}
		}
		once.settle()
		if diff := cmp.Diff(once.ingressOutcome(onceSaid, w), step.ingressOutcome(stepSaid, w)); diff != "" {
			t.Fatalf("seed %d: at once (-) and step by step (+) differ:\n%s", seed, diff)
		}
		step.forgetsAll(w)
	}
}
