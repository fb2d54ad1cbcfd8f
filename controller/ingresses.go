package controller

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"go.uber.org/zap"
	networkingv1 "k8s.io/api/networking/v1"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"

	"turnout/controller/admit"
	"turnout/controller/expansion"
	"turnout/controller/ingress"
	"turnout/controller/source"
	"turnout/controller/status"
	"turnout/controller/turns"
	"turnout/internal/bound"
	"turnout/internal/problem"
	"turnout/routing"
)

// An Ingress is served as Routes that nobody has written, one for each of its rules, see package ingress. They go the way of all Routes: they are
// judged among them, one by one, and what became of them is put together again for the Ingress.

// ingresses are those that there are, and what was made of them.
type ingresses struct {
	classes *ingress.Classes
	all     map[source.Key]*anIngress
	rules   map[source.Key]*ingress.Rule           // by the keys of their Routes
	users   map[source.Key]map[*anIngress]struct{} // of a Service whose ports matter
	waiting *turns.Queue[*anIngress]               // to be expanded by this batch or a later one
	changed map[*anIngress]struct{}                // of which something is another
	gone    []*networkingv1.Ingress                // no longer there
	ledger  *expansion.Ledger[source.Key]
}

// anIngress is one Ingress.
type anIngress struct {
	key           source.Key
	object        *networkingv1.Ingress
	order, origin string

	why      string // it is not served; "" = it is
	rules    []source.Key
	problems []ingress.Problem // found before its rules were judged
	services []source.Key
}

func newIngresses(controller string) ingresses {
	all := make(map[source.Key]*anIngress)
	ledger := expansion.NewLedger(func(k source.Key) string { return k.Namespace }, func(a, b source.Key) int {
		return cmp.Or(all[a].object.CreationTimestamp.Compare(all[b].object.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return ingresses{
		classes: ingress.NewClasses(controller), all: all, ledger: ledger, rules: make(map[source.Key]*ingress.Rule),
		users: make(map[source.Key]map[*anIngress]struct{}), waiting: turns.New(func(in *anIngress) string { return in.key.Namespace }), changed: make(map[*anIngress]struct{}),
	}
}

// notServed is said of Ingresses where they are not asked for.
const notServed = "Ingresses are served with --ingress only"

// ingressEvent takes an Ingress over.
func (s *state) ingressEvent(e *source.Event) {
	object, _ := e.Object.(*networkingv1.Ingress)
	if !s.cfg.Options.Ingress {
		if object == nil {
			s.cfg.Problems.Set("ingress/" + e.Key.String())
		} else {
			s.cfg.Problems.Set("ingress/"+e.Key.String(), problem.Problem{Kind: problem.Note, Namespace: e.Key.Namespace, Object: "Ingress " + e.Key.String(), Text: notServed})
		}
		return
	}
	in := s.ingress.all[e.Key]
	if in != nil && (object == nil || in.object.UID != object.UID) {
		s.forgetIngress(in)
		in = nil
	}
	if object == nil {
		return
	}
	order := e.Order
	if order == "" {
		order = e.Key.String() // of equally old ones the first by namespace and name
	}
	switch {
	case in == nil:
		in = &anIngress{key: e.Key}
		s.ingress.all[e.Key] = in
		s.ingress.waiting.Add(in, s.stamp)
	case in.order != order || !in.object.CreationTimestamp.Equal(&object.CreationTimestamp) || !maps.Equal(in.object.Annotations, object.Annotations) || !reflect.DeepEqual(&in.object.Spec, &object.Spec):
		s.ingress.waiting.Add(in, s.stamp)
	}
	in.object, in.order, in.origin = object, order, e.Origin
	s.ingress.changed[in] = struct{}{}
}

// classEvent takes an IngressClass over, and looks at all Ingresses again: there are few classes, and they hardly change.
func (s *state) classEvent(e *source.Event) {
	if !s.cfg.Options.Ingress {
		return
	}
	object, _ := e.Object.(*networkingv1.IngressClass)
	s.ingress.classes.SetClass(e.Key.Name, object)
	for _, in := range s.ingress.all {
		s.ingress.waiting.Add(in, s.stamp)
	}
}

// portsChanged looks again at the Ingresses that name a Service.
func (s *state) portsChanged(service source.Key) {
	for in := range s.ingress.users[service] {
		s.ingress.waiting.Add(in, s.stamp)
	}
}

// forgetIngress removes an Ingress with its rules.
func (s *state) forgetIngress(in *anIngress) {
	s.setRules(in, nil)
	s.setServices(in, nil)
	s.ingress.ledger.Remove(in.key)
	for _, key := range s.ingress.ledger.Settle() {
		s.ingress.waiting.Add(s.ingress.all[key], s.stamp)
	}
	delete(s.ingress.all, in.key)
	s.ingress.waiting.Remove(in)
	delete(s.ingress.changed, in)
	s.ingress.gone = append(s.ingress.gone, in.object)
}

// expandIngress makes the rules of one. Should that panic, it has none, and the others go on.
func (s *state) expandIngress(in *anIngress) {
	defer func() {
		if v := recover(); v != nil {
			s.cfg.Log.Error("BUG: an Ingress cannot be expanded", zap.Stringer("ingress", in.key), zap.Any("panic", v), zap.ByteString("stack", debug.Stack()))
			s.setRules(in, nil)
			in.problems = []ingress.Problem{{Reason: reasonInternal, Message: "the router failed on this Ingress; its log says more"}}
		}
	}()
	ok, why := s.ingress.classes.Serves(in.object)
	in.why = why
	if !ok {
		s.ingress.ledger.Remove(in.key)
		s.setRules(in, nil)
		s.setServices(in, nil)
		in.problems = nil
		return
	}
	made := ingress.Expand(ingress.Input{Ingress: in.object, Service: func(name string) *corev1.Service {
		if v := s.services.Get(source.Key{Namespace: in.key.Namespace, Name: name}); v != nil {
			return v.object
		}
		return nil
	}})
	if made.Beyond > 0 {
		s.cfg.Bounds.Reached(bound.IngressRules)
	}
	s.ingress.ledger.Set(in.key, made.Size)
	for _, key := range s.ingress.ledger.Settle() {
		if other := s.ingress.all[key]; other != in {
			s.ingress.waiting.Add(other, s.stamp)
		}
	}
	if why := s.ingress.ledger.Refused(in.key); why != "" {
		s.cfg.Bounds.Reached(bound.NamespaceExpansion)
		made = ingress.Result{Problems: []ingress.Problem{{Reason: ingress.ReasonTooMany, Message: "it is not served: it " + why}}}
	}
	in.problems = made.Problems
	s.setServices(in, made.Services)
	s.setRules(in, made.Rules)
}

// setRules gives an Ingress its rules, as events of Routes.
func (s *state) setRules(in *anIngress, rules []ingress.Rule) {
	before := in.rules
	in.rules = make([]source.Key, len(rules))
	there := make(map[source.Key]bool, len(rules))
	for i := range rules {
		key := rules[i].Key()
		in.rules[i], there[key] = key, true
		s.ingress.rules[key] = &rules[i]
		s.routeEvent(&source.Event{Kind: source.Route, Key: key, Object: rules[i].Route, Order: in.order, Origin: in.origin})
	}
	for _, key := range before {
		if !there[key] {
			s.routeEvent(&source.Event{Kind: source.Route, Key: key})
			delete(s.ingress.rules, key)
		}
	}
}

// setServices makes an Ingress a user of the ports of Services, and of no others.
func (s *state) setServices(in *anIngress, names []string) {
	for _, key := range in.services {
		if of := s.ingress.users[key]; len(of) > 1 {
			delete(of, in)
		} else {
			delete(s.ingress.users, key)
		}
	}
	in.services = make([]source.Key, len(names))
	for i, name := range names {
		key := source.Key{Namespace: in.key.Namespace, Name: name}
		in.services[i] = key
		if s.ingress.users[key] == nil {
			s.ingress.users[key] = make(map[*anIngress]struct{})
		}
		s.ingress.users[key][in] = struct{}{}
	}
}

// isRule reports whether a Route is a rule of an Ingress.
func isRule(o *routev1.Route) bool { return strings.Contains(o.Name, source.OfIngress) }

// check judges the host of a route by itself.
func (s *state) check(r *route) admit.Verdict {
	policy := string(s.objectOf(r).Spec.WildcardPolicy)
	switch {
	case r.rule == nil:
		return s.admission.Check(r.host, policy)
	case r.host == ingress.AnyHost:
		return s.admission.CheckAny()
	}
	o := s.admission
	o.AllowWildcard = true // of Ingresses they are no privilege
	return o.Check(r.host, policy)
}

// newClaims returns an empty set. Ingresses may have wildcards whether Routes may or not.
func (o *Options) newClaims() *admit.Claims {
	a := o.admission()
	a.AllowWildcard = a.AllowWildcard || o.Ingress
	return admit.NewClaims(a)
}

// specs are the rules that the table is to have of a route that is served.
func (r *route) specs() []routing.RuleSpec {
	specs := r.result.Rules()
	if r.rule != nil {
		for i := range specs {
			r.rule.Complete(&specs[i])
		}
	}
	return specs
}

// tellRule has the Ingress of a route reported, if it is a rule of one.
func (s *state) tellRule(r *route) {
	if r.rule == nil {
		return
	}
	if in := s.ingress.all[r.rule.Of]; in != nil {
		s.ingress.changed[in] = struct{}{}
	}
}

// reportIngresses tells what became of all Ingresses of which something changed.
func (s *state) reportIngresses() {
	for _, object := range s.ingress.gone {
		if key := (source.Key{Namespace: object.Namespace, Name: object.Name}); s.ingress.all[key] == nil {
			s.cfg.Problems.Set("ingress/" + key.String())
		}
		if s.cfg.Ingresses != nil {
			s.cfg.Ingresses.Forget(object)
		}
	}
	s.ingress.gone = nil
	for in := range s.ingress.changed {
		if s.awaits(in) {
			continue // the last of its rules reports it
		}
		outcome := s.outcome(in)
		var problems []problem.Problem
		for _, p := range s.besides(in) {
			problems = append(problems, problem.Problem{Kind: problem.Note, Namespace: in.key.Namespace, Object: "Ingress " + in.key.String(), Reason: p.Reason, Text: p.Message})
		}
		s.cfg.Problems.Set("ingress/"+in.key.String(), problems...)
		switch {
		case s.cfg.Ingresses == nil:
		case in.why != "":
			s.cfg.Ingresses.Withdraw(in.object)
		default:
			s.cfg.Ingresses.Report(in.object, outcome)
		}
	}
	s.ingress.changed = emptied(s.ingress.changed)
}

// awaits reports whether a rule of the Ingress waits for a later batch.
func (s *state) awaits(in *anIngress) bool {
	return slices.ContainsFunc(in.rules, func(key source.Key) bool {
		r := s.routes.Get(key)
		return r != nil && r.stale
	})
}

// besides returns the problems of an Ingress that none of its rules has: those are with the Routes.
func (s *state) besides(in *anIngress) (list []ingress.Problem) {
	with := make(map[ingress.Problem]bool)
	for _, key := range in.rules {
		if rule := s.ingress.rules[key]; rule != nil {
			with[rule.Problem] = true
		}
	}
	for _, p := range in.problems {
		if !with[p] {
			list = append(list, p)
		}
	}
	return list
}

// ingressNotes is what is to be said of the Ingresses among events besides their rules.
func (s *state) ingressNotes(events []source.Event) (notes []IngressNote) {
	for _, e := range events {
		if e.Kind != source.Ingress || e.Object == nil {
			continue
		}
		in := s.ingress.all[e.Key]
		switch {
		case in == nil:
			notes = append(notes, IngressNote{e.Key, e.Origin, "", notServed})
		case in.why != "":
			notes = append(notes, IngressNote{e.Key, e.Origin, "", "it is not served by this router: " + in.why})
		default:
			for _, p := range s.besides(in) {
				notes = append(notes, IngressNote{e.Key, e.Origin, p.Reason, p.Message})
			}
		}
	}
	slices.SortStableFunc(notes, func(a, b IngressNote) int { return order(a.Ingress, b.Ingress) })
	return notes
}

// outcome puts together what became of the rules of an Ingress.
func (s *state) outcome(in *anIngress) status.IngressOutcome {
	out := status.IngressOutcome{Problems: slices.Clone(in.problems)}
	said := make(map[ingress.Problem]bool)
	for _, key := range in.rules {
		r := s.routes.Get(key)
		if r == nil {
			continue // not selected
		}
		out.Served = out.Served || r.served
		var p ingress.Problem
		switch {
		case r.waiting, r.stale:
		case !r.verdict.Admitted:
			p = ingress.Problem{Reason: r.verdict.Reason, Message: fmt.Sprintf("%s is not served: %s", r.rule.Called(), r.verdict.Message)}
		case len(r.tls.notes) > 0:
			p = ingress.Problem{Reason: ingress.ReasonCertificate, Message: r.tls.notes[0]}
		}
		if p != (ingress.Problem{}) && !said[p] {
			said[p] = true
			out.Problems = append(out.Problems, p)
		}
	}
	return out
}
