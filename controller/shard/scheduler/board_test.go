package scheduler

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"turnout/controller/shard"
	"turnout/controller/shard/api"
	"turnout/controller/shard/show"
	"turnout/controller/source"
)

// aLeader is a leader that knows one ready Router and so many routes in each of three namespaces; of the first ones the scheduler of before has said that they are bound.
func aLeader(t *testing.T, routes, bound int) *leader {
	t.Helper()
	now := time.Now()
	s := &Scheduler{asked: make(chan question), others: func(context.Context) (*show.Board, error) { return &show.Board{Here: "another"}, nil }}
	s.shown.Store(new(Stats))
	strategy, err := Strategies()[api.StrategyRoundRobin](new(api.RouteSchedulerSpec))
	if err != nil {
		t.Fatal(err)
	}
	l := &leader{
		Scheduler: s, inbox: newInbox(), spec: new(api.RouteSchedulerSpec), bound: make(map[shard.Key][]string), bindings: make(map[shard.Key]shard.Binding),
		routers: make(map[string]*api.Router), silence: make(map[string]map[string]*silent), planner: shard.New(shard.Config{Strategy: strategy}, now),
	}
	l.planner.Advance(now)
	give := func(kind source.Kind, o interface {
		metav1.Object
		runtime.Object
	}) {
		l.event(&source.Event{Kind: kind, Key: source.Key{Namespace: o.GetNamespace(), Name: o.GetName()}, Object: o}, now)
	}
	give(source.Router, &api.Router{
		ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "r"},
		Spec:       api.RouterSpec{DNS: &api.RouterDNS{Domain: "one.test", TTLSeconds: 30}, Taints: []api.RouterTaint{{Key: "upgrade", Effect: api.TaintNoSchedule}}},
		Status:     api.RouterStatus{Phase: api.RouterReady, Replicas: []api.ReplicaStatus{{Name: "pod", Ready: true, Renewed: metav1.NewMicroTime(now)}}},
	})
	for i := range routes {
		for _, ns := range []string{"c", "a", "b"} {
			name := fmt.Sprintf("r%02d", i)
			uid := ns + name
			give(source.Route, &routev1.Route{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(uid), ResourceVersion: "1"}, Spec: routev1.RouteSpec{Host: uid + ".test"}})
			if i < bound {
				give(source.RouteBinding, &api.RouteBinding{
					ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name + ".one", ResourceVersion: "1"},
					Spec:       api.RouteBindingSpec{RouteNamespace: ns, RouteName: name, RouteUID: uid, Router: "one", DNS: uid + ".test", Leaving: i == 0},
					Status:     api.RouteBindingStatus{Phase: api.BindingServing},
				})
			}
		}
	}
	l.planner.Synced("")
	for range 100 { // writes that are never answered
		l.planner.Next(0)
		now = now.Add(100 * time.Millisecond)
		l.planner.Advance(now)
	}
	return l
}

// TestBoard: the leader says who waits, what moves, and which Routers there are, as much of each as has room.
func TestBoard(t *testing.T) {
	l := aLeader(t, 30, 10)
	b := l.board(time.Now())
	if len(b.Routers) != 1 || b.Routers[0].Taints[0] != "upgrade:NoSchedule" || !b.Counted || b.Strategy != "RoundRobin" || b.Phases["Ready"] != 1 {
		t.Errorf("%+v", b)
	}
	if b.Waiting != 63 || b.Reasons[string(shard.ReasonNotReady)] == 0 || len(b.Waits) != show.MostLines || b.Waits[0].Namespace+b.Waits[0].Name != "ar00" || b.Waits[1].Name != "r10" || b.Waits[1].Reason == "" {
		t.Errorf("%d wait, for %v: %+v", b.Waiting, b.Reasons, b.Waits[:2])
	}
	if len(b.Moves) != 3 || b.Moves[2].Namespace != "c" || b.Moves[0].Bindings[0].Phase != "Leaving" || b.Moves[0].Bindings[0].Router != "one" {
		t.Errorf("moves %+v", b.Moves)
	}
}

// TestBindings: the list is searched, in order of names, and cut into pages wherever namespaces end.
func TestBindings(t *testing.T) {
	l := aLeader(t, 30, 10)
	for _, c := range []struct {
		search             show.Search
		total              int
		first, last, state string
	}{
		{show.Search{}, 90, "ar00", "br19", ""},
		{show.Search{Offset: 25, Limit: 10}, 90, "ar25", "br04", ""},
		{show.Search{Offset: 89, Limit: 10}, 90, "cr29", "cr29", ""},
		{show.Search{Offset: 90}, 90, "", "", ""},
		{show.Search{Text: "bound R0", Limit: 200}, 27, "ar01", "cr09", show.StateBound},
		{show.Search{Text: "waits b/"}, 21, "br00", "br29", show.StateWaits},
		{show.Search{Text: "br17.test"}, 1, "br17", "br17", show.StateWaits},
		{show.Search{Text: "b/r17 nothing"}, 0, "", "", ""},
		{show.Search{Router: "one", Text: "a/r01"}, 1, "ar01", "ar01", show.StateBound},
		{show.Search{Router: "two"}, 0, "", "", ""},
	} {
		p := l.page(c.search)
		first, last, state := "", "", ""
		if n := len(p.Lines); n > 0 {
			first, last, state = p.Lines[0].Namespace+p.Lines[0].Name, p.Lines[n-1].Namespace+p.Lines[n-1].Name, p.Lines[n-1].State
		}
		if p.Total != c.total || first != c.first || last != c.last || c.state != "" && state != c.state {
			t.Errorf("%+v: %d routes from %s to %s, which %s", c.search, p.Total, first, last, state)
		}
	}
}

// TestAsk: people ask the goroutine that owns the Planner and have half of its time at most; one that does not lead says what the API server says.
func TestAsk(t *testing.T) {
	l := aLeader(t, 1, 1)
	if b, err := l.Board(t.Context()); err != nil || b.Here != "another" {
		t.Errorf("one that does not lead: %+v, %v", b, err)
	}
	if _, err := l.Bindings(t.Context(), show.Search{}); !errors.Is(err, errNotLeading) {
		t.Error(err)
	}
	l.shown.Store(&Stats{Leading: true, Synced: true})
	none, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Board(none); !errors.Is(err, errBusy) {
		t.Errorf("while the leader is busy: %v", err)
	}
	running, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	l.shownAt = time.Now().Add(time.Hour) // nothing is published
	go func() { defer close(ended); l.run(running) }()
	p, err := l.Bindings(t.Context(), show.Search{})
	if err != nil || p.Total != 3 {
		t.Errorf("%+v, %v", p, err)
	}
	stop()
	<-ended
	l.answer(question{func(*leader) {}, make(chan struct{})}, time.Now().Add(-time.Minute))
	if pause := time.Until(l.rested); pause < 59*time.Second || pause > 61*time.Second {
		t.Errorf("after an answer of a minute the next one waits %s", pause)
	}
}
