package status

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"turnout/controller/ingress"
)

// ingressAPI is an API server with optimistic concurrency, on which several writers may work.
type ingressAPI struct {
	mu      sync.Mutex
	all     map[string]*networkingv1.Ingress
	events  map[string]*corev1.Event
	version int
	writes  int
	creates int
	fail    error
	told    []*IngressWriter // hear of each change, by Report with outcome
	outcome IngressOutcome
}

func newIngressAPI() *ingressAPI {
	return &ingressAPI{all: map[string]*networkingv1.Ingress{}, events: map[string]*corev1.Event{}, outcome: IngressOutcome{Served: true}}
}

func (f *ingressAPI) WriteIngress(_ context.Context, o *networkingv1.Ingress, list []networkingv1.IngressLoadBalancerIngress) (*networkingv1.Ingress, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return nil, f.fail
	}
	live := f.all[o.Name]
	switch {
	case live == nil:
		return nil, apierrors.NewNotFound(networkingv1.Resource("ingresses"), o.Name)
	case live.UID != o.UID || live.ResourceVersion != o.ResourceVersion:
		return nil, apierrors.NewConflict(networkingv1.Resource("ingresses"), o.Name, errors.New("changed"))
	}
	f.writes++
	return f.put(o.Name, func(o *networkingv1.Ingress) {
		o.Status.LoadBalancer.Ingress = list
		o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: IngressManager, Subresource: "status"}}
	}), nil
}

func (f *ingressAPI) CreateEvent(_ context.Context, e *corev1.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	f.creates++
	if f.events[e.Name] != nil {
		return apierrors.NewAlreadyExists(corev1.Resource("events"), e.Name)
	}
	f.events[e.Name] = e
	return nil
}

// put changes an Ingress, made when it is not there, and returns it. f.mu is held.
func (f *ingressAPI) put(name string, change func(*networkingv1.Ingress)) *networkingv1.Ingress {
	next := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
	if old := f.all[name]; old != nil {
		next = old.DeepCopy()
	}
	f.version++
	next.ResourceVersion = strconv.Itoa(f.version)
	change(next)
	f.all[name] = next
	for _, w := range f.told {
		go w.Report(next, f.outcome) // as a watch does, later
	}
	return next
}

// change changes an Ingress as somebody else would.
func (f *ingressAPI) change(name string, change func(*networkingv1.Ingress)) *networkingv1.Ingress {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.put(name, change)
}

// made returns how many writes and attempts at Events there were, and the Events that there are.
func (f *ingressAPI) made() (writes, creates int, events map[string]*corev1.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes, f.creates, maps.Clone(f.events)
}

func (f *ingressAPI) wrote() int {
	n, _, _ := f.made()
	return n
}

// live is an Ingress as it is now.
func (f *ingressAPI) live(name string) *networkingv1.Ingress {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[name]
}

// sleep lets virtual time pass, and everybody do what is due then.
func sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func nothing(*networkingv1.Ingress) {}

// addresses is what the status of an Ingress says.
func (f *ingressAPI) addresses(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, a := range f.all[name].Status.LoadBalancer.Ingress {
		all = append(all, a.IP+a.Hostname)
	}
	return strings.Join(all, " ")
}

// writers has n writers run until the test is over.
func (f *ingressAPI) writers(t *testing.T, n int, addresses ...string) []*IngressWriter {
	t.Helper()
	var all []*IngressWriter
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range n {
		w, err := NewIngressWriter(IngressWriterConfig{API: f, Addresses: addresses, RouterName: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
		running.Go(func() { _ = w.Run(ctx) })
	}
	t.Cleanup(func() { cancel(); running.Wait() })
	return all
}

// TestIngressStatus: the addresses are written where an Ingress is served and differ, taken back when it is not, and left alone otherwise.
func TestIngressStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newIngressAPI()
		w := f.writers(t, 1, "10.0.0.1", "2001:db8::1", "router.test")[0]
		o := f.change("web", nothing)
		w.Report(o, IngressOutcome{})
		synctest.Wait()
		if got := f.addresses("web"); got != "" || f.wrote() != 0 {
			t.Errorf("not served: %q after %d writes", got, f.wrote())
		}
		w.Report(o, IngressOutcome{Served: true})
		synctest.Wait()
		if got := f.addresses("web"); got != "10.0.0.1 2001:db8::1 router.test" || f.wrote() != 1 {
			t.Fatalf("served: %q after %d writes", got, f.wrote())
		}
		if list := f.live("web").Status.LoadBalancer.Ingress; list[0].IP == "" || list[1].IP == "" || list[2].Hostname == "" {
			t.Errorf("addresses %+v", list)
		}
		w.Report(o, IngressOutcome{Served: true}) // late news
		w.Report(f.live("web"), IngressOutcome{Served: true})
		sleep(time.Minute)
		if f.wrote() != 1 {
			t.Errorf("%d writes of the same", f.wrote())
		}
		w.Withdraw(f.live("web"))
		synctest.Wait()
		if got := f.addresses("web"); got != "" || len(w.all) != 0 {
			t.Errorf("withdrawn: %q, %d records", got, len(w.all))
		}
		if s := w.Stats(); s.Written != 1 || s.Removed != 1 || s.Pending != 0 || !s.Leader {
			t.Errorf("stats %+v", s)
		}
	})
}

// TestForeignIngressStatusStays: the status of an Ingress that others serve is theirs, even if it says the same; what this program wrote in another
// life is taken back.
func TestForeignIngressStatusStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newIngressAPI()
		w := f.writers(t, 1, "router.test")[0]
		same := func(o *networkingv1.Ingress) {
			o.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{Hostname: "router.test"}}
		}
		w.Withdraw(f.change("foreign", same))
		w.Withdraw(f.change("mine", func(o *networkingv1.Ingress) {
			same(o)
			o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "other", Subresource: "status"}, {Manager: IngressManager, Subresource: "status"}}
		}))
		w.Withdraw(f.change("other", func(o *networkingv1.Ingress) {
			o.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{Hostname: "other.test"}}
			o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: IngressManager, Subresource: "status"}}
		}))
		synctest.Wait()
		if f.addresses("foreign") != "router.test" || f.addresses("mine") != "" || f.addresses("other") != "other.test" || f.wrote() != 1 {
			t.Errorf("%q %q %q after %d writes", f.addresses("foreign"), f.addresses("mine"), f.addresses("other"), f.wrote())
		}
		gone := f.change("gone", same)
		w.Report(gone, IngressOutcome{Served: true})
		w.Forget(gone)
		if len(w.all) != 0 {
			t.Error("a record of a deleted Ingress stays")
		}
	})
}

// TestReplicasOfIngressStatus: several replicas write each status once, and one Event.
func TestReplicasOfIngressStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newIngressAPI()
		f.outcome.Problems = []ingress.Problem{{Reason: "ServiceNotFound", Message: "no Service"}}
		writers := f.writers(t, 3, "router.test")
		f.told = writers
		for i := range 50 {
			f.change(fmt.Sprint("web-", i), nothing)
		}
		sleep(10 * time.Minute)
		for i := range 50 {
			if got := f.addresses(fmt.Sprint("web-", i)); got != "router.test" {
				t.Fatalf("web-%d: %q", i, got)
			}
		}
		if writes, _, events := f.made(); writes != 50 || len(events) != 50 {
			t.Errorf("%d writes and %d Events for 50 Ingresses", writes, len(events))
		}
		for _, w := range writers {
			if n := w.Stats().Failed; n != 0 {
				t.Errorf("%d failed", n)
			}
		}
	})
}

// TestIngressStatusIsNotFoughtOver: where somebody else writes another status each time, the writer waits longer and longer.
func TestIngressStatusIsNotFoughtOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newIngressAPI()
		f.told = f.writers(t, 1, "router.test")
		f.change("web", nothing)
		for range 3600 {
			sleep(time.Second)
			if f.addresses("web") == "router.test" {
				f.change("web", func(o *networkingv1.Ingress) {
					o.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "10.9.9.9"}}
				})
			}
		}
		if f.wrote() < 8 || f.wrote() > 20 {
			t.Errorf("%d writes in an hour", f.wrote())
		}
	})
}

// TestIngressEvents: each problem is one Event, which is made again when the API server has forgotten it, or when the problem comes back.
func TestIngressEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newIngressAPI()
		w := f.writers(t, 1)[0]
		o := f.change("web", nothing)
		problem := ingress.Problem{Reason: "ServiceNotFound", Message: strings.Repeat("ä", 1000)}
		w.Report(o, IngressOutcome{Served: true, Problems: []ingress.Problem{problem}})
		w.Report(o, IngressOutcome{Served: true, Problems: []ingress.Problem{problem}})
		synctest.Wait()
		writes, creates, events := f.made()
		if creates != 1 || writes != 0 {
			t.Fatalf("%d Events, %d writes", creates, writes)
		}
		for name, e := range events {
			if !strings.HasPrefix(name, "web.") || e.Type != "Warning" || e.Reason != "ServiceNotFound" || len(e.Message) > 1024 || !strings.HasPrefix(e.Message, "ää") ||
				e.InvolvedObject.UID != "uid-web" || e.InvolvedObject.Kind != "Ingress" || e.InvolvedObject.APIVersion != "networking.k8s.io/v1" || e.Namespace != "ns" || e.ReportingInstance != "mine" {
				t.Errorf("%s: %+v", name, e)
			}
		}
		sleep(50 * time.Minute)
		if _, creates, events = f.made(); creates != 2 || len(events) != 1 {
			t.Errorf("%d Events made, %d there", creates, len(events))
		}
		w.Report(o, IngressOutcome{Served: true})
		w.Report(o, IngressOutcome{Served: true, Problems: []ingress.Problem{problem, {Reason: "Other", Message: "x"}}})
		synctest.Wait()
		if _, creates, events = f.made(); creates != 4 || len(events) != 2 {
			t.Errorf("after it came back: %d Events made, %d there", creates, len(events))
		}
		many := make([]ingress.Problem, 100)
		for i := range many {
			many[i] = ingress.Problem{Reason: "Many", Message: fmt.Sprint(i)}
		}
		w.Report(o, IngressOutcome{Problems: many})
		sleep(time.Minute)
		if _, _, events = f.made(); len(events) != 2+mostEvents {
			t.Errorf("%d Events of 100 problems", len(events)-2)
		}
	})
}

// TestIngressWriterOutlivesErrors: what the API refuses, and what it forbids, is tried again with pauses.
func TestIngressWriterOutlivesErrors(t *testing.T) {
	for name, fail := range map[string]error{
		"away": errors.New("connection refused"), "forbidden": apierrors.NewForbidden(networkingv1.Resource("ingresses"), "web", errors.New("no")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newIngressAPI()
				f.fail = fail
				w := f.writers(t, 1, "router.test")[0]
				w.Report(f.change("web", nothing), IngressOutcome{Served: true})
				sleep(10 * time.Minute)
				if n := w.Stats().Failed; n < 3 || n > 60 {
					t.Errorf("%d attempts in ten minutes", n)
				}
				f.mu.Lock()
				f.fail = nil
				f.mu.Unlock()
				sleep(2 * time.Minute)
				if got := f.addresses("web"); got != "router.test" {
					t.Errorf("afterwards: %q", got)
				}
			})
		})
	}
}

// TestEventNames: an Event has a name that the API takes, whatever the name of the Ingress.
func TestEventNames(t *testing.T) {
	var names []string
	for _, name := range []string{"web", strings.Repeat("a", 253), strings.Repeat("a", 235) + "." + strings.Repeat("b", 17)} {
		e := eventOf(&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: name}}, ingress.Problem{}, "", time.Now())
		if len(e.Name) > 253 || strings.Contains(e.Name, "..") {
			t.Errorf("%s: name %s", name, e.Name)
		}
		names = append(names, e.Name)
	}
	if slices.Sort(names); len(slices.Compact(names)) != 3 {
		t.Errorf("names %q", names)
	}
}
