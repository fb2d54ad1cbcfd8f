// Package view makes what people look at: a snapshot of the whole router, its routes page by page, and one route. It reads the published
// table, the state of the balancer and counters, and changes nothing.
package view

import (
	"context"
	"errors"
	"sync"
	"time"

	"turnout/controller"
	"turnout/controller/shard/show"
	"turnout/internal/option"
	"turnout/internal/problem"
	"turnout/proxy"
	"turnout/routing"
)

// Config says where the data come from. Any goroutine may call the functions; all but Latencies and Follow are required.
type Config struct {
	Version string
	Table   func() *routing.Table
	Totals  func() proxy.Totals
	// Latencies are what was measured, see server.RequestPath; nil: nothing is.
	Latencies func(followed func(id uint32) bool) *proxy.Latencies
	// Follow has the latencies of the busiest routes measured, before they are looked at; nil: somebody else does.
	Follow func()
	Now    func() int64 // the clock of the event loops, in nanoseconds
	Routes func() []controller.Summary
	Route  func(namespace, name string) (*controller.RouteReport, bool)
	// Gateway is an object of the Gateway API; nil: there are none.
	Gateway  func(kind, namespace, name string) (*controller.GatewayReport, bool)
	Changes  func() []controller.Change
	Problems *problem.List // nil: there are none
	Clock    func() time.Time
	Settings func() []option.Origin // of the router; nil: nothing is known of them
	Router   string                 // the Router that this is a replica of; "": none
	// Board is how routes are spread over Routers; nil: nobody asks.
	Board func(context.Context) (*show.Board, error)
}

// Viewer makes snapshots. Any goroutine may use it.
type Viewer struct {
	cfg Config

	mu      sync.Mutex
	samples []sample // of the last minute in which somebody looked, the oldest first
}

// New checks cfg.
func New(cfg Config) (*Viewer, error) {
	if cfg.Table == nil || cfg.Totals == nil || cfg.Now == nil || cfg.Routes == nil || cfg.Route == nil || cfg.Changes == nil || cfg.Clock == nil {
		return nil, errors.New("cannot make views: Table, Totals, Now, Routes, Route, Changes and Clock are required")
	}
	return &Viewer{cfg: cfg}, nil
}

// Settings are all options of the router, with what decided about them.
func (v *Viewer) Settings() []option.Origin {
	if v.cfg.Settings == nil {
		return []option.Origin{}
	}
	return v.cfg.Settings()
}

// Sharded reports whether there is a Board.
func (v *Viewer) Sharded() bool { return v.cfg.Board != nil }

// Shards is how routes are spread over Routers, as this replica sees it. It needs a Board.
func (v *Viewer) Shards(ctx context.Context) (*show.Board, error) { return v.cfg.Board(ctx) }

// key is what rules of the table and objects are joined by.
type key struct{ namespace, name, uid string }

// served are the rules of the table by object; those of Routes have one each.
func served(t *routing.Table) map[key][]*routing.Route {
	all := make(map[key][]*routing.Route, t.Len())
	for r := range t.Routes {
		k := key{r.Namespace(), r.Name(), r.Key().UID}
		all[k] = append(all[k], r)
	}
	return all
}
