package page

import (
	"context"
	"errors"
	"net/http"
	"time"

	"turnout/controller/shard/show"
)

// SchedulerConfig says where the data of the scheduler's page come from. Any goroutine may call the functions; all are required.
type SchedulerConfig struct {
	Version  string
	Board    func(context.Context) (*show.Board, error)
	Bindings func(context.Context, show.Search) (show.Page, error)
	Clock    func() time.Time
}

// Scheduler answers / and what is below root with how routes are spread over Routers.
type Scheduler struct {
	cfg    SchedulerConfig
	lately show.Lately
}

// NewScheduler returns the page of a scheduler.
func NewScheduler(cfg SchedulerConfig) (*Scheduler, error) {
	if cfg.Board == nil || cfg.Bindings == nil || cfg.Clock == nil {
		return nil, errors.New("cannot make the page of the scheduler: Board, Bindings and Clock are required")
	}
	return &Scheduler{cfg: cfg, lately: show.Lately{Read: cfg.Board, Clock: cfg.Clock, Age: every * 9 / 10}}, nil
}

// board is what the page shows.
type board struct {
	*show.Board

	Version string `json:"version"`
}

// ServeHTTP implements http.Handler.
func (s *Scheduler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; path {
	case "/":
		servePage(w, "scheduler.html")
	case shardsPath:
		b, err := s.lately.Board(r.Context())
		tell(w, board{b, s.cfg.Version}, err)
	case bindingsPath:
		search, err := show.ParseSearch(r.URL.Query().Get)
		if err != nil {
			fail(w, http.StatusBadRequest, err)
			return
		}
		p, err := s.cfg.Bindings(r.Context(), search)
		tell(w, p, err)
	default:
		if !serveFile(w, path) {
			fail(w, http.StatusNotFound, errNotFound)
		}
	}
}
