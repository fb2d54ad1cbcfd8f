package show

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/shard/api"
)

// How much of each list a Board has, and of the addresses of a Router.
const (
	MostRouters   = 200
	MostLines     = 50
	mostAddresses = 8
)

// Board is how routes are spread over Routers at one time.
type Board struct {
	At       time.Time `json:"at"`
	Here     string    `json:"here"`               // the Router of the replica that is asked, or the process of the scheduler
	Leader   string    `json:"leader,omitempty"`   // the process of the scheduler that binds; "": not known
	Strategy string    `json:"strategy,omitempty"` // "": not known
	// Counted says that Bound, Waiting and Moving are known: to the leader, and to others if there is a RouteScheduler.
	Counted bool           `json:"counted"`
	Bound   int            `json:"bound"`             // routes
	Waiting int            `json:"waiting"`           // routes
	Moving  int            `json:"moving"`            // bindings on their way
	Reasons map[string]int `json:"reasons,omitempty"` // why routes wait, or are not where they should be; of the leader
	Invalid string         `json:"invalid,omitempty"` // why the RouteScheduler cannot be used
	Held    string         `json:"held,omitempty"`    // why nothing is moved
	Phases  map[string]int `json:"phases"`            // of Routers
	Routers []Router       `json:"routers"`           // those that somebody should look at first, then by name
	More    int            `json:"more,omitempty"`    // Routers that are left out
	Waits   []Line         `json:"waits"`             // the first routes that wait, by name; null: only the leader knows
	Moves   []Line         `json:"moves"`             // the first routes on their way, by name; null: only the leader knows
}

// Line is a route in a list.
type Line struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	State     string        `json:"state"`            // waits, moves, or bound
	DNS       string        `json:"dns,omitempty"`    // the name by which clients find it
	Target    string        `json:"target,omitempty"` // what a domain of the user's own points to
	Bindings  []LineBinding `json:"bindings"`
	Reason    string        `json:"reason,omitempty"`   // why it is not bound, or not where it should be
	Message   string        `json:"message,omitempty"`  // the same for people
	Failures  int           `json:"failures,omitempty"` // attempts in a row
	Next      *time.Time    `json:"next,omitempty"`     // attempt; nil: when something changes
}

// States of a Line.
const (
	StateWaits = "waits"
	StateMoves = "moves"
	StateBound = "bound"
)

// LineBinding is a Router that has the route.
type LineBinding struct {
	Router  string    `json:"router"`
	Phase   string    `json:"phase"`             // Pending, Serving, Leaving
	Arrives bool      `json:"arrives,omitempty"` // it takes another's place
	Since   time.Time `json:"since"`             // not before the leader leads
}

// Page is a part of a list of routes.
type Page struct {
	Total  int    `json:"total"` // routes that the search found
	Offset int    `json:"offset"`
	Lines  []Line `json:"routes"`
}

// Search is which routes are wanted.
type Search struct {
	// Text is words separated by blanks, each of which stands in NAMESPACE/NAME, in the host, or is a state.
	Text   string
	Router string // only those that it has, "" for all
	Offset int
	Limit  int // 1 to 200; 0 = 50
}

// What a search may ask for.
const (
	mostText    = 256
	mostOnPage  = 200
	usualOnPage = 50
	mostOffset  = 1 << 30
)

// ParseSearch reads parameters as they are written: q, router, offset, limit.
func ParseSearch(get func(name string) string) (s Search, err error) {
	s = Search{Text: get("q"), Router: get("router"), Limit: usualOnPage}
	if len(s.Text) > mostText || len(s.Router) > mostText {
		return s, errors.New("q or router is longer than 256 bytes")
	}
	for _, n := range []struct {
		name        string
		to          *int
		least, most int
	}{{"offset", &s.Offset, 0, mostOffset}, {"limit", &s.Limit, 1, mostOnPage}} {
		text := get(n.name)
		if text == "" {
			continue
		}
		if *n.to, err = strconv.Atoi(text); err != nil || *n.to < n.least || *n.to > n.most {
			return s, errors.New(n.name + " " + strconv.Quote(text) + " is not a number from " + strconv.Itoa(n.least) + " to " + strconv.Itoa(n.most))
		}
	}
	return s, nil
}

// SetRouters puts Routers, which are given by name, on the board. It takes the slice over.
func (b *Board) SetRouters(all []Router) {
	b.Phases = make(map[string]int)
	for i := range all {
		r := &all[i]
		b.Phases[r.Phase]++
		if len(r.Addresses) > mostAddresses {
			r.MoreAddresses, r.Addresses = len(r.Addresses)-mostAddresses, r.Addresses[:mostAddresses]
		}
	}
	slices.SortStableFunc(all, func(a, b Router) int { return cmp.Compare(a.rank(), b.rank()) })
	b.Routers = all[:min(len(all), MostRouters)]
	b.More = len(all) - len(b.Routers)
}

// rank is 0 for a Router that somebody should look at, else 1.
func (r *Router) rank() int {
	if r.Phase != string(api.RouterReady) || len(r.Problems) > 0 || r.Moving > 0 || len(r.Taints) > 0 {
		return 0
	}
	return 1
}

// patience is how long the API server has for a Board.
const patience = 5 * time.Second

// Board is what the API server says: Routers, and of the rest what the RouteScheduler says of it. here is Board.Here.
func (r *Reader) Board(ctx context.Context, here string) (*Board, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all, err := r.Routers(ctx)
	if err != nil {
		return nil, err
	}
	b := &Board{At: time.Now().UTC(), Here: here}
	b.SetRouters(all)
	o, err := r.shards.Schedulers().Get(ctx, schedulerName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return b, nil
	case err != nil:
		return nil, err
	}
	b.Strategy, b.Leader = cmp.Or(string(o.Spec.Strategy), string(api.StrategyRoundRobin)), o.Status.Leader
	b.Counted, b.Bound, b.Waiting, b.Moving = o.Status.Leader != "", int(o.Status.Bound), int(o.Status.Waiting), int(o.Status.Moving)
	for _, c := range o.Status.Conditions {
		switch {
		case c.Type == api.ConditionValid && c.Status == metav1.ConditionFalse:
			b.Invalid = c.Message
		case c.Type == api.ConditionHeld && c.Status == metav1.ConditionTrue:
			b.Held = c.Message
		}
	}
	return b, nil
}

// schedulerName is that of the only RouteScheduler.
const schedulerName = "default"

// Lately is a Board that is read again when it is older than a moment, however many look.
type Lately struct {
	Read  func(context.Context) (*Board, error)
	Clock func() time.Time
	Age   time.Duration

	mu    sync.Mutex
	board *Board
	err   error
	until time.Time
}

// Board returns what was read last. It is read-only.
func (l *Lately) Board(ctx context.Context) (*Board, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.Clock(); l.until.IsZero() || now.After(l.until) || l.until.Sub(now) > l.Age {
		l.board, l.err = l.Read(context.WithoutCancel(ctx)) // others wait for it as well; it ends by itself
		l.until = l.Clock().Add(l.Age)
	}
	return l.board, l.err
}

// readPause is between two times that an API server is asked for a Board.
const readPause = 10 * time.Second

// Lately reads Board every now and then, while somebody looks. The function may be called by any goroutine.
func (r *Reader) Lately(here string, clock func() time.Time) func(context.Context) (*Board, error) {
	l := &Lately{Clock: clock, Age: readPause, Read: func(ctx context.Context) (*Board, error) { return r.Board(ctx, here) }}
	return l.Board
}

// taint is one in a word.
func taint(t *api.RouterTaint) string { return t.Key + ":" + string(t.Effect) }
