package controller

import (
	"slices"
	"sync"
	"time"

	"turnout/routing"
)

// Change is one publication of a table: what it changed, and since when requests find it.
type Change struct {
	Generation uint64        `json:"generation"` // of the table
	Live       time.Time     `json:"live"`       // when requests found it
	Routes     int           `json:"routes"`     // in the table
	Changed    []ChangedItem `json:"changed"`    // the first ones, deleted ones first
	More       int           `json:"more,omitempty"`
}

// ChangedItem is an object that a Change is about.
type ChangedItem struct {
	Object string `json:"object"` // NAMESPACE/NAME of a route, or "default certificate"
	What   string `json:"what"`   // "added", "changed", "deleted"
	// By is who wrote the object last, or the file that it stands in; "" = nobody knows.
	By string `json:"by,omitempty"`
}

// What is remembered: so many changes, of each so many objects.
const (
	mostChanges = 64
	mostChanged = 16
)

// changes are the last ones. Any goroutine may read them.
type changes struct {
	mu   sync.Mutex
	last []Change // the latest one last
}

func (c *changes) add(next Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.last) == mostChanges {
		c.last = slices.Delete(c.last, 0, 1)
	}
	c.last = append(c.last, next)
}

// Changes returns what the last tables changed, the latest first, at most 64. The items are shared and read-only. Any goroutine may call it.
func (c *Controller) Changes() []Change {
	of := &c.state.changes
	of.mu.Lock()
	defer of.mu.Unlock()
	all := slices.Clone(of.last)
	slices.Reverse(all)
	return all
}

// note remembers a table that was published; before is the one that it followed.
func (s *state) note(before *routing.Table, p *plan, generation uint64, routes int) {
	change := Change{Generation: generation, Live: s.cfg.Clock().UTC(), Routes: routes, Changed: []ChangedItem{}}
	gone := slices.DeleteFunc(slices.Clone(p.deletes), func(key routing.RouteKey) bool { return key.Rule > 0 })
	deletes := gone[:min(len(gone), mostChanged)]
	for _, key := range deletes {
		item := ChangedItem{Object: key.Namespace + "/" + key.Name, What: "deleted"}
		if i := slices.IndexFunc(s.gone, func(r *route) bool { return r.tableKey() == key }); i >= 0 {
			item.By = lastWriter(s.gone[i])
		}
		change.Changed = append(change.Changed, item)
	}
	upserts := p.upserts[:min(len(p.upserts), mostChanged-len(deletes))]
	for _, r := range upserts {
		item := ChangedItem{Object: r.key.String(), What: "added", By: lastWriter(r)}
		if before.Route(r.tableKey()) != nil {
			item.What = "changed"
		}
		change.Changed = append(change.Changed, item)
	}
	change.More = len(gone) + len(p.upserts) - len(change.Changed)
	s.changes.add(change)
}

// lastWriter is who wrote a route last, or else where it comes from. Of managed fields the cluster's source leaves the last writer.
func lastWriter(r *route) string {
	if r.kept.writer != "" {
		return r.kept.writer
	}
	return r.origin
}
