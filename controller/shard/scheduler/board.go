package scheduler

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"turnout/controller/shard"
	"turnout/controller/shard/api"
	"turnout/controller/shard/show"
)

// question is what people ask the leader.
type question struct {
	read func(*leader)
	done chan struct{} // closed when it was read
}

// answer answers a question. As long as that took, the next one waits: people get half of the leader's time at most.
func (l *leader) answer(q question, began time.Time) {
	q.read(l)
	close(q.done)
	now := time.Now()
	l.rested = now.Add(now.Sub(began))
}

// askPatience is how long people wait for the leader.
const askPatience = 5 * time.Second

var (
	errNotLeading = errors.New("another process of the scheduler leads, and knows: see its page, and the holder of the lease " + LeaseName)
	errBusy       = errors.New("the scheduler is busy; ask again")
)

// ask has the goroutine that owns the Planner read something.
func (s *Scheduler) ask(ctx context.Context, read func(*leader)) error {
	if !s.shown.Load().Synced {
		return errNotLeading
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	q := question{read, make(chan struct{})}
	select {
	case s.asked <- q:
		<-q.done
		return nil
	case <-ctx.Done():
		return errBusy
	}
}

// Board returns how routes are spread over Routers. One that does not lead asks the API server, and does not know who waits and what moves. Any
// goroutine may call it.
func (s *Scheduler) Board(ctx context.Context) (b *show.Board, err error) {
	if err = s.ask(ctx, func(l *leader) { b = l.board(time.Now()) }); errors.Is(err, errNotLeading) {
		return s.others(ctx)
	}
	return b, err
}

// Bindings returns the part of the list of routes that is asked for. The error says that another process leads, or that this one is busy. Any goroutine
// may call it.
func (s *Scheduler) Bindings(ctx context.Context, search show.Search) (p show.Page, err error) {
	return p, s.ask(ctx, func(l *leader) { p = l.page(search) })
}

// board is what the leader knows.
func (l *leader) board(now time.Time) *show.Board {
	s := l.planner.Summary()
	b := &show.Board{
		At: now.UTC(), Here: l.cfg.Identity, Leader: l.cfg.Identity, Strategy: cmp.Or(string(l.spec.Strategy), string(api.StrategyRoundRobin)), Invalid: l.invalid,
		Counted: true, Bound: s.Bound, Waiting: s.Waiting, Moving: s.Moving, Held: s.Message, Reasons: make(map[string]int), Waits: []show.Line{}, Moves: []show.Line{},
	}
	for reason, n := range l.planner.Troubles() {
		if n > 0 {
			b.Reasons[string(reason)] = n
		}
	}
	routers := make([]show.Router, 0, len(l.routers))
	for _, name := range slices.Sorted(maps.Keys(l.routers)) {
		routers = append(routers, show.RouterOf(l.routers[name]))
	}
	b.SetRouters(routers)
	waits, moves := window{limit: show.MostLines}, window{limit: show.MostLines}
	for r := range l.planner.Listed {
		if r.Waits() {
			waits.add(r)
		}
		if r.Moves() {
			moves.add(r)
		}
	}
	b.Waits, b.Moves = waits.lines(), moves.lines()
	return b
}

// page searches.
func (l *leader) page(s show.Search) show.Page {
	w, words := window{offset: s.Offset, limit: cmp.Or(s.Limit, usualLimit)}, strings.Fields(strings.ToLower(s.Text))
	for r := range l.planner.Listed {
		if (s.Router == "" || r.On(s.Router)) && matches(r, words) {
			w.add(r)
		}
	}
	return show.Page{Lines: w.lines(), Total: w.total, Offset: min(s.Offset, w.total)}
}

const usualLimit = 50

// matches reports whether a route has all words.
func matches(r shard.Listed, words []string) bool {
	for _, word := range words {
		before, after, slash := strings.Cut(word, "/")
		switch {
		case word == state(r):
		case slash && strings.HasSuffix(r.Namespace, before) && strings.HasPrefix(r.Name, after):
		case strings.Contains(r.Namespace, word), strings.Contains(r.Name, word), strings.Contains(r.Host, word):
		default:
			return false
		}
	}
	return true
}

// window is a part of a list of routes, which come namespace by namespace: only those of namespaces that reach into it are put in order.
type window struct {
	offset, limit int
	total         int
	namespace     string
	first         int // how many came before this namespace
	of            []shard.Listed
	chosen        []shard.Listed
}

func (w *window) add(r shard.Listed) {
	if r.Namespace != w.namespace {
		w.settle()
		w.namespace, w.first = r.Namespace, w.total
	}
	w.total++
	if w.first < w.offset+w.limit {
		w.of = append(w.of, r)
	}
}

// settle puts the routes of a namespace in order and takes those in the window.
func (w *window) settle() {
	if w.first+len(w.of) > w.offset && len(w.of) > 0 {
		slices.SortFunc(w.of, func(a, b shard.Listed) int { return strings.Compare(a.Name, b.Name) })
		from, to := max(w.offset-w.first, 0), min(w.offset+w.limit-w.first, len(w.of))
		w.chosen = append(w.chosen, w.of[from:to]...)
	}
	clear(w.of)
	w.of = w.of[:0]
}

func (w *window) lines() []show.Line {
	w.settle()
	all := make([]show.Line, len(w.chosen))
	for i, r := range w.chosen {
		all[i] = line(r)
	}
	return all
}

func state(r shard.Listed) string {
	switch {
	case r.Waits():
		return show.StateWaits
	case r.Moves():
		return show.StateMoves
	}
	return show.StateBound
}

func line(r shard.Listed) show.Line {
	l := show.Line{Namespace: r.Namespace, Name: r.Name, State: state(r), DNS: r.DNS(), Target: r.Target(), Bindings: []show.LineBinding{}}
	for _, b := range r.Bindings() {
		l.Bindings = append(l.Bindings, show.LineBinding{Router: b.Router, Phase: b.Phase.String(), Arrives: b.Arrives, Since: b.Since.UTC()})
	}
	if t, ok := r.Trouble(); ok {
		l.Reason, l.Message, l.Failures = string(t.Reason), t.Message, t.Failures
		if !t.Next.IsZero() {
			next := t.Next.UTC()
			l.Next = &next
		}
	}
	return l
}
