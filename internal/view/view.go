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

// rules are those of a table by the UID of their object, which no two objects share, or by its name where it has none; those of Routes are one each.
type rules struct {
	last  map[string]int32 // by key: the one that was found last
	all   []*routing.Route
	other []int32 // of each of all: another one of the same object; below 0 = there is none
}

func keyOf(namespace, name, uid string) string {
	if uid != "" {
		return uid
	}
	return namespace + "/" + name
}

// served are the rules of the table by object.
func served(t *routing.Table, objects int) *rules {
	r := &rules{last: make(map[string]int32, objects), all: make([]*routing.Route, 0, t.Len()), other: make([]int32, 0, t.Len())}
	for route := range t.Routes {
		k := route.Key()
		key := keyOf(k.Namespace, k.Name, k.UID)
		before, ok := r.last[key]
		if !ok {
			before = -1
		}
		r.last[key] = int32(len(r.all))
		r.all, r.other = append(r.all, route), append(r.other, before)
	}
	return r
}

// of appends those of an object to list.
func (r *rules) of(namespace, name, uid string, list []*routing.Route) []*routing.Route {
	at, ok := r.last[keyOf(namespace, name, uid)]
	for ; ok && at >= 0; at = r.other[at] {
		list = append(list, r.all[at])
	}
	return list
}
